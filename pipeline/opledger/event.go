package opledger

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/ledger"
)

// Event is one message of stream LEDGER.
type Event struct {
	Type     ledger.Type
	ID       string // identical for the same event
	Data     json.RawMessage
	Stream   time.Time // creation time of the stream: with Sequence it identifies the event
	Sequence uint64
	Received time.Time // by the broker's clock
}

// Check returns an error if the event can never be an entry.
func (e *Event) Check() error {
	if _, err := ledger.ParseType(string(e.Type)); err != nil || e.Type == ledger.Genesis {
		return fmt.Errorf("event %s: a service may not write type %q", e.ID, e.Type)
	}
	data, err := e.data()
	if err != nil {
		return err
	}
	if _, err := ledger.Canonical(data); err != nil {
		return fmt.Errorf("event %s: %w", e.ID, err)
	}
	return nil
}

// record is the data of an entry: the event and its place in the stream.
type record struct {
	At       time.Time       `json:"at"`
	Event    json.RawMessage `json:"event"`
	ID       string          `json:"id"`
	Sequence uint64          `json:"sequence"`
	Stream   time.Time       `json:"stream"`
}

func (e *Event) data() ([]byte, error) {
	data, err := json.Marshal(record{e.Received.UTC(), e.Data, e.ID, e.Sequence, e.Stream.UTC()})
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return data, nil
}

// Position is how far a stream has been chained.
type Position struct {
	Stream   time.Time
	Sequence uint64
}

// Placed is an entry with its place.
type Placed struct {
	ledger.Entry
	File     uint64    // number of the file, from 1
	At       time.Time // by the broker's clock
	Position Position  // position of its event; a GENESIS has sequence 0
}

// place decodes the time and the stream position of an entry's event.
func (p *Placed) place() error {
	if p.Type == ledger.Genesis {
		var opening struct {
			Created time.Time `json:"created"`
		}
		err := json.Unmarshal(p.Data, &opening)
		p.At, p.Position.Stream = opening.Created, opening.Created
		return err
	}
	var r record
	err := json.Unmarshal(p.Data, &r)
	p.At, p.Position = r.At, Position{r.Stream, r.Sequence}
	return err
}
