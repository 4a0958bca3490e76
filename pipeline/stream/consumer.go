package stream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ConsumerConfig configures what a consumer reads and how far it fetches ahead.
type ConsumerConfig struct {
	Stream  string
	Durable string // name of a durable consumer; empty: a reader that starts at From and acks nothing

	// Rewind redelivers everything above the ack floor at once, in stream order, instead of after
	// the ack wait. Use it only for a consumer with a single reader: two readers would disturb
	// each other.
	Rewind bool

	From   uint64    // first sequence of a reader; 0: the stream's first, or that of Since
	Since  time.Time // a reader without From starts with what the broker received at this time or later
	Filter string    // subject filter of a reader; empty: no filter

	PrefetchMessages int // fetched ahead; default 10,000
	PrefetchBytes    int // fetched ahead; default 8 MiB. A larger message is fetched alone
}

func (c ConsumerConfig) complete() ConsumerConfig {
	if c.PrefetchMessages <= 0 {
		c.PrefetchMessages = 10_000
	}
	if c.PrefetchBytes <= 0 {
		c.PrefetchBytes = 8 << 20
	}
	return c
}

// Consumer reads a stream. Only one goroutine may call Fetch. Acks and lookups are safe for
// concurrent use.
type Consumer struct {
	client *Client
	cfg    ConsumerConfig
	pull   *pull
	agents *agentNames // nil unless the stream is TRACES

	// created is when the stream was created. Together with a sequence it identifies a message,
	// even if the stream is removed and created again.
	created time.Time
	// seen is the highest sequence that may have been delivered before the last rewind.
	seen uint64
	// delivered is the delivery number of the reader's last message.
	delivered uint64
	broken    bool // a delivery is missing, or the server forgot the reader: it must begin again

	name    string // of the consumer in the broker
	oneDate bool   // one server dates all messages of the stream
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

// open starts to read. A reader that starts again continues after the last message that it
// received. After an error open may be called again.
func (r *Consumer) open(ctx context.Context) error {
	ctx, cancel := r.client.within(ctx, r.client.cfg.Timeout)
	defer cancel()
	stream, err := r.client.js.Stream(ctx, r.cfg.Stream)
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	if err := r.demandSame(info); err != nil {
		return err
	}
	r.created = info.Created
	r.oneDate = info.Cluster == nil || len(info.Cluster.Replicas) == 0
	consumer, err := bind(ctx, stream, r.cfg)
	if err != nil {
		return err
	}
	r.name = consumer.CachedInfo().Name
	if r.cfg.Rewind && r.cfg.Durable != "" {
		if err := r.rewind(ctx, consumer); err != nil {
			return fmt.Errorf("rewind consumer %s: %w", r.cfg.Durable, err)
		}
	}
	next, err := r.client.newPull(&r.cfg, r.name)
	if err != nil {
		return err
	}
	r.pull, r.delivered, r.broken = next, 0, false
	return nil
}

// demandSame returns an ErrReplaced if a reader that starts again would continue in another stream
// than the one that it has read.
func (r *Consumer) demandSame(info *jetstream.StreamInfo) error {
	switch {
	case r.created.IsZero():
		return nil
	case !r.created.Equal(info.Created):
		return &replaced{fmt.Sprintf("it was created at %s, and this one at %s", r.created.UTC(), info.Created.UTC())}
	case r.cfg.From > info.State.LastSeq+1:
		return &replaced{fmt.Sprintf("message %d was read, and the last one is %d now", r.cfg.From-1, info.State.LastSeq)}
	}
	return nil
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

// forgetReader is how long the server keeps an inactive reader.
const forgetReader = 5 * time.Minute

// rewind asks the server (2.14) to go back to the ack floor. An older server redelivers the same
// messages when their ack wait is over.
func (r *Consumer) rewind(ctx context.Context, consumer jetstream.Consumer) error {
	info, err := consumer.Info(ctx)
	if err != nil {
		return err
	}
	r.seen = info.Delivered.Stream
	err = r.client.reset(ctx, r.cfg.Stream, r.cfg.Durable)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil
	}
	return err
}

// reset asks the server (2.14) to continue a consumer after its ack floor.
func (c *Client) reset(ctx context.Context, stream, consumer string) error {
	reply, err := c.conn.RequestWithContext(ctx, api+"CONSUMER.RESET."+stream+"."+consumer, nil)
	if err != nil {
		return err
	}
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return fmt.Errorf("read the broker's answer %q: %w", reply.Data, err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}

// Fetch appends messages to into and returns it: at most maxMessages, and about maxBytes of data
// (0: no limit). It waits up to wait for the first message, and then collects messages until wait
// is over. No message within that time is not an error. With an error, Fetch also returns what
// was received before.
func (r *Consumer) Fetch(ctx context.Context, into []Message, maxMessages, maxBytes int, wait time.Duration) ([]Message, error) {
	if r.broken {
		r.pull.stop(0) // after an error it is stopped again, which is harmless
		if err := r.open(ctx); err != nil {
			return into, fmt.Errorf("resume reading stream %s: %w", r.cfg.Stream, classify(err))
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errWaited)
	defer cancel()
	for bytes := 0; maxMessages > 0 && (maxBytes <= 0 || bytes < maxBytes); maxMessages-- {
		msg, err := r.pull.take(ctx)
		if r.broken = r.cfg.Durable == "" && isOneOf(err, errLost, nats.ErrNoResponders, jetstream.ErrConsumerDeleted); r.broken {
			return into, nil // or the server no longer knows the reader
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
				r.broken = true // a delivery was lost
				return into, nil
			}
			r.cfg.From = m.Sequence + 1
		}
		into = append(into, m)
		bytes += len(m.Data)
	}
	return into, nil
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

// Close stops reading. The server forgets a reader's consumer at once if it hears of it, otherwise after
// a while. For a shared consumer Close gives back what was fetched ahead, so another reader receives it at
// once instead of after the ack wait.
func (r *Consumer) Close() {
	if r.cfg.Durable == "" || r.cfg.Rewind {
		r.pull.stop(0)
		if r.cfg.Durable == "" {
			_ = r.client.conn.Publish(api+"CONSUMER.DELETE."+r.cfg.Stream+"."+r.name, nil)
		}
		return
	}
	for _, msg := range r.pull.stop(closeWait) {
		if err := r.client.conn.Publish(msg.Reply, nak); err != nil {
			r.client.cfg.Logger.Warn("prefetched messages were not returned; the broker redelivers them after the ack wait", "error", err)
			return
		}
	}
}

// closeWait is how long Close waits for messages that the broker has already sent.
const closeWait = time.Second

// StreamCreated returns when the stream was created.
func (r *Consumer) StreamCreated() time.Time { return r.created }

// OneServerDates reports whether one server dates all messages of the stream. In a cluster each
// server does, as the leader.
func (r *Consumer) OneServerDates() bool { return r.oneDate }

// AtEnd reports whether a reader has received every message that the stream held at the time now,
// which the server tells. Only the goroutine that fetches may call it.
func (r *Consumer) AtEnd(ctx context.Context) (end bool, now time.Time, err error) {
	progress, err := r.client.ConsumerProgress(ctx, r.cfg.Stream, r.name)
	if r.broken = r.broken || errors.Is(err, jetstream.ErrConsumerNotFound); r.broken {
		return false, now, nil // the next fetch begins again
	}
	return progress.Pending == 0 && progress.Deliveries == r.delivered, progress.Now, err
}

// Progress is the progress of a durable consumer.
type Progress struct {
	AckFloor uint64 // every message up to this sequence is acknowledged
	// Deliveries is the number of deliveries since the consumer was created or rewound. The
	// sequence of the last delivery cannot replace it: in a cluster the server advances that
	// sequence over messages that the consumer's filter leaves out.
	Deliveries uint64
	Unacked    int       // delivered but not acknowledged
	Pending    uint64    // not delivered yet
	Now        time.Time // broker time of the answer
}

// Progress asks the server for the progress of the consumer.
func (r *Consumer) Progress(ctx context.Context) (Progress, error) {
	return r.client.durableProgress(ctx, r.cfg.Stream, r.cfg.Durable)
}

// Backlog returns the number of messages that the durable consumers have not acknowledged,
// including those that were never fetched.
func (c *Client) Backlog(ctx context.Context, stream string, durables ...string) (backlog uint64, err error) {
	for _, name := range durables {
		progress, err := c.ConsumerProgress(ctx, stream, name)
		if err != nil {
			return 0, err
		}
		backlog += progress.Pending + uint64(progress.Unacked)
	}
	return backlog, nil
}

func (c *Client) durableProgress(ctx context.Context, stream, name string) (Progress, error) {
	ctx, cancel := c.within(ctx, c.cfg.Timeout)
	defer cancel()
	consumer, err := c.js.Consumer(ctx, stream, name)
	if err != nil {
		return Progress{}, fmt.Errorf("read the progress of consumer %s on %s: %w", name, stream, classify(err))
	}
	info := consumer.CachedInfo()
	return Progress{
		AckFloor:   info.AckFloor.Stream,
		Deliveries: info.Delivered.Consumer,
		Unacked:    info.NumAckPending,
		Pending:    info.NumPending,
		Now:        info.TimeStamp,
	}, nil
}

// State is the state of a stream.
type State struct {
	Created       time.Time
	FirstSequence uint64
	LastSequence  uint64
	LastReceived  time.Time // broker time of the last message; zero if there was none
	Messages      uint64
	Subjects      uint64 // of a bucket: keys, including removed ones
	Bytes         uint64
	Now           time.Time // broker time of the answer
}

// Behind returns the number of messages after the given sequence.
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
		return State{}, fmt.Errorf("read the state of stream %s: %w", name, err)
	}
	info := stream.CachedInfo()
	return State{
		Created:       info.Created,
		FirstSequence: info.State.FirstSeq,
		LastSequence:  info.State.LastSeq,
		LastReceived:  info.State.LastTime,
		Messages:      info.State.Msgs,
		Subjects:      info.State.NumSubjects,
		Bytes:         info.State.Bytes,
		Now:           info.TimeStamp,
	}, nil
}

// Trace returns the bytes that stream TRACES holds under a sequence. It returns ErrNotFound if
// there are none, or none any more.
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
