package ownership

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Record reads and writes the stage's key of bucket leases (stream.Bucket).
type Record interface {
	GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error)
}

// Presence asks other members whether they are there, and answers them (stream.Presence).
type Presence interface {
	Reacher
	Holder() stream.Holder
	End()
}

// Reacher asks processes whether they are there (stream.Client).
type Reacher interface {
	Reach(ctx context.Context, other *stream.Holder) error
}

// Broker says how far the stream is (stream.Client).
type Broker interface {
	StreamState(ctx context.Context, stream string) (stream.State, error)
}

// Source reads the stream without a filter, in order and without gaps (stream.Consumer).
type Source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	AtEnd(ctx context.Context) (end bool, now time.Time, err error)
	OneServerDates() bool
	StreamCreated() time.Time
	Close()
}

// Config is what a member needs.
type Config struct {
	Stage    string                                                            // key of the record
	Stream   string                                                            // its messages belong to partitions
	Earlier  func(ctx context.Context, partition int) (stream.Progress, error) // how far an earlier version, which kept no record, was with a partition
	Silence  time.Duration                                                     // how long another member may be connected and not answer until it is removed
	Record   Record
	Presence Presence
	Broker   Broker
	Open     func(ctx context.Context, from uint64) (Source, error) // reads the stream from a sequence
	Retry    *service.Retrier
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Member is a process that has a share of the partitions.
type Member struct {
	cfg     Config
	self    stream.Holder
	metrics metrics

	writing chan struct{} // holds one element while this process reads or writes the record
	rested  *Term         // the last term, if nothing of it was in hand when it ended; not shared

	mu       sync.Mutex // for the members below, which change only in learn, or while writing is taken
	shares   stream.Shares
	value    []byte // the record, as stored; nil: it must be read
	revision uint64
	moved    chan struct{} // closed when members, owners or heirs have changed
}

// Join makes the process a member, and removes members that are not connected any more. It writes
// the record if there is none: the partitions then begin where an earlier version ended. It repeats
// what fails. If another member has another place, the error is permanent and names that process. After an
// error the process is no member, and does not answer any more.
func Join(ctx context.Context, cfg Config) (*Member, error) {
	m := &Member{cfg: cfg, self: cfg.Presence.Holder(), metrics: newMetrics(cfg.Metrics), writing: make(chan struct{}, 1), moved: make(chan struct{})}
	err := cfg.Retry.Do(ctx, "join the owners of partitions", func() error { return m.join(ctx) })
	if err != nil { // the record may name this process even so: if ctx ends during a write, its outcome is not known
		m.end(ctx)
		return nil, err
	}
	return m, nil
}

// Visit returns the error of Join about another place, and changes nothing. A process asks before it
// creates a directory.
func Visit(ctx context.Context, record Record, asking Reacher, stage, place string) error {
	m := &Member{cfg: Config{Stage: stage, Record: record}, self: stream.Holder{Place: place}, writing: make(chan struct{}, 1), moved: make(chan struct{})}
	if err := m.refresh(ctx); err != nil {
		return err
	}
	remove(&m.shares, gone(ctx, asking, m.others())...)
	return m.demandPlace(&m.shares)
}

func (m *Member) join(ctx context.Context) error {
	if err := m.refresh(ctx); err != nil {
		return err
	}
	gone := gone(ctx, m.cfg.Presence, m.others())
	return m.update(ctx, func(s *stream.Shares) error {
		state, err := m.cfg.Broker.StreamState(ctx, m.cfg.Stream) // read after the record: its positions lie in this stream
		if err == nil && !s.Created.Equal(state.Created) {
			err = m.begin(ctx, s, state)
		}
		if err != nil {
			return err
		}
		for p := range s.Partitions { // a stream that was restored from a backup may be shorter
			s.Partitions[p].Done = min(s.Partitions[p].Done, state.LastSequence)
		}
		remove(s, gone...)
		if err := m.demandPlace(s); err != nil {
			return err
		}
		add(s, m.self)
		balance(s, m.epoch())
		return nil
	})
}

// demandPlace returns a permanent error if another member has another place.
func (m *Member) demandPlace(s *stream.Shares) error {
	for i := range s.Members {
		if other := &s.Members[i]; other.ID != m.self.ID && other.Place != m.self.Place {
			return service.Permanent(fmt.Errorf("%w: %s; end that process first, or give this one the same directory", ErrElsewhere, other))
		}
	}
	return nil
}

// ErrElsewhere means that the other processes of the stage work in another place.
var ErrElsewhere = errors.New("another process of this stage works in another directory")

// begin sets the positions for a stream about which there is no record. What an earlier version has
// acknowledged is done, and it may have begun everything else. A consumer with nothing left has
// acknowledged everything that the stream held before.
func (m *Member) begin(ctx context.Context, s *stream.Shares, state stream.State) error {
	s.Created = state.Created
	for p := range s.Partitions {
		before, err := m.cfg.Earlier(ctx, p)
		if err != nil {
			return err
		}
		part := &s.Partitions[p]
		part.Done, part.Begun = before.AckFloor, state.LastSequence
		if before.Pending == 0 && before.Unacked == 0 {
			part.Done = max(part.Done, state.LastSequence)
		}
		if before.AckFloor == 0 && before.Unacked == 0 && m.revision == 0 {
			part.Begun = 0 // nobody has read the partition
		}
	}
	return nil
}

// epoch returns the epoch of owners that an edit makes: epochs grow, even if somebody removes the
// record.
func (m *Member) epoch() uint64 { return m.revision + 1 }

// others returns the other members.
func (m *Member) others() []stream.Holder {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.shares.Members), func(h stream.Holder) bool { return h.ID == m.self.ID })
}

