package drift

import (
	"slices"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
)

// course is one agent under one card.
type course struct {
	agent, card string
	waiting     byOrder

	state  aapdrift.State
	recent recent
	last   int64 // order of the trace applied last, those dated after their arrival apart; 0 before the first

	version uint64   // messages settled: each way to settle one comes to the same state
	applied uint64   // every message of the course up to this sequence is settled
	above   []uint64 // settled sequences above it that a state names, rising
	since   []uint64 // settled since the last snapshot
}

// names tells whether a message that comes for the first time since the worker
// began is settled already, according to the stored state.
func (c *course) names(sequence uint64) bool {
	if sequence <= c.applied {
		return true
	}
	_, found := slices.BinarySearch(c.above, sequence)
	return found
}

// waits tells whether a message is among those held back.
func (c *course) waits(sequence uint64) bool {
	return slices.ContainsFunc(c.waiting, func(e *entry) bool { return e.message.Sequence == sequence })
}

// newest is the order of the newest trace that was applied or waits.
func (c *course) newest() int64 {
	newest := c.last
	for _, e := range c.waiting {
		newest = max(newest, e.order)
	}
	return newest
}

// settle notes that nothing more is to be done about a message, and returns
// whether it is the first since the last snapshot.
func (c *course) settle(sequence uint64) (first bool) {
	c.version++
	c.since = append(c.since, sequence)
	return len(c.since) == 1
}

// compact raises c.applied as far as every message up to position, the newest
// that has come, is settled.
func (c *course) compact(position uint64) {
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
func (c *course) snapshot(position uint64) (store.DriftState, error) {
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

// resume returns the course that a snapshot was taken of.
func resume(row *store.DriftState) (*course, error) {
	state, remembered, err := decode(row.State)
	if err != nil {
		return nil, err
	}
	return &course{
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
