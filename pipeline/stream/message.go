package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Message is one message of a stream. Data belongs to the receiver.
type Message struct {
	Data        []byte
	Subject     string    // the subject in the stream
	Agent       string    // agent_id from the subject; only in stream TRACES
	Partition   int       // only in stream TRACES
	Sequence    uint64    // in the stream
	Received    time.Time // broker time, UTC
	Redelivered bool      // it may have been delivered before

	// Delivery counts, from 1, the deliveries of a durable consumer since it was created or
	// rewound. A missing number is a lost delivery. Its message is redelivered, after others,
	// when its ack wait is over.
	Delivery uint64

	answers Answers
	reply   string
	header  nats.Header
}

// Agents returns the agents of messages of stream TRACES, one for each message.
func Agents(messages []Message) iter.Seq[string] {
	return func(yield func(agentID string) bool) {
		for i := range messages {
			if !yield(messages[i].Agent) {
				return
			}
		}
	}
}

// Answers sends the receiver's answers to deliveries: normally on the connection of the
// deliveries.
type Answers interface {
	// Send sends an answer to a delivery's reply subject without waiting.
	Send(reply string, answer []byte) error
	// Confirm sends an answer and returns when the broker has confirmed it and every earlier one.
	Confirm(ctx context.Context, reply string, answer []byte) error
}

// DeliveredBy returns m as a delivery that was published under an id and is answered through
// answers instead of a connection. Tests use it to simulate the broker.
func (m Message) DeliveredBy(answers Answers, id string) Message {
	m.answers, m.header = answers, nats.Header{jetstream.MsgIDHeader: {id}}
	return m
}

// answering sends answers on a client's connection.
type answering struct{ *Client }

// Send publishes the answer.
func (a answering) Send(reply string, answer []byte) error { return a.conn.Publish(reply, answer) }

// Confirm sends the answer as a request. The broker confirms no ack of a message that it does not
// know to have delivered, and a broker that was killed may have forgotten its latest deliveries.
// It then redelivers such a message, so there is nothing left to confirm, and Confirm returns
// nil.
func (a answering) Confirm(ctx context.Context, reply string, answer []byte) error {
	asked, cancel := a.within(ctx, attemptTimeout)
	defer cancel()
	_, err := a.conn.RequestWithContext(asked, reply, answer)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && a.forgot(ctx, reply) {
		return nil
	}
	return err
}

// forgot reports whether the broker answers that it has not delivered the message yet.
func (a answering) forgot(ctx context.Context, reply string) bool {
	meta, err := parseReply(reply)
	if err != nil {
		return false
	}
	ctx, cancel := a.within(ctx, attemptTimeout)
	defer cancel()
	consumer, err := a.js.Consumer(ctx, meta.stream, meta.consumer)
	return err == nil && consumer.CachedInfo().Delivered.Stream < meta.sequence
}

func (r *Consumer) message(msg *nats.Msg) (Message, error) {
	m := Message{Data: msg.Data, Subject: msg.Subject, answers: answering{r.client}, reply: msg.Reply, header: msg.Header}
	meta, err := parseReply(m.reply)
	if err != nil {
		return m, err
	}
	m.Sequence, m.Delivery, m.Received = meta.sequence, meta.delivery, time.Unix(0, meta.timestamp).UTC()
	m.Redelivered = meta.delivered > 1 || m.Sequence <= r.seen
	switch {
	case r.agents != nil:
		m.Partition, m.Agent = r.agents.of(m.Subject)
	case r.cfg.Stream == Receipts:
		m.Partition = wire.ReceiptPartition(m.Subject)
	}
	return m, nil
}

// ID returns the id under which the message was published, or "".
func (m *Message) ID() string { return m.Header(jetstream.MsgIDHeader) }

// Unrouted reports whether the message lies in TRACES under a subject that names no partition.
func (m *Message) Unrouted() bool {
	return strings.HasPrefix(m.Agent, "\xff") && m.Agent[1:] == m.Subject
}

// Header returns a header's first value, or "".
func (m *Message) Header(name string) string { return m.header.Get(name) }

// PublishedIn returns the ids of the span of OpenTelemetry in which the message was published, or two empty
// texts. Libraries write the header in either case.
func (m *Message) PublishedIn() (trace, span string) {
	header := m.header.Get(wire.HeaderTraceparent)
	if header == "" {
		header = m.header.Get("Traceparent")
	}
	return wire.TraceAndSpan(header)
}

