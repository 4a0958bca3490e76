package drift

import (
	"bytes"
	"container/list"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// series is the state of one agent under one card.
type series struct {
	agent, card  string
	older, newer *series // of the same agent, by when they came into memory
	waiting      byOrder

	packed  []byte   // the content as the newest snapshot has it; nil before the first
	content *content // decoded, and newer than packed after a step; nil where packed is all there is
	used    uint64   // number of the fold's takes when the content was used last

	last    int64 // order of the trace applied last, ignoring traces dated after their arrival; 0 before the first
	reached int64 // greatest order of the traces applied, including those
	latest  int64 // greatest time of the traces applied, by their own clocks; reached at least

	version uint64   // number of finished messages; each way to finish a message gives the same state
	applied uint64   // every message of the series up to this sequence is finished
	above   []uint64 // finished sequences above applied that the stored state lists, ascending
	since   []uint64 // sequences finished since the last snapshot

	storing bool          // the last snapshot is not durable yet
	resting *list.Element // place among the series that may be evicted; nil if it may not be
}

func (c *series) key() seriesKey { return seriesKey{AgentID: c.agent, CardID: c.card} }

// atRest is what a series without decoded content takes in memory, in addition to its names and its
// packed content: the struct, its places in the map and among the resting series, and the lists of
// finished sequences. BenchmarkSeriesMemory measures it.
const atRest = 450

// size returns about how many bytes the series takes at rest.
func (c *series) size() int { return atRest + len(c.agent) + len(c.card) + len(c.packed) }

// inMemory returns what the series takes at rest, with what Go adds to the sizes of its allocations.
func (c *series) inMemory() int {
	return atRest + allocated(len(c.agent)) + allocated(len(c.card)) + cap(c.packed)
}

// allocated returns at least what an allocation of so many bytes takes, of an id (schema.MaxIDBytes).
func allocated(size int) int { return (size + size/8 + 15) &^ 7 }

// names reports whether the stored state lists a message as finished.
func (c *series) names(sequence uint64) bool {
	if sequence <= c.applied {
		return true
	}
	_, found := slices.BinarySearch(c.above, sequence)
	return found
}

// arrived returns the sequence of the newest message of the series.
func (c *series) arrived() uint64 {
	newest := c.applied
	for _, list := range [...][]uint64{c.above, c.since} {
		for _, sequence := range list {
			newest = max(newest, sequence)
		}
	}
	for _, e := range c.waiting {
		newest = max(newest, e.message.Sequence)
	}
	return newest
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
// to it are finished. Its content must be packed.
func (c *series) snapshot(position uint64) store.DriftState {
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
	return store.DriftState{
		AgentID:      c.agent,
		CardID:       c.card,
		Version:      c.version,
		Applied:      c.applied,
		AppliedAbove: slices.Clone(c.above),
		LastEvent:    time.Unix(0, c.last).UTC(),
		State:        c.packed,
	}
}

// resume returns the series of a stored state, with its content decoded: a state that cannot be
// decoded is found here.
func resume(row *store.DriftState) (*series, error) {
	c := &series{
		agent:   row.AgentID,
		card:    row.CardID,
		last:    row.LastEvent.UnixNano(),
		version: row.Version,
		applied: row.Applied,
		above:   row.AppliedAbove,
	}
	var err error
	if c.content, c.reached, c.latest, err = unpack(row.State); err != nil {
		return nil, err
	}
	c.reached = max(c.reached, c.last)
	c.latest = max(c.latest, c.reached)
	if isPacked(row.State) {
		c.packed = bytes.Clone(row.State) // the row may share its bytes with all others
	}
	return c, nil
}
