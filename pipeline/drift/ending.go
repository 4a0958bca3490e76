package drift

// A request to end a session names an agent and a session, and no card. It is queued with the
// traces of each series that the agent has, and is applied after the newest trace that the series
// had when the request arrived. Its message is finished when it is applied to all of them.

// ending is what the entries of one request share.
type ending struct {
	left int // series to which the request is not applied yet
}

// receiveEnd queues a request for the series of its agent that began before it and whose state
// does not list it. All series of the agent with a stored state are in memory (see unknown).
func (f *fold) receiveEnd(e *entry, first bool) {
	for key, c := range f.series {
		switch {
		case key.AgentID != e.sample.AgentID:
		case !first:
			if c.waits(e.message.Sequence) {
				return // the queued entries will be acked
			}
		case !c.names(e.message.Sequence):
			own := *e
			own.series, own.order = c, max(c.reached, c.newest())
			own.ending.left++
			f.wake(c)
			f.queue.add(&own)
		}
	}
	if e.ending.left == 0 {
		f.out.finished = append(f.out.finished, e.message)
	}
}

// end applies a request to one of its series.
func (f *fold) end(e *entry) {
	c := e.series
	c.state.End(e.session)
	f.list(c, e.message.Sequence)
	if e.ending.left--; e.ending.left == 0 {
		f.out.finished = append(f.out.finished, e.message)
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