// Slim releases data, subject and header, so many messages can wait for their ack in little
// memory.
func (m *Message) Slim() { m.Data, m.Subject, m.header = nil, "", nil }

// A receiver's answers to a delivery. The client library's own methods would keep the whole
// message in memory, and would refuse to repeat an ack that may not have arrived.
var (
	ack        = []byte("+ACK")
	inProgress = []byte("+WPI")
	nak        = []byte("-NAK")
)

const nakAfter = `-NAK {"delay": %d}` // nanoseconds

// NakAfter requests a redelivery after the delay.
func (m *Message) NakAfter(delay time.Duration) error {
	return m.answer("request redelivery of", fmt.Appendf(nil, nakAfter, delay.Nanoseconds()))
}

func (m *Message) answer(doing string, text []byte) error {
	if err := m.answers.Send(m.reply, text); err != nil {
		return fmt.Errorf("%s a message: %w", doing, classify(err))
	}
	return nil
}

// Acknowledge acknowledges every message. It returns when the broker has confirmed the last ack,
// and with it every earlier ack of this connection. After an error it is safe to repeat. Some
// messages may be redelivered even without an error: a broker that was killed may have forgotten
// their delivery.
func Acknowledge(ctx context.Context, messages []Message) error {
	for i := range messages {
		m := &messages[i]
		if i < len(messages)-1 {
			if err := m.answer("acknowledge", ack); err != nil {
				return err
			}
		} else if err := m.answers.Confirm(ctx, m.reply, ack); err != nil {
			return fmt.Errorf("acknowledge a message: %w", classify(err))
		}
	}
	return nil
}

// metadata is what the server writes into the reply subject of a delivery.
type metadata struct {
	stream, consumer   string
	delivered          uint64 // number of deliveries of this message
	sequence, delivery uint64 // in the stream, in the consumer
	timestamp          int64  // nanoseconds
}

var errReply = errors.New("the message does not come from a stream")

// parseReply parses one of the server's two forms without allocating:
//
//	$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<consumer sequence>.<time>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<sequence>. … .<pending>[.<random>]
func parseReply(reply string) (m metadata, err error) {
	rest, ok := strings.CutPrefix(reply, "$JS.ACK.")
	skip := 2
	if strings.Count(rest, ".") > 6 {
		skip = 4
	}
	for range skip - 2 {
		_, rest, _ = strings.Cut(rest, ".")
	}
	m.stream, rest, _ = strings.Cut(rest, ".")
	m.consumer, rest, _ = strings.Cut(rest, ".")
	var fields [4]uint64
	for i := range fields {
		var field string
		field, rest, _ = strings.Cut(rest, ".")
		var invalid error
		fields[i], invalid = strconv.ParseUint(field, 10, 64)
		ok = ok && invalid == nil
	}
	if !ok {
		return m, fmt.Errorf("%w: its reply subject is %q", errReply, reply)
	}
	m.delivered, m.sequence, m.delivery, m.timestamp = fields[0], fields[1], fields[2], int64(fields[3])
	return m, nil
}

// maxAgentNames limits the memory of agentNames. A larger fleet costs one allocation for each
// message.
const maxAgentNames = 100_000

// agentNames caches decoded tokens, so all messages of an agent share one string.
type agentNames struct{ byToken map[string]string }

// of parses partition and agent from the subject of a stored trace. For a subject that Plumbline
// would not write it returns a name that is not UTF-8. No record can have that name, so every
// comparison with an agent_id fails.
func (a *agentNames) of(stored string) (partition int, agent string) {
	partition, token, err := subject.ParseStored(stored)
	if err != nil {
		return 0, "\xff" + stored
	}
	if agent, ok := a.byToken[token]; ok {
		return partition, agent
	}
	if agent, err = subject.Agent(token); err != nil {
		return partition, "\xff" + token
	}
	if a.byToken == nil || len(a.byToken) >= maxAgentNames {
		a.byToken = make(map[string]string)
	}
	agent = strings.Clone(agent)
	a.byToken[strings.Clone(token)] = agent
	return partition, agent
}

func keepAlive(messages []Message) error {
	for i := range messages {
		if err := messages[i].answer("extend the ack wait of", inProgress); err != nil {
			return err
		}
	}
	return nil
}

// Hold restarts the ack wait of messages, again and again, until release is called or ctx ends. So
// they are not redelivered while they are being processed. It passes errors to failed; after an
// error the messages may be redelivered. release returns once nothing more is sent.
func Hold(ctx context.Context, messages []Message, failed func(error)) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(ackWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := keepAlive(messages); err != nil {
					failed(err)
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}
