package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// Consumer is a durable consumer of a stream: what the broker knows of it, whoever
// reads. Its members are good within an operation.
type Consumer struct {
	Name    string
	AckWait time.Duration
	Most    int                   // unacknowledged deliveries
	Acked   func(sequence uint64) // is told of each acknowledgement before it counts; may be nil

	stream    *Stream
	partition int // that it reads; every
	next      uint64
	delivery  uint64 // number of the next delivery
	pending   map[uint64]*unacked
	times     map[uint64]int // that a message was delivered, where more than once

	// The floors move as the server moves them: with the lowest delivery, or when nothing
	// is unacknowledged.
	deliveryFloor, floor uint64
}

// unacked is a message that was delivered and not acknowledged.
type unacked struct {
	sequence uint64
	delivery uint64 // the first one since the consumer was rewound
	due      time.Time
}

// every is for consumers without a filter.
const every = -1

// ackWait and mostUnacked are those of the pipeline's consumers.
const (
	ackWait     = time.Minute
	mostUnacked = 100_000
)

// Consumer makes a consumer of all messages.
func (s *Stream) Consumer(name string) *Consumer { return s.Partition(name, every) }

// Partition makes a consumer of one partition.
func (s *Stream) Partition(name string, partition int) *Consumer {
	c := &Consumer{Name: name, AckWait: ackWait, Most: mostUnacked, stream: s, partition: partition}
	c.rewind()
	return c
}

// rewind goes back to the ack floor: what was acknowledged above it is forgotten.
func (c *Consumer) rewind() {
	c.next, c.delivery, c.deliveryFloor = c.floor+1, 1, 0
	c.pending, c.times = map[uint64]*unacked{}, map[uint64]int{}
}

// given is one delivery.
type given struct {
	sequence, delivery uint64
	again              bool
}

// deliver delivers so many messages at most: first those whose ack wait is over, then
// new ones.
func (c *Consumer) deliver(most int) (out []given) {
	now := time.Now()
	for _, u := range c.overdue(now) {
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

// overdue are the messages whose ack wait is over, in the order in which it was.
func (c *Consumer) overdue(now time.Time) (due []*unacked) {
	for _, u := range c.pending {
		if !u.due.After(now) {
			due = append(due, u)
		}
	}
	slices.SortFunc(due, func(a, b *unacked) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.sequence, b.sequence))
	})
	return due
}

// event is when a message is to be delivered again; zero when none is unacknowledged.
func (c *Consumer) event() (next time.Time) {
	for _, u := range c.pending {
		if next.IsZero() || u.due.Before(next) {
			next = u.due
		}
	}
	return next
}

// ack takes an acknowledgement.
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

// Settle delivers everything to somebody without faults, who acknowledges one message.
func (c *Consumer) Settle(sequence uint64) {
	c.deliver(c.Most)
	c.ack(sequence)
}

// postpone lets a message come again after a time.
func (c *Consumer) postpone(sequence uint64, wait time.Duration) {
	if u := c.pending[sequence]; u != nil {
		u.due = time.Now().Add(wait)
	}
}

// Progress is what the broker says of the consumer.
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
