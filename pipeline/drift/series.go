package drift

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// series is the state of one agent under one card.
type series struct {
	agent, card string
	waiting     byOrder

	state  aapdrift.State
	recent recent
	loops  session.Loops
	last   int64 // order of the trace applied last, ignoring traces dated after their arrival; 0 before the first

	reached int64 // greatest order of the traces applied, including those

	version uint64   // number of finished messages; each way to finish a message gives the same state
	applied uint64   // every message of the series up to this sequence is finished
	above   []uint64 // finished sequences above applied that the stored state lists, ascending
	since   []uint64 // sequences finished since the last snapshot

	storing bool          // the last snapshot is not durable yet
	resting *list.Element // place among the series that may be evicted; nil if it may not be
}

// names reports whether the stored state lists a message as finished. The message must be one
// that arrives for the first time since the worker began.
func (c *series) names(sequence uint64) bool {
	if sequence <= c.applied {
		return true
	}
	_, found := slices.BinarySearch(c.above, sequence)
	return found
}

// waits reports whether a message is among those held back.
func (c *series) waits(sequence uint64) bool {
	return slices.ContainsFunc(c.waiting, func(e *entry) bool { return e.message.Sequence == sequence })
}

// newest returns the order of the newest trace that was applied or waits.
func (c *series) newest() int64 {
	newest := c.last
	for _, e := range c.waiting {
		newest = max(newest, e.order)
	}
	return newest
}

// snapshot returns the state to continue from. position is the newest message that arrived.
// snapshot first raises c.applied to the highest sequence such that all messages of the series up
// to it are finished.
func (c *series) snapshot(position uint64) (store.DriftState, error) {
	bound := position
	for _, e := range c.waiting {
		bound = min(bound, e.message.Sequence-1)
	}
	c.above = append(c.above, c.since...)
	c.since = c.since[:0]
	slices.Sort(c.above)
	n, found := slices.BinarySearch(c.above, bound)
	if found {
		n++
	}
	if n > 0 {
		c.applied = c.above[n-1]
		c.above = slices.Delete(c.above, 0, n)
	}
	state, err := c.encode()
	return store.DriftState{
		AgentID:      c.agent,
		CardID:       c.card,
		Version:      c.version,
		Applied:      c.applied,
		AppliedAbove: slices.Clone(c.above),
		LastEvent:    time.Unix(0, c.last).UTC(),
		State:        state,
	}, err
}

func resume(row *store.DriftState) (*series, error) {
	c := &series{
		agent:   row.AgentID,
		card:    row.CardID,
		last:    row.LastEvent.UnixNano(),
		version: row.Version,
		applied: row.Applied,
		above:   row.AppliedAbove,
	}
	return c, c.decode(row.State)
}

// fingerprint is the first 8 bytes of a SHA-256.
type fingerprint [8]byte

func fingerprintOf(text string) fingerprint {
	sum := sha256.Sum256([]byte(text))
	return fingerprint(sum[:])
}

func fingerprintOfDigest(d schema.Digest) fingerprint { return fingerprint(d[:]) }

// mention identifies a trace by its id and its content.
type mention struct{ id, content fingerprint }

const mentionBytes = 16

// recent lists the traces of a series that were applied last, oldest first. For an older trace
// this is not needed: a copy has the same time and is late, and another content with the same id
// is late, too, unless it has a newer time.
type recent []mention

// remembered is how many traces recent holds. Each takes 22 bytes in every stored state.
const remembered = 32

func (r *recent) add(m mention) {
	if len(*r) >= remembered {
		*r = slices.Delete(*r, 0, len(*r)-remembered+1)
	}
	*r = append(*r, m)
}

func (r recent) content(id fingerprint) (fingerprint, bool) {
	for i := range r {
		if r[i].id == id {
			return r[i].content, true
		}
	}
	return fingerprint{}, false
}

// storedSeries is the stored form of a series' state.
type storedSeries struct {
	Recent  []byte          `json:"recent,omitempty"`  // mentions, oldest first
	Loops   []byte          `json:"loops,omitempty"`   // the state of aap/session's Loops
	Reached int64           `json:"reached,omitempty"` // absent where it is the time of the trace applied last
	Series  json.RawMessage `json:"course,omitempty"`  // the state of aap/drift, if it is JSON
	State   []byte          `json:"state,omitempty"`   // the state of aap/drift, if it is binary
}

func (c *series) encode() ([]byte, error) {
	state, err := c.state.Marshal()
	if err != nil {
		return nil, err
	}
	w := storedSeries{Recent: make([]byte, 0, mentionBytes*len(c.recent)), Loops: c.loops.Append(nil)}
	if state[0] == '{' {
		w.Series = state
	} else {
		w.State = state
	}
	for i := range c.recent {
		w.Recent = append(append(w.Recent, c.recent[i].id[:]...), c.recent[i].content[:]...)
	}
	if c.reached != c.last {
		w.Reached = c.reached
	}
	data, err := json.Marshal(&w)
	if err != nil {
		return nil, fmt.Errorf("encode the state of a series: %w", err)
	}
	return data, nil
}

// StateOf returns the state of a series from its stored form.
func StateOf(row *store.DriftState) (*aapdrift.State, error) {
	var c series
	if err := c.decode(row.State); err != nil {
		return nil, err
	}
	return &c.state, nil
}

func (c *series) decode(data []byte) error {
	var w storedSeries
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("decode the state of a series: %w", err)
	}
	if len(w.Recent)%mentionBytes != 0 {
		return fmt.Errorf("decode the state of a series: %d bytes of recent traces", len(w.Recent))
	}
	for pair := range slices.Chunk(w.Recent, mentionBytes) {
		c.recent = append(c.recent, mention{fingerprint(pair[:8]), fingerprint(pair[8:])})
	}
	loops, err := session.LoadLoops(w.Loops)
	if err != nil {
		return fmt.Errorf("decode the state of a series: %w", err)
	}
	if w.State == nil {
		w.State = w.Series
	}
	state, err := aapdrift.UnmarshalState(w.State)
	if err != nil {
		return err
	}
	c.state, c.loops, c.reached = *state, loops, max(w.Reached, c.last)
	return nil
}
