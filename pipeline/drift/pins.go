package drift

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/store"
)

// Pin is a baseline that the operator sets for an agent under a card.
type Pin struct {
	AgentID  string          `json:"agent_id"`
	CardID   string          `json:"card_id"`
	PinnedAt time.Time       `json:"pinned_at"`
	Baseline aapdrift.Formed `json:"baseline"`
}

// Pins are the baselines of mode pinned. They are read when the stage starts and do not change
// while it runs, so the results depend only on the stream and the configuration.
type Pins map[seriesKey]Pin

type pinsFile struct {
	Pins []Pin `json:"pins"`
}

// ReadPins reads a file of pins. It refuses a file that was changed by hand, since a baseline's
// id covers its traces and its features. The error wraps fs.ErrNotExist where there is no file.
func ReadPins(path string) (Pins, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("pinned baselines: %w: make it with plumbline drift pin AGENT, or choose another mode", err)
	}
	if err != nil {
		return nil, fmt.Errorf("pinned baselines: %w", err)
	}
	pins, err := parsePins(data)
	if err != nil {
		return nil, fmt.Errorf("pinned baselines: %s: %w", path, err)
	}
	return pins, nil
}

func parsePins(data []byte) (Pins, error) {
	var file pinsFile
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	pins := make(Pins, len(file.Pins))
	for i, pin := range file.Pins {
		key := seriesKey{AgentID: pin.AgentID, CardID: pin.CardID}
		if _, twice := pins[key]; twice {
			return nil, fmt.Errorf("pins[%d]: agent %q under card %q is pinned twice", i, pin.AgentID, pin.CardID)
		}
		if pin.Baseline.Baseline == nil || !pin.Baseline.Belongs(pin.AgentID, pin.CardID) {
			return nil, fmt.Errorf("pins[%d]: the baseline of agent %q under card %q was changed by hand, or made by another engine version: pin it again",
				i, pin.AgentID, pin.CardID)
		}
		pins[key] = pin
	}
	return pins, nil
}

// Set sets the baseline of an agent under a card, and replaces an existing one.
func (p Pins) Set(pin Pin) { p[seriesKey{AgentID: pin.AgentID, CardID: pin.CardID}] = pin }

// Write replaces the file at path durably.
func (p Pins) Write(path string) error {
	data, err := json.MarshalIndent(pinsFile{p.sorted()}, "", " ")
	if err != nil {
		return fmt.Errorf("encode pinned baselines: %w", err)
	}
	if err := durable.CheckOwner(path); err != nil {
		return err
	}
	return durable.WriteFile(path, append(data, '\n'), 0o600)
}

func (p Pins) sorted() []Pin {
	return slices.SortedFunc(maps.Values(p), func(a, b Pin) int {
		return cmp.Or(cmp.Compare(a.AgentID, b.AgentID), cmp.Compare(a.CardID, b.CardID))
	})
}

// rows returns the pins as rows, so points and alerts can refer to them.
func (p Pins) rows() []store.DriftBaseline {
	rows := make([]store.DriftBaseline, 0, len(p))
	for _, pin := range p.sorted() {
		rows = append(rows, baselineRow(seriesKey{AgentID: pin.AgentID, CardID: pin.CardID}, &pin.Baseline, pin.PinnedAt, pin.PinnedAt))
	}
	return rows
}

// pins returns the pins of mode pinned; in another mode there are none.
func (r *Rules) pins() (Pins, error) {
	if r.params().Mode != aapdrift.ModePinned {
		return nil, nil
	}
	return ReadPins(r.Pins)
}
