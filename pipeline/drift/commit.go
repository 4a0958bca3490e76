package drift

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// mostChanged is how many series of a partition may have changed since their states were stored. States
// have some KB each, and are in memory until they are stored.
const mostChanged = 4096

// commitAll stores results at every tick, and states and the position at every checkpoint: when
// CheckpointAge is over, when no trace waits, when many series have changed, and after the follower has
// ended. States are much larger than points, and a crash only makes the next process fold again what came
// after the last checkpoint.
func (s *stage) commitAll(work context.Context, ended <-chan struct{}) error {
	tick := time.NewTicker(s.cfg.BatchAge)
	defer tick.Stop()
	stored := time.Now() // the last checkpoint
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-s.full:
		case <-ended:
			last = true
		case <-work.Done():
			return work.Err()
		}
		checkpoint := last || time.Since(stored) >= s.cfg.CheckpointAge || s.wantsCheckpoint()
		b, err := s.take(checkpoint)
		if err != nil {
			return err
		}
		if err := s.commit(work, b); err != nil {
			return err
		}
		if checkpoint {
			stored = time.Now()
			s.release()
		}
	}
	return nil
}

// wantsCheckpoint reports whether no trace waits, or many series have changed.
func (s *stage) wantsCheckpoint() bool {
	waiting := 0
	for _, p := range s.owned {
		p.mu.Lock()
		waiting += p.fold.queue.waiting
		changed := len(p.fold.changed)
		p.mu.Unlock()
		if changed >= mostChanged {
			return true
		}
	}
	return waiting == 0
}

// take takes the results of all partitions, with a checkpoint the states and the position, too: every
// message of any partition up to it is finished. What only other owners' messages have moved is not
// recorded here (ownership.Term.Fetch does that). The next call uses the batch again.
func (s *stage) take(checkpoint bool) (*batch, error) {
	all, through := &s.batch, ^uint64(0)
	all.reset()
	for _, p := range s.owned {
		p.mu.Lock()
		err := p.fold.take(all, checkpoint)
		through = min(through, p.fold.floor(p.read))
		p.mu.Unlock()
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", p.number, err)
		}
	}
	s.unrecorded += all.messages
	if checkpoint && s.unrecorded > 0 && through > s.source.Position() {
		all.through, s.unrecorded = through, 0
	}
	select {
	case s.taken <- struct{}{}:
	default:
	}
	return all, nil
}

// release records that the states of the last checkpoint are durable.
func (s *stage) release() {
	for _, p := range s.owned {
		p.mu.Lock()
		p.fold.stored()
		p.mu.Unlock()
	}
}

// commit makes a batch durable and then records the position. The order of the steps is the
// guarantee: a row refers only to what was stored before it. Each step is repeated until it
// succeeds or ctx ends. A process that has lost a partition learns it at the last step; what it stored
// before is what the next owner stores. After a crash the states list what was applied; messages that they
// do not list are read again, and give the same rows under the same ids.
func (s *stage) commit(ctx context.Context, b *batch) error {
	if b.empty() {
		return nil
	}
	if b.messages > 0 {
		oldest := b.oldest // a reader may keep it longer than the batch
		s.committing.Store(&oldest)
		defer s.committing.Store(nil)
	}
	span := s.env.Spans.Begin("store drift", time.Now())
	span.Number("plumbline.traces", b.messages)
	for _, step := range []struct {
		operation string
		do        func() error
	}{
		{"insert drift baselines", func() error { return s.rows.InsertDriftBaselines(ctx, b.baselines) }}, // after a crash the same rows again
		{"insert drift points", func() error { return s.rows.InsertDriftPoints(ctx, b.points) }},          // after a crash the same rows again
		{"insert drift alerts", func() error { return s.rows.InsertDriftAlerts(ctx, b.alerts) }},          // after a crash the same rows again
		{"insert loops", func() error { return s.rows.InsertLoopAlerts(ctx, b.loops) }},                   // after a crash the same rows again
		{"publish drift alerts", func() error { return publishAlerts(ctx, s.outlet, b.alerts) }},          // after a crash the same alerts again, under the same ids
		{"publish loops", func() error { return publishLoops(ctx, s.outlet, b.loops) }},                   // after a crash the same alerts again, under the same ids
		{"insert drift states", func() error { return s.rows.InsertDriftStates(ctx, b.states) }},          // after a crash the messages are read again: the states list them
		{"record that traces are measured", func() error { // after a crash nothing is read again
			if b.through == 0 {
				return nil
			}
			return s.source.Done(ctx, b.through)
		}},
	} {
		span.Step(step.operation)
		if err := s.env.Retry.Do(ctx, step.operation, step.do); err != nil {
			span.End(err)
			return err
		}
	}
	span.End(nil)
	s.metrics.committed(b)
	return nil
}

func publishAlerts(ctx context.Context, outlet Outlet, alerts []store.DriftAlert) error {
	messages := make([]wire.Alert, len(alerts))
	for i := range alerts {
		alert := &alerts[i].DriftAlert
		data, err := json.Marshal(alert)
		if err != nil {
			return fmt.Errorf("encode drift alert %s: %w", wire.DriftAlertID(alert), err)
		}
		messages[i] = wire.Alert{Kind: subject.AlertDrift, Agent: alert.AgentID, ID: wire.DriftAlertID(alert), Data: data}
	}
	return outlet.PublishAlerts(ctx, messages)
}
