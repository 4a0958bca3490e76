package drift

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/pipeline/store"
)

// A request to end a session names an agent and a session, and no card. It is queued with the
// traces of the agent's series, of at most the newest store.MostSeries, and is applied after the newest trace that the series
// had when the request arrived. Its message is finished when it is applied to all of them.

// ending is what the entries of one request share.
type ending struct {
	left int // series to which the request is not applied yet
}

// receiveEnd queues a request for the series of its agent that began before it and whose state
// does not list it. All series of the agent that it may reach are in memory (see unknown).
func (f *fold) receiveEnd(e *entry) {
	for _, c := range f.newestOf(e.sample.AgentID) {
		if c.names(e.message.Sequence) {
			continue
		}
		own := *e
		own.series, own.order = c, max(c.reached, c.newest())
		own.ending.left++
		f.wake(c)
		f.queue.add(&own)
	}
	if e.ending.left == 0 {
		f.out.finish(e.message.Received)
	}
}

// newestOf returns the series of an agent whose messages are newest, at most as many as the database
// returns: the same wherever they are, and an agent that invents cards takes no more memory.
func (f *fold) newestOf(agent string) (all []*series) {
	for c := f.agents[agent]; c != nil; c = c.older {
		all = append(all, c)
	}
	if len(all) > store.MostSeries {
		slices.SortFunc(all, func(a, b *series) int {
			return cmp.Or(cmp.Compare(b.arrived(), a.arrived()), cmp.Compare(a.card, b.card))
		})
		all = all[:store.MostSeries]
	}
	return all
}

// end applies a request to one of its series.
func (f *fold) end(e *entry) {
	c := e.series
	opened, err := f.open(c)
	if err != nil {
		f.fault = err
		return
	}
	opened.state.End(e.session)
	f.list(c, e.message.Sequence)
	if e.ending.left--; e.ending.left == 0 {
		f.out.finish(e.message.Received)
	}
}

// list records that a message is finished in a series. Its next state lists the message.
func (f *fold) list(c *series, sequence uint64) {
	c.version++
	c.since = append(c.since, sequence)
	if len(c.since) == 1 { // the first one since the last snapshot
		f.changed = append(f.changed, c)
	}
}
