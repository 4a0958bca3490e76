package drift

import (
	"slices"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
)

// series is the state of one agent under one card.
type series struct {
	agent, card string
	waiting     byOrder

	state  aapdrift.State
	recent recent
	last   int64 // order of the trace applied last, ignoring traces dated after their arrival; 0 before the first

	version uint64   // number of finished messages; each way to finish a message gives the same state
	applied uint64   // every message of the series up to this sequence is finished
	above   []uint64 // finished sequences above applied that the stored state lists, ascending
	since   []uint64 // sequences finished since the last snapshot
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

// finish records that a message is finished, and reports whether it is the first since the last
// snapshot.
func (c *series) finish(sequence uint64) (first bool) {
	c.version++
	c.since = append(c.since, sequence)
	return len(c.since) == 1
}

// compact raises c.applied to the highest sequence such that all messages of the series up to it
// are finished. position is the newest message that arrived.
func (c *series) compact(position uint64) {
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
}

// snapshot returns the state to continue from once every message up to position has arrived.
func (c *series) snapshot(position uint64) (store.DriftState, error) {
	c.compact(position)
	state, err := encode(&c.state, c.recent)
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

// resume returns the series of a snapshot.
func resume(row *store.DriftState) (*series, error) {
	state, remembered, err := decode(row.State)
	if err != nil {
		return nil, err
	}
	return &series{
		agent:   row.AgentID,
		card:    row.CardID,
		state:   *state,
		recent:  remembered,
		last:    row.LastEvent.UnixNano(),
		version: row.Version,
		applied: row.Applied,
		above:   row.AppliedAbove,
	}, nil
}