// exclusively runs a reading or a change of the record while this process does no other one.
func (m *Member) exclusively(ctx context.Context, do func() error) error {
	select {
	case m.writing <- struct{}{}:
		defer func() { <-m.writing }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refresh reads the record.
func (m *Member) refresh(ctx context.Context) error {
	return m.exclusively(ctx, func() error { return m.read(ctx) })
}

func (m *Member) read(ctx context.Context) error {
	value, revision, err := m.cfg.Record.GetNewest(ctx, m.cfg.Stage)
	if err != nil && !errors.Is(err, stream.ErrNotFound) {
		return err
	}
	var shares stream.Shares
	if err == nil {
		if err := json.Unmarshal(value, &shares); err != nil {
			return service.Permanent(fmt.Errorf("key %s of bucket %s cannot be read: %w; end all processes of the stage, remove the key (nats kv del %[2]s %[1]s), and start them: "+
				"they process the stream again", m.cfg.Stage, stream.Leases, err))
		}
	}
	m.learn(shares, value, revision)
	return nil
}

// learn takes over a record, and tells the current term if anyone has joined or left, a partition is
// to move, or the record has gone back.
func (m *Member) learn(shares stream.Shares, value []byte, revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	same := slices.Equal(m.shares.Members, shares.Members) && m.shares.Created.Equal(shares.Created)
	for p := range shares.Partitions {
		a, b := &m.shares.Partitions[p], &shares.Partitions[p]
		same = same && a.Owner == b.Owner && a.Heir == b.Heir && a.Epoch == b.Epoch && a.Done <= b.Done
	}
	m.shares, m.value, m.revision = shares, value, revision
	if m.value == nil {
		m.value = []byte{}
	}
	if !same {
		close(m.moved)
		m.moved = make(chan struct{})
	}
}

// update changes the record by compare-and-swap. edit must be idempotent: it is called again with
// the newest record after another member has changed it, or after a write whose outcome is unknown.
func (m *Member) update(ctx context.Context, edit func(*stream.Shares) error) error {
	return m.exclusively(ctx, func() error {
		for {
			if m.value == nil {
				if err := m.read(ctx); err != nil {
					return err
				}
			}
			next := m.shares
			next.Members = slices.Clone(next.Members)
			if err := edit(&next); err != nil {
				return err
			}
			value, err := json.Marshal(&next)
			if err != nil {
				return fmt.Errorf("encode the record of partitions: %w", err)
			}
			if bytes.Equal(value, m.value) {
				return nil
			}
			revision, err := m.cfg.Record.Update(ctx, m.cfg.Stage, value, m.revision)
			if err == nil {
				m.learn(next, value, revision)
				return nil
			}
			m.value = nil // another member has changed it, or the outcome is not known
			if !errors.Is(err, stream.ErrConflict) {
				return err
			}
		}
	})
}

// Run calls work for one term after the other until ctx ends. It then leaves: the other members
// get its partitions at once.
//
// The context of work ends when the term is to end. work then finishes what it has in hand, calls
// it done, and returns. An ErrLost of work begins the next term. If another error ends work, so does
// Run.
func (m *Member) Run(ctx context.Context, work func(ctx context.Context, term *Term) error) error {
	defer m.end(ctx)
	return service.Group(ctx, m.watch, func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := m.serve(ctx, work); err != nil {
				return err
			}
		}
		return nil
	})
}

