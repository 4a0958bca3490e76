package ownership

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// A member reads the record and asks the others ten times in the time of silence.
const looks = 10

// enoughGone is how many times in a row a member must be gone before a running member removes it:
// after a restart of the broker one connection is back before the other.
const enoughGone = 2

// absence is what a member knows about another one that did not answer.
type absence struct {
	since time.Time // when the first question without an answer was asked
	gone  int       // how many times in a row it was not connected
}

// watch follows the record and asks the other members, until ctx ends. A member that is gone or
// silent is removed, and its partitions go to others. A process that was removed while it was cut
// off joins again.
func (m *Member) watch(ctx context.Context) error {
	absences := map[string]absence{}
	tick := time.NewTicker(m.cfg.Silence / looks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := m.look(ctx, absences); err != nil {
			return err
		}
	}
}

// look returns only permanent errors: a broker that does not answer is reported by other code, and
// nobody is removed while this process has no connection.
func (m *Member) look(ctx context.Context, absences map[string]absence) error {
	err := m.refresh(ctx)
	if err == nil && !m.joined() {
		m.cfg.Log.Warn("another process has removed this one from the owners of partitions, because it did not answer; it joins again")
		err = m.join(ctx)
	}
	if err == nil {
		err = m.expel(ctx, absences)
	}
	var permanent interface{ Permanent() bool }
	if errors.As(err, &permanent) && permanent.Permanent() && ctx.Err() == nil {
		return err
	}
	return nil
}

func (m *Member) joined() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return isMember(&m.shares, m.self.ID)
}

// ask asks members at the same time whether they are there.
func ask(ctx context.Context, asking Reacher, members []stream.Holder) []error {
	answers := make([]error, len(members))
	var questions sync.WaitGroup
	for i := range members {
		questions.Go(func() { answers[i] = asking.Reach(ctx, &members[i]) })
	}
	questions.Wait()
	return answers
}

// gone returns the ids of the members that are not connected.
func gone(ctx context.Context, asking Reacher, members []stream.Holder) (ids []string) {
	for i, answer := range ask(ctx, asking, members) {
		if errors.Is(answer, stream.ErrGone) {
			ids = append(ids, members[i].ID)
		}
	}
	return ids
}

// expel asks the other members, and removes those that are gone or were silent for too long.
func (m *Member) expel(ctx context.Context, absences map[string]absence) error {
	asked := time.Now()
	others := m.others()
	answers := ask(ctx, m.cfg.Presence, others)
	var out []string
	for i, other := range others {
		a := absences[other.ID]
		switch {
		case errors.Is(answers[i], stream.ErrGone):
			a.gone++
		case errors.Is(answers[i], stream.ErrLeaseSilent):
			a.gone = 0
		default: // it answered, or this process has no connection
			delete(absences, other.ID)
			continue
		}
		if a.since.IsZero() {
			a.since = asked
		}
		absences[other.ID] = a
		if a.gone >= enoughGone || time.Since(a.since) >= m.cfg.Silence {
			m.cfg.Log.Warn("another process does not answer; its partitions go to the others", "process", other.String(), "reason", answers[i])
			out = append(out, other.ID)
		}
	}
	if len(out) == 0 {
		return nil
	}
	m.metrics.expelled.Add(float64(len(out)))
	err := m.update(ctx, func(s *stream.Shares) error {
		remove(s, out...)
		balance(s, m.epoch())
		return nil
	})
	if err == nil {
		for _, id := range out {
			delete(absences, id)
		}
	}
	return err
}
