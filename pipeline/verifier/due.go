package verifier

import "time"

const (
	// batchWorth is how many traces make a commit worth its cost. A smaller batch waits longer: each insert
	// makes a part, with a sync of some twenty files, and the parts are merged.
	batchWorth = 1000
	// backlogAge is how old the traces of a backlog are: whoever waits for them has waited for longer than for
	// the commit of a larger batch, which spares merges. The first batch after a start waits no longer than others:
	// its rows say that the verifier works.
	backlogAge = 5 * time.Second

	// A fetch for a batch waits between these for a whole slice.
	leastWait = 20 * time.Millisecond
	mostWait  = 200 * time.Millisecond
)

// due reports whether a batch is to be committed: it is full, or old enough. A batch that is due only by its
// age may grow while the previous one is being committed.
func (b *batch) due(cfg *Config, now time.Time) bool {
	return len(b.messages) > 0 && (cfg.BatchFull(len(b.messages), b.bytes) || b.dueIn(cfg, now) <= 0)
}

// dueIn returns how long it takes until a batch with a message is due by its age. Its first message waits for
// BatchAge, with batchWorth messages for half of it, and in a backlog for twice as long.
func (b *batch) dueIn(cfg *Config, now time.Time) time.Duration {
	age := cfg.BatchAge
	switch {
	case len(b.messages) < batchWorth:
	case b.behind && !b.first && b.since.Sub(b.messages[0].Received) >= backlogAge:
		age *= 2
	default:
		age /= 2
	}
	return b.since.Add(age).Sub(now)
}

// fetchWait returns how long a fetch for a batch waits until it has a whole slice: at most until the batch is
// due. A slice of a few messages costs more for each of them.
func (b *batch) fetchWait(cfg *Config, now time.Time) time.Duration {
	if len(b.messages) == 0 {
		return leastWait
	}
	return min(max(b.dueIn(cfg, now), leastWait), mostWait)
}
