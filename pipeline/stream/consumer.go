package stream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ConsumerConfig says what to read and how far ahead.
type ConsumerConfig struct {
	Stream  string
	Durable string // one of the durable consumers; empty: a reader that starts at From and acks nothing

	// Rewind lets everything above the ack floor be delivered again at once, in
	// the stream's order, instead of after the ack wait. It is for a consumer
	// with a single reader: two would only disturb each other.
	Rewind bool

	From   uint64    // first sequence of a reader; 0 is the stream's first, or what Since says
	Since  time.Time // a reader without From starts with what the broker took at this time or later
	Filter string    // subject filter of a reader; empty is all

	PrefetchMessages int // fetched ahead; default 10,000
	PrefetchBytes    int // fetched ahead; default 32 MiB. A message that is larger is fetched alone
}

func (c ConsumerConfig) complete() ConsumerConfig {
	if c.PrefetchMessages <= 0 {
		c.PrefetchMessages = 10_000
	}
	if c.PrefetchBytes <= 0 {
		c.PrefetchBytes = 32 << 20
	}
	return c
}

// Consumer reads a stream. Fetch is for one goroutine; acks and look-ups are
// safe for concurrent use.
type Consumer struct {
	client   *Client
	cfg      ConsumerConfig
	consumer jetstream.Consumer
	pull     *pull
	agents   *agentNames // nil unless the stream is TRACES

	// created is when the stream was made: with a sequence it identifies a
	// message, even if the stream is removed and made again.
	created time.Time
	// seen is the highest sequence that may have been delivered before a rewind.
	seen uint64
	// delivered is the number of a reader's last delivery.
	delivered uint64
	broken    bool // a reader misses a delivery, or the server forgot it: it is to begin again
}

// OpenConsumer starts reading. The stream and the durable consumer must exist.
func (c *Client) OpenConsumer(ctx context.Context, cfg ConsumerConfig) (*Consumer, error) {
	r := &Consumer{client: c, cfg: cfg.complete()}
	if cfg.Stream == Traces {
		r.agents = &agentNames{}
	}
	err := c.unlessRefused(ctx, func(ctx context.Context) error { return classify(r.open(ctx)) }, "."+cfg.Stream)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", cfg.Stream, err)
	}
	return r, nil
}

func (r *Consumer) open(ctx context.Context) error {
	ctx, cancel := r.client.within(ctx, r.client.cfg.Timeout)
	defer cancel()
	stream, err := r.client.js.Stream(ctx, r.cfg.Stream)
	if err != nil {
		return err
	}
	r.created = stream.CachedInfo().Created
	if r.consumer, err = bind(ctx, stream, r.cfg); err != nil {
		return err
	}
	if r.cfg.Rewind && r.cfg.Durable != "" {
		if err := r.rewind(ctx, r.cfg); err != nil {
			return err
		}
	}
	r.pull, err = r.client.newPull(&r.cfg, r.consumer.CachedInfo().Name)
	return err
}

func bind(ctx context.Context, stream jetstream.Stream, cfg ConsumerConfig) (jetstream.Consumer, error) {
	if cfg.Durable != "" {
		return stream.Consumer(ctx, cfg.Durable)
	}
	reader := jetstream.ConsumerConfig{
		Name: rand.Text(), AckPolicy: jetstream.AckNonePolicy, FilterSubject: cfg.Filter, Replicas: 1, MemoryStorage: true, InactiveThreshold: forgetReader,
	}
	switch {
	case cfg.From > 0:
		reader.DeliverPolicy, reader.OptStartSeq = jetstream.DeliverByStartSequencePolicy, cfg.From
	case !cfg.Since.IsZero():
		reader.DeliverPolicy, reader.OptStartTime = jetstream.DeliverByStartTimePolicy, &cfg.Since
	}
	return stream.CreateConsumer(ctx, reader)
}

// forgetReader is how long the server keeps a reader that asks for nothing.
const forgetReader = 5 * time.Minute

// rewind asks the server (2.14) to go back to the ack floor. On an older one
// the same messages come again when their ack wait is over.
func (r *Consumer) rewind(ctx context.Context, cfg ConsumerConfig) error {
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return err
	}
	r.seen = info.Delivered.Stream
	api := "$JS.API.CONSUMER.RESET." + cfg.Stream + "." + cfg.Durable
	answer, err := r.client.conn.RequestWithContext(ctx, api, nil)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rewind consumer %s: %w", cfg.Durable, err)
	}
	if err := apiError(answer.Data); err != nil {
		return fmt.Errorf("rewind consumer %s: %w", cfg.Durable, err)
	}
	return nil
}

