package exporter

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/store"
)

const (
	// lanes is how many groups are sealed concurrently. While one waits for database, broker or
	// disk, another is composed.
	lanes = 3

	// Limits of a group, which is held in memory as a whole. A single part may exceed them.
	groupSessions = 200
	groupTraces   = 10_000
	groupBytes    = 16 << 20
)

// group is a set of sessions whose parts are sealed with the same queries and writes.
type group struct {
	candidates []candidate
	traces     int
	bytes      int64
}

// takes reports whether the group has room for a part.
func (g *group) takes(traces int, bytes int64) bool {
	return len(g.candidates) == 0 ||
		len(g.candidates) < groupSessions && g.traces+traces <= groupTraces && g.bytes+bytes <= groupBytes
}

// due collects the next parts of all sessions that are due into groups.
func (e *exporter) due(floor uint64) []group {
	groups := make([]group, 1)
	now := e.index.clock()
	for _, s := range e.index.sessions {
		reason := s.due(e.cfg, e.schedules, now, floor)
		if reason == "" {
			continue
		}
		traces, bytes := min(len(s.receipts), e.cfg.RotateRows), min(s.bytes, e.cfg.RotateBytes)
		if !groups[len(groups)-1].takes(traces, bytes) {
			groups = append(groups, group{})
		}
		g := &groups[len(groups)-1]
		g.candidates = append(g.candidates, candidate{session: s, reason: reason})
		g.traces, g.bytes = g.traces+traces, g.bytes+bytes
	}
	return groups
}

// sealGroups seals groups concurrently. When ctx ends it starts no further group, and finishes
// the started ones within work.
func (e *exporter) sealGroups(ctx, work context.Context, groups []group, floor uint64, created time.Time) error {
	e.names = map[string]store.SessionKey{}
	running, work := errgroup.WithContext(work)
	running.SetLimit(lanes)
	for _, g := range groups {
		if ctx.Err() != nil {
			break
		}
		running.Go(func() error { return e.seal(work, g.candidates, floor, created) })
	}
	return running.Wait()
}
