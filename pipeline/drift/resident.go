package drift

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/pipeline/store"
)

// A fold has only some of its series in memory, and of these only some decoded. A series rests when
// its state is durable and none of its traces waits. A resting series may be evicted, since its
// stored state restores it. Every series in memory has its content packed, and may lose its decoded
// content whenever a snapshot was made of it. A resting series that is not decoded and takes more than
// mostAtRest is evicted at once.

// mostAtRest is the most that a series takes in memory while it rests and is not decoded. Few agents ever take more:
// those that name long ids, or learn a baseline of many sessions and figures. What a publisher sends is bounded for one
// trace alone, so no bound on what a state keeps would hold for all agents without a change of their results.
const mostAtRest = 4096

// mostDecoded is how many series of a partition stay decoded from one take to the next: those of
// busy agents. A series that is learning takes some 10 KB decoded.
const mostDecoded = 128

// mostOpen is how many series of a partition may be decoded between two takes. A commit may last long.
const mostOpen = 512

// open returns the content of a series for its next step, decoded, with its pinned baseline if it
// has one. Only what this process has packed, or decoded once before, can be opened: an error is a
// fault of the program.
func (f *fold) open(c *series) (*content, error) {
	c.used = f.takes
	if c.content != nil {
		return c.content, nil
	}
	if err := f.relieve(mostOpen); err != nil {
		return nil, err
	}
	opened := new(content)
	if c.packed != nil {
		var err error
		if opened, _, _, err = unpack(c.packed); err != nil {
			return nil, fmt.Errorf("series of agent %q under card %q: %w", c.agent, c.card, err)
		}
	}
	f.decoded = append(f.decoded, c)
	f.pin(c.key(), opened)
	c.content = opened
	return opened, nil
}

func (f *fold) pin(key seriesKey, c *content) {
	if pin, ok := f.pins[key]; ok {
		c.state.Pin(pin.Baseline.Baseline)
	}
}

// pack encodes the content of a series, unless it was not opened since it was packed.
func (f *fold) pack(c *series) error {
	if c.content == nil && c.packed != nil {
		return nil
	}
	opened, err := f.open(c)
	if err != nil {
		return err
	}
	if f.scratch, err = opened.append(f.scratch[:0], c.reached, c.latest); err != nil {
		return err
	}
	f.bytes += len(f.scratch) - len(c.packed)
	c.packed = bytes.Clone(f.scratch) // as long as it must be: most series keep it for long
	return nil
}

// close drops the decoded contents of the series, all of which are packed, except of some that were
// used since the last call.
func (f *fold) close() {
	stay := f.decoded[:0]
	for _, c := range f.decoded {
		if c.used == f.takes && len(stay) < mostDecoded {
			stay = append(stay, c)
		} else {
			c.content = nil
		}
	}
	clear(f.decoded[len(stay):])
	f.decoded = stay
	f.takes++
}

// relieve packs and drops all decoded contents if they are as many as most.
func (f *fold) relieve(most int) error {
	if len(f.decoded) < most {
		return nil
	}
	for _, c := range f.decoded {
		if len(c.since) > 0 { // it changed since the last take
			if err := f.pack(c); err != nil {
				return err
			}
		}
		c.content = nil
	}
	clear(f.decoded)
	f.decoded = f.decoded[:0]
	return nil
}

// recently returns the content of a trace with an id among those applied last.
func (c *series) recently(id fingerprint) (content contentMark, known bool) {
	if c.content != nil {
		return c.content.recent.content(id)
	}
	return recentOf(c.packed).content(id)
}

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
		if err := f.relieve(mostOpen); err != nil {
			return err
		}
		f.enroll(c)
		f.decoded, c.used = append(f.decoded, c), f.takes
		f.pin(c.key(), c.content)
		if c.packed == nil { // an older engine stored it
			if err := f.pack(c); err != nil {
				return err
			}
		}
		f.rest(c)
	}
	return nil
}

// enroll adds a series.
func (f *fold) enroll(c *series) {
	f.series[c.key()] = c
	f.bytes += c.size()
	if c.older = f.agents[c.agent]; c.older != nil {
		c.older.newer = c
	}
	f.agents[c.agent] = c
}

// remove removes a series.
func (f *fold) remove(c *series) {
	delete(f.series, c.key())
	delete(f.large, c)
	f.bytes -= c.size()
	if c.older != nil {
		c.older.newer = c.newer
	}
	switch {
	case c.newer != nil:
		c.newer.older = c.older
	case c.older != nil:
		f.agents[c.agent] = c.older
	default:
		delete(f.agents, c.agent)
	}
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
		if c.inMemory() > mostAtRest {
			f.large[c] = struct{}{}
		}
	}
}

// wake removes a series that gets a message from the list.
func (f *fold) wake(c *series) {
	if c.resting != nil {
		f.resting.Remove(c.resting)
		c.resting = nil
		delete(f.large, c)
	}
}

// evict removes the large series that are not decoded, and the series that have rested longest while
// those in memory take more than a number of bytes. Series that do not rest stay.
func (f *fold) evict(most int) {
	for c := range f.large {
		if c.content == nil {
			f.remove(f.resting.Remove(c.resting).(*series))
		}
	}
	for f.bytes > most && f.resting.Len() > 0 {
		f.remove(f.resting.Remove(f.resting.Front()).(*series))
	}
}

// trim frees what only a series that gets traces needs.
func (c *series) trim() {
	c.waiting, c.since = nil, nil
	if len(c.above) == 0 {
		c.above = nil
	}
}