// serve runs one term, and then hands over what is to go to another member.
func (m *Member) serve(ctx context.Context, work func(ctx context.Context, term *Term) error) error {
	m.rested = nil
	m.mu.Lock()
	term, moved := newTerm(m), m.moved
	over := term.over()
	m.mu.Unlock()
	if over {
		return m.handOver(ctx)
	}
	m.metrics.owns(term)
	defer m.metrics.owns(nil)
	inTerm, end := context.WithCancel(ctx)
	defer end()
	go m.endWhenOver(inTerm, end, term, moved)
	switch err := m.work(inTerm, term, work); {
	case err == nil:
		m.rested = term
	case errors.Is(err, stream.ErrReplaced):
		m.cfg.Log.Warn("the stream is not the one that was read; this process begins where the new one does", "error", err)
		if err := m.cfg.Retry.Do(ctx, "set the positions for the new stream", func() error { return m.join(ctx) }); err != nil {
			return service.UnlessEnded(ctx, err)
		}
	case errors.Is(err, ErrLost) || ctx.Err() == nil && inTerm.Err() != nil: // the next owner does again what was in hand
		m.cfg.Log.Warn("a term as owner of partitions ended before its work was done; it is done again", "error", err)
	default:
		return err
	}
	return m.handOver(ctx)
}

// endWhenOver ends the term when the record says something else about its partitions.
func (m *Member) endWhenOver(ctx context.Context, end func(), term *Term, moved <-chan struct{}) {
	for {
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
		m.mu.Lock()
		moved = m.moved
		over := term.over()
		m.mu.Unlock()
		if over {
			end()
			return
		}
	}
}

// work waits through a term without partitions.
func (m *Member) work(ctx context.Context, term *Term, work func(ctx context.Context, term *Term) error) (err error) {
	if term.empty() {
		<-ctx.Done()
		return nil
	}
	err = m.cfg.Retry.Do(ctx, "read the partitions", func() (err error) {
		term.source, err = m.cfg.Open(ctx, term.from())
		return err
	})
	if err != nil {
		return service.UnlessEnded(ctx, err)
	}
	defer term.source.Close()
	if !term.source.StreamCreated().Equal(term.stream) {
		return stream.ErrReplaced
	}
	return work(ctx, term)
}

// rest records that this process has begun nothing that is not done, if that is so: then the next
// owner has nothing to look up.
func (m *Member) rest(s *stream.Shares) {
	if m.rested == nil {
		return
	}
	for p := range s.Partitions {
		share, start := &s.Partitions[p], &m.rested.start[p]
		if share.Owner == m.self.ID && share.Epoch == start.Epoch {
			share.Begun = max(share.Done, start.Begun)
		}
	}
}

// handOver gives the partitions that are to go to another member to it. Nothing of them may be in
// hand.
func (m *Member) handOver(ctx context.Context) error {
	err := m.cfg.Retry.Do(ctx, "hand partitions over", func() error {
		return m.update(ctx, func(s *stream.Shares) error {
			m.rest(s)
			for p := range s.Partitions {
				if s.Partitions[p].Owner == m.self.ID {
					pass(&s.Partitions[p], m.epoch())
				}
			}
			return nil
		})
	})
	return service.UnlessEnded(ctx, err)
}

// leaveWithin limits how long a process that ends tries to write that it leaves. Without it, the
// others find out by asking.
const leaveWithin = 3 * time.Second

// end leaves, and then ends the answers to the others.
func (m *Member) end(ctx context.Context) {
	defer m.cfg.Presence.End()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if err := m.leave(ctx); err != nil {
		m.cfg.Log.Info("cannot record that this process gives its partitions back; the others take them over", "error", err)
	}
}

// leave writes that this process is no member, unless the record says so already.
func (m *Member) leave(ctx context.Context) error {
	if err := m.refresh(ctx); err != nil || !m.joined() {
		return err
	}
	return m.update(ctx, func(s *stream.Shares) error {
		m.rest(s)
		remove(s, m.self.ID)
		balance(s, m.epoch())
		return nil
	})
}
