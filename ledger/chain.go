package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Chain appends entries. The zero Chain is empty; its first entry must be GENESIS.
type Chain struct {
	next uint64 // number of the next entry
	last Hash   // of the newest entry
}

// Resume returns the chain whose newest entry is e.
func Resume(e *Entry) Chain { return Chain{next: e.Seq + 1, last: e.Hash} }

// Len returns the number of entries in the chain.
func (c *Chain) Len() uint64 { return c.next }

// Last returns the newest entry's hash, zero where there is none.
func (c *Chain) Last() Hash { return c.last }

// Append adds an entry. data is a JSON object in any form.
func (c *Chain) Append(kind Type, data []byte) (*Entry, error) {
	if _, err := ParseType(string(kind)); err != nil {
		return nil, err
	}
	if (kind == Genesis) != (c.next == 0) {
		return nil, fmt.Errorf("entry %d of type %s: entry 0 is %s, and no other", c.next, kind, Genesis)
	}
	canonical, err := Canonical(data)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", c.next, err)
	}
	e := &Entry{Seq: c.next, Type: kind, Data: canonical, Hash: HashEntry(c.last, c.next, kind, canonical)}
	*c = Resume(e)
	return e, nil
}

// Opening is the data of a GENESIS entry.
type Opening struct {
	Agent         string    // owner of the ledger; the operator's ledger names its tenant
	Created       time.Time // when the file was started
	ContinuesFrom *Hash     // last hash of the previous file; nil for the first file (section 3.4)
}

const version = "1.0"

// Data returns the opening as JSON.
func (o *Opening) Data() ([]byte, error) {
	data, err := jsontext.AppendQuote([]byte(`{"agent":`), o.Agent)
	if err != nil {
		return nil, fmt.Errorf("agent of a ledger: %w", err)
	}
	if o.ContinuesFrom != nil {
		data = append(append(append(data, `,"continues_from":"`...), o.ContinuesFrom.String()...), '"')
	}
	data = append(data, `,"created":"`...)
	data = o.Created.UTC().AppendFormat(data, time.RFC3339Nano)
	return append(data, `","version":"`+version+`"}`...), nil
}

// ContinuesFrom returns the hash that a GENESIS entry continues from, nil where it opens the
// first file.
func (e *Entry) ContinuesFrom() (*Hash, error) {
	var data struct {
		From jsontext.Value `json:"continues_from"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil || data.From == nil {
		return nil, err
	}
	hash, err := ParseHash(unquote(data.From))
	if err != nil {
		return nil, errors.New("continues_from is not the hash of an entry")
	}
	return &hash, nil
}

// Rotation defines when a file is full (section 3.4).
type Rotation struct {
	Entries uint64
	Age     time.Duration
}

// DefaultRotation returns the RFC's recommendation: 10,000 entries or 30 days.
func DefaultRotation() Rotation { return Rotation{Entries: 10_000, Age: 30 * 24 * time.Hour} }

// Due reports whether a file that was started at began must be sealed before its next entry.
func (r Rotation) Due(c *Chain, began, now time.Time) bool {
	return c.next >= r.Entries || c.next > 0 && now.Sub(began) >= r.Age
}
