package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// Source is a process's reader of a consumer, like stream.Consumer. Only one goroutine may call
// Fetch.
type Source struct {
	process  *Process
	consumer *Consumer
	quiet    time.Time     // since when no message has arrived
	lag      time.Duration // delay of a new message to this reader: no two readers wake at once
	seen     uint64        // the highest sequence that may have been delivered before a rewind
	ordered  bool          // it acknowledges nothing, and no delivery is lost permanently
}

// Open starts reading. With rewind it starts at the ack floor.
func (p *Process) Open(ctx context.Context, c *Consumer, rewind bool) (*Source, error) {
	s := p.source(c)
	err := p.Do(ctx, Operation{Name: "open consumer", Key: c.Name}, func() error {
		if rewind {
			s.seen = c.next - 1
			c.rewind()
		}
		return nil
	})
	return s, err
}

// Read starts reading a stream from a sequence, without acknowledging anything.
func (p *Process) Read(ctx context.Context, s *Stream, from uint64) (*Source, error) {
	c := s.Consumer("a reader of " + s.Name)
	c.next = max(from, 1)
	err := p.Do(ctx, Operation{Name: "read stream", Key: s.Name}, func() error { return nil })
	reader := p.source(c)
	reader.ordered = true
	return reader, err
}

func (p *Process) source(c *Consumer) *Source {
	lag := p.world.Dice(fmt.Sprintf("reader of %s in life %d", c.Name, p.life)).Int64N(int64(travel))
	return &Source{process: p, consumer: c, quiet: time.Now(), lag: time.Duration(lag)}
}

const (
	// After idleAfter without a message, a Fetch may wait longer than requested, up to idleWait.
	// Otherwise simulated time without events would cost many fetches.
	idleAfter = 300 * time.Millisecond
	idleWait  = 5 * time.Second
)

// Fetch simulates stream.Consumer.Fetch: it collects messages until wait is over. A delivery or
// the connection may be lost.
func (s *Source) Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error) {
	had := len(into)
	if err := s.await(ctx, wait); err != nil {
		return into, err
	}
	into, err := s.take(into, maxMessages, maxBytes)
	if len(into) > had {
		s.quiet = time.Now()
	}
	return into, err
}

// await returns after wait. If nothing has arrived for a long time, it returns when something
// arrives.
func (s *Source) await(ctx context.Context, wait time.Duration) error {
	if time.Since(s.quiet) < idleAfter {
		return sleep(ctx, wait)
	}
	wait = max(wait, idleWait)
	w, c := s.process.world, s.consumer
	w.mu.Lock()
	if next := c.event(); !next.IsZero() {
		wait = min(wait, max(time.Until(next), time.Millisecond))
	}
	if c.next <= c.stream.last() {
		wait = time.Millisecond
	}
	changed := c.stream.changed
	w.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-changed:
		return sleep(ctx, s.lag)
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (s *Source) take(into []stream.Message, maxMessages, maxBytes int) ([]stream.Message, error) {
	w, c := s.process.world, s.consumer
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.process.dead {
		return into, errKilled
	}
	var got []string
	bytes := 0
	for maxMessages > 0 && (maxBytes <= 0 || bytes < maxBytes) {
		one := c.deliver(1)
		if len(one) == 0 {
			break
		}
		g := one[0]
		maxMessages, bytes = maxMessages-1, bytes+len(c.stream.At(g.sequence).Data)
		mark := fmt.Sprint(g.sequence)
		if s.ordered {
			delete(c.pending, g.sequence) // the client requests lost messages again
		} else if w.strikes(w.dice("deliver " + c.Name + " " + mark)) {
			got = append(got, mark+" [lost on its way]")
			continue
		}
		got = append(got, mark)
		into = append(into, s.message(g))
	}
	if len(got) == 0 {
		return into, nil
	}
	e := w.note(s.process.life, "fetch "+c.Name, none)
	e.answer = strings.Join(got, ", ")
	if w.strikes(w.dice("fetch " + c.Name + " " + got[0])) {
		e.fault = unsure
		return into, fmt.Errorf("fetch: %w", errFault)
	}
	return into, nil
}

func (s *Source) message(g given) stream.Message {
	stored := s.consumer.stream.At(g.sequence)
	m := stream.Message{
		Data: stored.Data, Subject: stored.Subject, Agent: stored.Agent, Partition: max(0, stored.Partition),
		Sequence: g.sequence, Received: stored.Received, Redelivered: g.again || g.sequence <= s.seen, Delivery: g.delivery,
	}
	return m.DeliveredBy(answers{s, g.sequence}, stored.ID)
}

func (s *Source) StreamCreated() time.Time { return s.consumer.stream.Created }

// Progress asks the broker for the progress of the consumer.
func (s *Source) Progress(ctx context.Context) (stream.Progress, error) {
	return ask(ctx, s.process, "progress of", s.consumer.Name, func() (stream.Progress, error) { return s.consumer.Progress(), nil })
}

// AtEnd simulates stream.Consumer.AtEnd.
func (s *Source) AtEnd(ctx context.Context) (end bool, now time.Time, err error) {
	progress, err := s.Progress(ctx)
	return err == nil && progress.Pending == 0, progress.Now, err
}

// OneServerDates simulates stream.Consumer.OneServerDates: the simulated broker is one server.
func (s *Source) OneServerDates() bool { return true }

func (s *Source) Close() {}

// answers receives the answers to a delivery.
type answers struct {
	source   *Source
	sequence uint64
}

// Send handles an answer without confirmation, which may be lost.
func (a answers) Send(_ string, answer []byte) error {
	p := a.source.process
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	if p.dead {
		return errKilled
	}
	e := p.world.note(p.life, a.name(answer), none)
	if p.world.strikes(p.world.dice(e.operation)) {
		e.fault = lost
		return nil
	}
	return a.take(answer)
}

// Confirm handles an answer and confirms it.
func (a answers) Confirm(ctx context.Context, _ string, answer []byte) error {
	o := Operation{Name: "confirm", Key: a.name(answer), Limit: confirmLimit}
	return a.source.process.Do(ctx, o, func() error { return a.take(answer) })
}

// confirmLimit is how long a receiver waits for a confirmation.
const confirmLimit = 5 * time.Second

func (a answers) name(answer []byte) string {
	return fmt.Sprintf("%s %s %d", answer, a.source.consumer.Name, a.sequence)
}

func (a answers) take(answer []byte) error {
	c := a.source.consumer
	switch text := string(answer); {
	case text == "+ACK" && a.sequence >= c.next: // not delivered since the rewind
		return fmt.Errorf("%w: no answer", errFault)
	case text == "+ACK":
		c.ack(a.sequence)
	case text == "+WPI":
		c.postpone(a.sequence, c.AckWait)
	case strings.HasPrefix(text, "-NAK"):
		var delay time.Duration
		if _, err := fmt.Sscanf(text, `-NAK {"delay": %d}`, &delay); err != nil {
			return fmt.Errorf("read the answer %q: %w", text, err)
		}
		c.postpone(a.sequence, delay)
	default:
		return fmt.Errorf("unknown answer %q", text)
	}
	return nil
}
