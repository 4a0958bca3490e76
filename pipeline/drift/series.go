package drift

import (
	"slices"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
)

// series is one agent under one card.
type series struct {
	agent, card string
	waiting     byOrder

	state  aapdrift.State
	recent recent
	last   int64 // order of the trace applied last, those dated after their arrival apart; 0 before the first

	version uint64   // messages finished: each way to finish one comes to the same state
	applied uint64   // every message of the series up to this sequence is finished
	above   []uint64 // finished sequences above it that a state names, rising
	since   []uint64 // finished since the last snapshot
}

// names reports whether the stored state says that a message is finished which comes for the
// first time since the worker began.
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

// finish marks a message as done, and reports whether it is the first since the last snapshot.
func (c *series) finish(sequence uint64) (first bool) {
	c.version++
	c.since = append(c.since, sequence)
	return len(c.since) == 1
}

// compact raises c.applied as far as every message up to position, the newest
// that has come, is finished.
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

// snapshot returns the state to continue from when every message up to position
// has come.
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

// resume returns the series that a snapshot was taken of.
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
