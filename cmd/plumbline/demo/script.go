package demo

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/schema"
)

// script is the input of a run.
type script struct {
	cards []fleet.Card             // to register
	lines iter.Seq2[[]byte, error] // ends after the first error
	truth *fleet.Planted           // nil: unknown
}

// simulated returns a fleet that starts to publish now.
func simulated(agents, traces int, seed uint64, now time.Time) *script {
	f := fleet.New(fleet.Config{Seed: seed, Agents: agents, Traces: traces, Start: now})
	planted := f.Planted()
	return &script{cards: f.Cards(), truth: &planted, lines: func(yield func([]byte, error) bool) {
		for line := range f.Lines() {
			if !yield(line.Raw, nil) {
				return
			}
		}
	}}
}

// recorded returns a corpus: a file of traces and a file of cards, one JSON object per
// line, gzipped or not.
func recorded(traces, cards string) (*script, error) {
	s := &script{lines: linesOf(traces)}
	for raw, err := range linesOf(cards) {
		if err != nil {
			return nil, err
		}
		var named struct {
			ID string `json:"card_id"`
		}
		if err := json.Unmarshal(raw, &named); err != nil {
			return nil, fmt.Errorf("%s: card %d: %w", cards, len(s.cards)+1, err)
		}
		s.cards = append(s.cards, fleet.Card{CardID: named.ID, Raw: raw})
	}
	file, err := os.Open(traces) // fails before anything is started
	if err != nil {
		return nil, err
	}
	return s, file.Close()
}

// linesOf yields the lines of a file that are not blank.
func linesOf(path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer file.Close()
		packed := bufio.NewReader(file)
		text := io.Reader(packed)
		if magic, err := packed.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b { // gzip
			if text, err = gzip.NewReader(packed); err != nil {
				yield(nil, fmt.Errorf("%s: %w", path, err))
				return
			}
		}
		lines := bufio.NewScanner(text)
		lines.Buffer(nil, 2*schema.MaxTraceBytes)
		for lines.Scan() {
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) > 0 && !yield(bytes.Clone(line), nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("%s: %w", path, err))
		}
	}
}
