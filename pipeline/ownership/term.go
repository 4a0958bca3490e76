package ownership

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// ErrLost means that a partition of the term belongs to another process now, or that the record has
// gone back. Nothing is lost by it: the next owner does what the record does not call done.
var ErrLost = errors.New("the partition has another owner now, or an earlier position")

// Term is a time during which a process owns the same partitions. Fetch is called by one goroutine;
// Begin and Done may be called by another one.
type Term struct {
	member *Member
	source Source
	owned  [subject.Partitions]bool
	start  [subject.Partitions]stream.Share // when the term began
	stream time.Time                        // when the stream was created whose sequences they are

	handed uint64    // the last sequence that Fetch returned
	seen   uint64    // the last sequence that Fetch received
	at     time.Time // the broker's time of that message; zero before the first
	idle   time.Time // when an idle position was last recorded

	done atomic.Uint64 // the last sequence that the stage called done
}

// newTerm returns the term by the current record. The caller holds the lock.
func newTerm(m *Member) *Term {
	t := &Term{member: m, start: m.shares.Partitions, stream: m.shares.Created, idle: time.Now()}
	for p := range t.start {
		t.owned[p] = t.start[p].Owner == m.self.ID
	}
	t.seen = t.from() - 1
	t.handed = t.seen
	t.done.Store(t.seen)
	return t
}

// over reports whether the record says something else about the partitions of this member, or wants
// one of them handed over. The caller holds the lock.
func (t *Term) over() bool {
	for p := range t.start {
		share := &t.member.shares.Partitions[p]
		owned := share.Owner == t.member.self.ID
		if owned != t.owned[p] || owned && (share.Heir != share.Owner || !t.holds(&t.member.shares, p)) {
			return true
		}
	}
	return false
}

// holds reports whether by a record a partition of the term still belongs to it. It does not if the
// record has gone back: the stream was replaced, or an older record was restored. Then the next term
// begins where the record says.
func (t *Term) holds(s *stream.Shares, p int) bool {
	share, start := &s.Partitions[p], &t.start[p]
	return share.Owner == t.member.self.ID && share.Epoch == start.Epoch && s.Created.Equal(t.stream) && share.Done >= max(start.Done, t.done.Load())
}

func (t *Term) empty() bool { return t.owned == [subject.Partitions]bool{} }

// from returns the first sequence that may not be done.
func (t *Term) from() uint64 {
	from := ^uint64(0)
	for p := range t.owned {
		if t.owned[p] {
			from = min(from, t.start[p].Done)
		}
	}
	return from + 1
}

// Owned returns which partitions the process owns in the term.
func (t *Term) Owned() [subject.Partitions]bool { return t.owned }

// StreamCreated returns when the stream was created.
func (t *Term) StreamCreated() time.Time { return t.source.StreamCreated() }

// OneServerDates reports whether one server dates all messages of the stream.
func (t *Term) OneServerDates() bool { return t.source.OneServerDates() }

// Position returns the sequence up to which everything of the term's partitions is recorded as done.
// It is safe for concurrent use.
func (t *Term) Position() uint64 { return t.done.Load() }

// Seen returns the newest message that Fetch has received, also one of another owner's partition, and the
// broker's time of it; the position and no time before the first. Only the goroutine that fetches may call
// it, and AtEnd.
func (t *Term) Seen() (sequence uint64, received time.Time) { return t.seen, t.at }

// AtEnd reports whether Fetch has received every message that the stream held at the time now, which the
// broker tells.
func (t *Term) AtEnd(ctx context.Context) (end bool, now time.Time, err error) {
	return t.source.AtEnd(ctx)
}

// Fetch appends messages of the term's partitions that are not done, in the order of the stream
// (see stream.Consumer.Fetch). A message that an earlier owner may have begun is marked as
// redelivered.
func (t *Term) Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error) {
	kept := len(into)
	all, err := t.source.Fetch(ctx, into, maxMessages, maxBytes, wait)
	for i := kept; i < len(all); i++ {
		m := &all[i]
		t.seen, t.at = m.Sequence, m.Received
		// No partition's position says anything about a message without a partition.
		if !m.Unrouted() && (!t.owned[m.Partition] || m.Sequence <= t.start[m.Partition].Done) {
			continue
		}
		m.Redelivered = m.Redelivered || m.Sequence <= t.start[m.Partition].Begun
		all[kept] = *m
		kept++
		t.handed = m.Sequence
	}
	clear(all[kept:])
	all = all[:kept]
	if err == nil && kept == len(into) {
		err = t.rest(ctx)
	}
	return all, err
}

// idleEvery is how often a position that only passes other owners' messages is recorded.
const idleEvery = time.Second

// rest records how far the process is when nothing of its own is in hand, and only messages of
// other partitions have passed.
func (t *Term) rest(ctx context.Context) error {
	done := t.done.Load()
	if t.handed > done || t.seen <= done || time.Since(t.idle) < idleEvery {
		return nil
	}
	t.idle = time.Now()
	return t.Done(ctx, t.seen)
}

// leastAhead is the smallest reserve of Begin.
const leastAhead = 10_000

// Begin must be called before any result of the messages up to a sequence is stored. It records
// that, so the next owner knows which messages may have been begun. Most calls need no write,
// because Done has recorded a reserve.
func (t *Term) Begin(ctx context.Context, through uint64) error {
	return t.change(ctx, func(part *stream.Share) { part.Begun = max(part.Begun, through) })
}

// Done records that all messages of the term's partitions up to a sequence are done. If a partition
// was lost, it records that of the others, and returns an ErrLost.
func (t *Term) Done(ctx context.Context, through uint64) error {
	ahead := max(leastAhead, 4*(max(through, t.done.Load())-t.done.Load()))
	err := t.change(ctx, func(part *stream.Share) {
		if through > part.Done {
			part.Done, part.Begun = through, max(part.Begun, through+ahead)
		}
	})
	if err == nil {
		t.done.Store(max(t.done.Load(), through))
	}
	return err
}

// Confirm returns an ErrLost unless the process still owns all partitions of the term. It asks the
// leader of the bucket.
func (t *Term) Confirm(ctx context.Context) error {
	if err := t.member.refresh(ctx); err != nil {
		return err
	}
	var lost []int
	t.member.mu.Lock()
	defer t.member.mu.Unlock()
	for p := range t.owned {
		if t.owned[p] && !t.holds(&t.member.shares, p) {
			lost = append(lost, p)
		}
	}
	if len(lost) > 0 {
		return &lostError{lost}
	}
	return nil
}

// change changes the shares that the process still owns.
func (t *Term) change(ctx context.Context, edit func(*stream.Share)) error {
	var lost []int
	err := t.member.update(ctx, func(s *stream.Shares) error {
		lost = lost[:0]
		for p := range t.owned {
			share := &s.Partitions[p]
			switch {
			case !t.owned[p]:
			case !t.holds(s, p):
				lost = append(lost, p)
			default:
				edit(share)
			}
		}
		return nil
	})
	if err == nil && len(lost) > 0 {
		err = &lostError{lost}
	}
	return err
}

// lostError names the partitions that were lost. Retrying does not help.
type lostError struct{ partitions []int }

func (e *lostError) Error() string   { return fmt.Sprintf("partitions %v: %v", e.partitions, ErrLost) }
func (e *lostError) Unwrap() error   { return ErrLost }
func (e *lostError) Permanent() bool { return true }