// Fetch appends messages to into and returns it: at most maxMessages, and about
// maxBytes of data (0: no bound). It waits up to wait for the first one and then
// takes what is there until wait is over. No message within that time is no
// error. With an error, what was received until then is returned too.
func (r *Consumer) Fetch(ctx context.Context, into []Message, maxMessages, maxBytes int, wait time.Duration) ([]Message, error) {
	if r.broken {
		if err := r.beginAgain(ctx); err != nil {
			return into, fmt.Errorf("begin again to read stream %s: %w", r.cfg.Stream, classify(err))
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errWaited)
	defer cancel()
	for bytes := 0; maxMessages > 0 && (maxBytes <= 0 || bytes < maxBytes); maxMessages-- {
		msg, err := r.pull.take(ctx)
		if r.broken = r.cfg.Durable == "" && forgotten(err); r.broken {
			return into, nil
		}
		if err != nil {
			return into, fetchError(ctx, err)
		}
		m, err := r.message(msg)
		if err != nil {
			return into, fmt.Errorf("read a message of the broker: %w", err)
		}
		if r.cfg.Durable == "" {
			if r.delivered++; m.Delivery != r.delivered {
				r.broken = true // a delivery got lost
				return into, nil
			}
			r.cfg.From = m.Sequence + 1
		}
		into = append(into, m)
		bytes += len(m.Data)
	}
	return into, nil
}

// beginAgain makes the reader's consumer again, behind the last message that it was given. After an error
// the next Fetch tries again.
func (r *Consumer) beginAgain(ctx context.Context) error {
	ctx, cancel := r.client.within(ctx, r.client.cfg.Timeout)
	defer cancel()
	r.pull.stop(0)
	stream, err := r.client.js.Stream(ctx, r.cfg.Stream)
	if err != nil {
		return err
	}
	if r.consumer, err = bind(ctx, stream, r.cfg); err != nil {
		return err
	}
	next, err := r.client.newPull(&r.cfg, r.consumer.CachedInfo().Name)
	if err != nil {
		return err // the one of before has ended, and may be stopped again
	}
	r.pull, r.delivered, r.broken = next, 0, false
	return nil
}

var errWaited = errors.New("waited long enough")

func fetchError(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("fetch: %w", classify(err))
	}
	if cause := context.Cause(ctx); !errors.Is(cause, errWaited) {
		return fmt.Errorf("fetch: %w", cause)
	}
	return nil
}

// Close stops reading. What was fetched ahead for a shared consumer is given
// back, so that another reader has it at once instead of after the ack wait.
func (r *Consumer) Close() {
	if r.cfg.Durable == "" || r.cfg.Rewind {
		r.pull.stop(0)
		return
	}
	for _, msg := range r.pull.stop(closeWait) {
		if err := r.client.conn.Publish(msg.Reply, nak); err != nil {
			r.client.cfg.Logger.Warn("messages are not given back, they come again after the ack wait", "error", err)
			return
		}
	}
}

// closeWait is how long Close waits for what the broker has sent already.
const closeWait = time.Second

// StreamCreated is when the stream was made.
func (r *Consumer) StreamCreated() time.Time { return r.created }

// Progress is how far a durable consumer is.
type Progress struct {
	AckFloor uint64 // every message up to this sequence is acknowledged
	// Deliveries counts what was delivered since the consumer was made or rewound. The
	// sequence of what was delivered last does not serve: in a cluster the server moves it
	// on over messages that the consumer's filter leaves out.
	Deliveries uint64
	Unacked    int       // delivered and not acknowledged
	Pending    uint64    // not delivered yet
	Now        time.Time // broker time of the answer
}

// Progress asks the server how far the consumer is.
func (r *Consumer) Progress(ctx context.Context) (Progress, error) {
	ctx, cancel := r.client.within(ctx, r.client.cfg.Timeout)
	defer cancel()
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("ask for the consumer's progress: %w", classify(err))
	}
	return progressOf(info), nil
}

// Backlog is how many messages of durable consumers are not acknowledged, those that
// nobody fetched yet among them.
func (c *Client) Backlog(ctx context.Context, stream string, durables ...string) (backlog uint64, err error) {
	for _, name := range durables {
		progress, err := c.ConsumerProgress(ctx, stream, name)
		if err != nil {
			return 0, err
		}
		backlog += progress.Pending + uint64(progress.Unacked) // a count
	}
	return backlog, nil
}

// ConsumerProgress is the same for a consumer that somebody else reads.
func (c *Client) ConsumerProgress(ctx context.Context, stream, name string) (Progress, error) {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	consumer, err := c.js.Consumer(ctx, stream, name)
	if err != nil {
		return Progress{}, fmt.Errorf("ask for the progress of %s on %s: %w", name, stream, classify(err))
	}
	return progressOf(consumer.CachedInfo()), nil
}

func progressOf(info *jetstream.ConsumerInfo) Progress {
	return Progress{
		AckFloor:   info.AckFloor.Stream,
		Deliveries: info.Delivered.Consumer,
		Unacked:    info.NumAckPending,
		Pending:    info.NumPending,
		Now:        info.TimeStamp,
	}
}

// State is what a stream holds.
type State struct {
	Created       time.Time
	FirstSequence uint64
	LastSequence  uint64
	LastReceived  time.Time // broker time of the last message; zero when there was none
	Messages      uint64
	Bytes         uint64
	Now           time.Time // broker time of the answer
}

// Behind is how many messages came after the one with a sequence.
func (s State) Behind(sequence uint64) uint64 {
	if s.LastSequence <= sequence {
		return 0
	}
	return s.LastSequence - max(sequence, s.FirstSequence-1)
}

// StreamState asks the server for a stream's state.
func (c *Client) StreamState(ctx context.Context, name string) (State, error) {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	var stream jetstream.Stream
	err := c.unlessRefused(ctx, func(ctx context.Context) (err error) {
		stream, err = c.js.Stream(ctx, name)
		return classify(err)
	}, "."+name)
	if err != nil {
		return State{}, fmt.Errorf("ask for the state of stream %s: %w", name, err)
	}
	info := stream.CachedInfo()
	return State{
		Created:       info.Created,
		FirstSequence: info.State.FirstSeq,
		LastSequence:  info.State.LastSeq,
		LastReceived:  info.State.LastTime,
		Messages:      info.State.Msgs,
		Bytes:         info.State.Bytes,
		Now:           info.TimeStamp,
	}, nil
}

// Trace returns the bytes that stream TRACES holds under a sequence, or
// ErrNotFound when it holds none, or no longer.
func (c *Client) Trace(ctx context.Context, sequence uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	stream, err := c.js.Stream(ctx, Traces)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", Traces, classify(err))
	}
	message, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("message %d of stream %s: %w", sequence, Traces, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("message %d of stream %s: %w", sequence, Traces, classify(err))
	}
	return message.Data, nil
}
