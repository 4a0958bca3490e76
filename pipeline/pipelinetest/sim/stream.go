package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// Stream is one of the broker's streams. Its members are valid during an operation.
type Stream struct {
	Name    string
	Created time.Time
	Stored  []Stored // the index plus 1 is the sequence

	world   *World
	ids     map[string]uint64
	changed chan struct{} // closed when a message was stored
}

// Stored is one stored message of a stream.
type Stored struct {
	Subject   string
	ID        string // under which it was published; "": none
	Data      []byte
	Agent     string // only in stream TRACES, like Partition
	Partition int
	Received  time.Time
}

// duplicateWindow is how long the broker remembers an id.
const duplicateWindow = stream.DefaultDuplicateWindow

// Stream returns the stream with a name, and creates it at the first call.
func (w *World) Stream(name string) *Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.streams[name]
	if s == nil {
		s = &Stream{Name: name, Created: w.began.UTC(), world: w, ids: map[string]uint64{}, changed: make(chan struct{})}
		w.streams[name] = s
	}
	return s
}

// Publish stores a message from a publisher without faults.
func (s *Stream) Publish(m Stored) (sequence uint64) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	sequence, _ = s.append(m)
	s.world.note(0, fmt.Sprintf("%s %d: %s %s", s.Name, sequence, m.Subject, m.ID), none)
	return sequence
}

// append stores a message, or finds the message that was stored under its id.
func (s *Stream) append(m Stored) (sequence uint64, duplicate bool) {
	if earlier, known := s.known(m.ID); known {
		return earlier, true
	}
	m.Received = time.Now().UTC()
	s.Stored = append(s.Stored, m)
	sequence = s.last()
	s.ids[m.ID] = sequence
	close(s.changed)
	s.changed = make(chan struct{})
	return sequence, false
}

// known finds the message that was stored under an id within the duplicate window.
func (s *Stream) known(id string) (sequence uint64, known bool) {
	sequence, known = s.ids[id]
	return sequence, known && id != "" && time.Since(s.Stored[sequence-1].Received) < duplicateWindow
}

func (s *Stream) last() uint64 { return uint64(len(s.Stored)) }

// At returns the message with a sequence.
func (s *Stream) At(sequence uint64) *Stored { return &s.Stored[sequence-1] }

func (s *Stream) state() stream.State {
	state := stream.State{Created: s.Created, FirstSequence: 1, LastSequence: s.last(), Messages: s.last(), Now: time.Now().UTC()}
	if n := len(s.Stored); n > 0 {
		state.LastReceived = s.Stored[n-1].Received
	}
	return state
}

// Consumer is the state of a durable consumer of a stream in the broker, for any reader. Its
// members are valid during an operation.
type Consumer struct {
	Name    string
	AckWait time.Duration
	Most    int                   // maximum number of unacknowledged deliveries
	Acked   func(sequence uint64) // called before each ack takes effect; optional

	stream    *Stream
	partition int // the partition that it reads; every
	next      uint64
	delivery  uint64 // number of the next delivery
	pending   map[uint64]*unacked
	times     map[uint64]int // how often a message was delivered, if more than once

	// The floors move as in the server: with the lowest delivery, or when nothing is
	// unacknowledged.
	deliveryFloor, floor uint64
}

type unacked struct {
	sequence uint64
	delivery uint64 // the first one since the consumer was rewound
	due      time.Time
}

// every is the partition of a consumer without a filter.
const every = -1

// ackWait and mostUnacked are the settings of the pipeline's consumers.
const (
	ackWait     = time.Minute
	mostUnacked = 100_000
)

// Consumer creates a consumer of all messages.
func (s *Stream) Consumer(name string) *Consumer { return s.Partition(name, every) }

// Partition creates a consumer of one partition.
func (s *Stream) Partition(name string, partition int) *Consumer {
	c := &Consumer{Name: name, AckWait: ackWait, Most: mostUnacked, stream: s, partition: partition}
	c.rewind()
	return c
}

// rewind goes back to the ack floor. It discards acks above the floor.
func (c *Consumer) rewind() {
	c.next, c.delivery, c.deliveryFloor = c.floor+1, 1, 0
	c.pending, c.times = map[uint64]*unacked{}, map[uint64]int{}
}

type given struct {
	sequence, delivery uint64
	again              bool
}

// deliver delivers at most `most` messages: first those whose ack wait is over, in order of its end,
// then new ones.
func (c *Consumer) deliver(most int) (out []given) {
	now := time.Now()
	var due []*unacked
	for _, u := range c.pending {
		if !u.due.After(now) {
			due = append(due, u)
		}
	}
	slices.SortFunc(due, func(a, b *unacked) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.sequence, b.sequence))
	})
	for _, u := range due {
		if len(out) == most {
			return out
		}
		u.due = now.Add(c.AckWait)
		c.times[u.sequence]++
		out = append(out, given{u.sequence, c.delivery, true})
		c.delivery++
	}
	for ; len(out) < most && len(c.pending) < c.Most && c.next <= c.stream.last(); c.next++ {
		if !c.reads(c.next) {
			continue
		}
		c.pending[c.next] = &unacked{c.next, c.delivery, now.Add(c.AckWait)}
		out = append(out, given{c.next, c.delivery, false})
		c.delivery++
	}
	return out
}

func (c *Consumer) reads(sequence uint64) bool {
	return c.partition == every || c.stream.At(sequence).Partition == c.partition
}

// event returns the time of the next redelivery; zero if every delivery is acknowledged.
func (c *Consumer) event() (next time.Time) {
	for _, u := range c.pending {
		if next.IsZero() || u.due.Before(next) {
			next = u.due
		}
	}
	return next
}

func (c *Consumer) ack(sequence uint64) {
	u := c.pending[sequence]
	if u == nil {
		return
	}
	if c.Acked != nil {
		c.Acked(sequence)
	}
	delete(c.pending, sequence)
	delete(c.times, sequence)
	switch {
	case len(c.pending) == 0:
		c.deliveryFloor, c.floor = c.delivery-1, c.next-1
	case u.delivery == c.deliveryFloor+1:
		c.deliveryFloor, c.floor = u.delivery, sequence
		for s := sequence + 1; s < c.next; s++ {
			if later := c.pending[s]; later != nil {
				c.deliveryFloor, c.floor = later.delivery-1, s-1
				break
			}
		}
	}
}

// Settle delivers everything to a reader without faults, which acknowledges one message.
func (c *Consumer) Settle(sequence uint64) {
	c.deliver(c.Most)
	c.ack(sequence)
}

// postpone redelivers a message after a time.
func (c *Consumer) postpone(sequence uint64, wait time.Duration) {
	if u := c.pending[sequence]; u != nil {
		u.due = time.Now().Add(wait)
	}
}

// Progress returns the broker's view of the consumer.
func (c *Consumer) Progress() stream.Progress {
	p := stream.Progress{AckFloor: c.floor, Deliveries: c.delivery - 1, Unacked: len(c.pending), Now: time.Now().UTC()}
	for s := c.next; s <= c.stream.last(); s++ {
		if c.reads(s) {
			p.Pending++
		}
	}
	return p
}

// Done reports whether every message is acknowledged.
func (c *Consumer) Done() bool {
	p := c.Progress()
	return p.Pending == 0 && p.Unacked == 0
}
