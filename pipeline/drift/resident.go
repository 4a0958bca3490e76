package drift

import (
	"maps"
	"slices"

	"github.com/plumbline/plumbline/pipeline/store"
)

// A fold has only some of its series in memory. A series rests when its state is durable and none
// of its traces waits. A resting series may be evicted, since its stored state restores it.

// unknown returns the series of the entries that are not in memory, and the agents whose sessions
// they end, in any order. The caller must read the states of these series, and of all series of
// these agents, and resume them before it passes the entries to receive.
func (f *fold) unknown(entries []*entry) (of []seriesKey, agents []string) {
	var keys map[seriesKey]bool
	for _, e := range entries {
		if e.refused {
			continue
		}
		if e.ending != nil {
			agents = append(agents, e.sample.AgentID)
			continue
		}
		if f.series[e.key()] != nil {
			continue
		}
		if keys == nil {
			keys = map[seriesKey]bool{}
		}
		keys[e.key()] = true
	}
	slices.Sort(agents)
	return slices.Collect(maps.Keys(keys)), slices.Compact(agents)
}

func (e *entry) key() seriesKey { return seriesKey{AgentID: e.sample.AgentID, CardID: e.sample.CardID} }

// resume adds the series of stored states that are not in memory.
func (f *fold) resume(rows []store.DriftState) error {
	for i := range rows {
		row := &rows[i]
		if f.series[seriesKey{AgentID: row.AgentID, CardID: row.CardID}] != nil {
			continue
		}
		c, err := resume(row)
		if err != nil {
			return err
		}
		f.enroll(c)
		f.rest(c)
	}
	return nil
}

// enroll adds a series, and sets its pinned baseline if it has one.
func (f *fold) enroll(c *series) {
	key := seriesKey{AgentID: c.agent, CardID: c.card}
	if pin, ok := f.pins[key]; ok {
		c.state.Pin(pin.Baseline.Baseline)
	}
	f.series[key] = c
}

// stored records that the states of the last take are durable.
func (f *fold) stored() {
	for _, c := range f.taken {
		c.storing = false
		f.rest(c)
	}
	f.taken = nil
}

// rest moves a series to the end of the list of resting series, if it rests.
func (f *fold) rest(c *series) {
	switch {
	case c.storing || len(c.since) > 0 || len(c.waiting) > 0:
	case c.resting != nil:
		f.resting.MoveToBack(c.resting)
	default:
		c.resting = f.resting.PushBack(c)
		c.trim()
	}
}

// wake removes a series that gets a message from the list.
func (f *fold) wake(c *series) {
	if c.resting != nil {
		f.resting.Remove(c.resting)
		c.resting = nil
	}
}

// evict removes the series that have rested longest while more than a number of series are in
// memory. Series that do not rest stay.
func (f *fold) evict(most int) {
	for len(f.series) > most && f.resting.Len() > 0 {
		c := f.resting.Remove(f.resting.Front()).(*series)
		delete(f.series, seriesKey{AgentID: c.agent, CardID: c.card})
	}
}

// slack is how many unused elements a list of a resting series may have room for.
const slack = 8

// trim frees the memory that a burst of traces left.
func (c *series) trim() {
	if cap(c.waiting) > slack {
		c.waiting = nil
	}
	if cap(c.since) > slack {
		c.since = nil
	}
	if len(c.above) == 0 {
		c.above = nil
	}
}
