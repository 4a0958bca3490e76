package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// broker is the common interface of the simulated and the real broker.
type broker struct {
	keys interface {
		Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
		Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
		Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
		WriteAll(ctx context.Context, writes []stream.Write) (revisions []uint64, err error)
	}
	outlet interface {
		PublishAlerts(ctx context.Context, alerts []wire.Alert) error
		PublishReceipts(ctx context.Context, byPartition [][]schema.Receipt) error
		DeadLetter(ctx context.Context, letter wire.DeadLetter) error
		AppendLedger(ctx context.Context, events ...ledger.Event) error
		StreamState(ctx context.Context, name string) (stream.State, error)
		ConsumerProgress(ctx context.Context, stream, consumer string) (stream.Progress, error)
	}
	traces *stream.Client // publishes traces
	open   func(t *testing.T, durable string, rewind bool) source
}

type source interface {
	Fetch(ctx context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error)
	Close()
}

func realBroker(t *testing.T) *broker {
	t.Helper()
	client := brokertest.New(t).Connect()
	pipelinetest.EnsureTopology(t, client)
	keys := brokertest.Bucket(t, client, stream.Seals)
	return &broker{keys: keys, outlet: client, traces: client, open: func(t *testing.T, durable string, rewind bool) source {
		consumer, err := client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Traces, Durable: durable, Rewind: rewind})
		if err != nil {
			t.Fatal(err)
		}
		return consumer
	}}
}

// simulatedBroker returns a simulated broker without faults. It lives in a bubble.
func simulatedBroker(t *testing.T) (b *broker, end func()) {
	t.Helper()
	w := newWorld(1)
	w.stormy = 0
	time.Sleep(time.Second)
	p, _ := w.newProcess()
	traces := w.Stream(stream.Traces)
	w.Stream(stream.DeadLetters)
	consumers := map[string]*Consumer{stream.VerifierConsumer: traces.Consumer(stream.VerifierConsumer)}
	network := p.Network()
	client, err := stream.Connect(t.Context(), stream.Config{URL: "nats://127.0.0.1:4222", Dial: network.Dial})
	if err != nil {
		t.Fatal(err)
	}
	end = func() {
		network.Close()
		synctest.Wait()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	b = &broker{keys: p.Keys(w.Bucket(stream.Seals)), outlet: p.Broker(consumers[stream.VerifierConsumer]), traces: client}
	b.open = func(t *testing.T, durable string, rewind bool) source {
		s, err := p.Open(t.Context(), consumers[durable], rewind)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return b, end
}

// The simulated broker answers like the real one. The results of every simulation depend on that.
func TestSimulatedBrokerAnswersLikeTheRealOne(t *testing.T) {
	for _, sequence := range []struct {
		name string
		ask  func(t *testing.T, b *broker) *record
	}{
		{"compare and set", compareAndSet},
		{"duplicates", duplicates},
		{"traces", publishTraces},
		{"delivery", deliver},
		{"rewind", rewind},
	} {
		t.Run(sequence.name, func(t *testing.T) {
			want := sequence.ask(t, realBroker(t))
			var got *record
			defer emptyPools()
			bubble.Test(t, func(t *testing.T) {
				b, end := simulatedBroker(t)
				defer end()
				got = sequence.ask(t, b)
			})
			if !slices.Equal(got.lines, want.lines) || len(want.lines) == 0 {
				t.Errorf("the simulated broker answers\n%q\nthe real one\n%q", got.lines, want.lines)
			}
		})
	}
}

// record is a sequence of answers.
type record struct{ lines []string }

func (r *record) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// kind returns the part of an error that a caller can distinguish.
func kind(err error) string {
	for _, known := range []error{stream.ErrNotFound, stream.ErrConflict, stream.ErrUnavailable} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprint(err)
}

func compareAndSet(t *testing.T, b *broker) *record {
	t.Helper()
	r, ctx := new(record), t.Context()
	get := func(key string) {
		value, revision, err := b.keys.Get(ctx, key)
		r.add("get %s: %q %d %s", key, value, revision, kind(err))
	}
	write := func(writes ...stream.Write) {
		revisions, err := b.keys.WriteAll(ctx, writes)
		if err != nil {
			revisions = nil
		}
		r.add("write: %v %s", revisions, kind(err))
	}
	get("a")
	revision, err := b.keys.Create(ctx, "a", []byte("1"))
	r.add("create: %d %s", revision, kind(err))
	_, err = b.keys.Create(ctx, "a", []byte("2"))
	r.add("create again: %s", kind(err))
	write(stream.Write{Key: "a", Value: []byte("3"), Last: 1})
	write(stream.Write{Key: "a", Value: []byte("4"), Last: 1})
	get("a")
	write(stream.Write{Key: "b", Value: []byte("5"), Last: 7})
	get("b")
	write(stream.Write{Key: "b", Value: []byte("6")}, stream.Write{Key: "c", Value: []byte("7")})
	revision, err = b.keys.Put(ctx, "c", []byte("8"))
	r.add("put: %d %s", revision, kind(err))
	write(stream.Write{Key: "c", Value: []byte("9"), Last: 4})
	get("c")
	return r
}

func duplicates(t *testing.T, b *broker) *record {
	t.Helper()
	r, ctx := new(record), t.Context()
	count := func(doing, name string, err error) {
		state, failed := b.outlet.StreamState(ctx, name)
		r.add("%s: %s, %d messages, last %d, %s", doing, kind(err), state.Messages, state.LastSequence, kind(failed))
	}
	alert := func(ids ...string) {
		alerts := make([]wire.Alert, len(ids))
		for i, id := range ids {
			alerts[i] = wire.Alert{Kind: "finding", Agent: "a", ID: id, Data: []byte("{}")}
		}
		count(fmt.Sprint("alerts ", ids), stream.Alerts, b.outlet.PublishAlerts(ctx, alerts))
	}
	alert("1")
	alert("1")
	alert("1", "2", "3")
	alert("4", "4")
	receipts := [][]schema.Receipt{{{AgentID: "a", SessionID: "s", Sequence: 1, EventTime: today}}, nil, {{AgentID: "b", SessionID: "s", Sequence: 2, EventTime: today}}}
	count("receipts", stream.Receipts, b.outlet.PublishReceipts(ctx, receipts))
	count("receipts again", stream.Receipts, b.outlet.PublishReceipts(ctx, receipts))
	count("other company", stream.Receipts, b.outlet.PublishReceipts(ctx, [][]schema.Receipt{append(slices.Clone(receipts[0]), receipts[2]...)}))
	letter := wire.DeadLetter{Stage: "verifier", Reason: "invalid_json", Sequence: 3, Data: []byte("{")}
	count("letter", stream.DeadLetters, b.outlet.DeadLetter(ctx, letter))
	count("letter again", stream.DeadLetters, b.outlet.DeadLetter(ctx, letter))
	event := ledger.Event{Type: "CLAIM", ID: "x", Data: []byte("{}")}
	count("ledger", stream.Ledger, b.outlet.AppendLedger(ctx, event))
	count("ledger again", stream.Ledger, b.outlet.AppendLedger(ctx, event, ledger.Event{Type: "CLAIM", ID: "y", Data: []byte("{}")}))
	return r
}

// traces returns records of an agent.
func traces(first, n int) (records []stream.Record) {
	for i := range n {
		records = append(records, pipelinetest.Record("a", fmt.Appendf(nil, `{"n":%d}`, first+i)))
	}
	return records
}

func publishTraces(t *testing.T, b *broker) *record {
	t.Helper()
	r, ctx := new(record), t.Context()
	publish := func(first, n int) {
		committer := b.traces.NewCommitter(stream.CommitConfig{}) // a new one has an empty memory
		defer committer.Close()
		outcomes, err := committer.Publish(ctx, traces(first, n))
		r.add("publish %d..%d: %s", first, first+n-1, kind(err))
		for _, o := range outcomes {
			r.add("%d %v %s", o.Sequence, o.Duplicate, kind(o.Err))
		}
	}
	publish(1, 1)
	publish(1, 1)
	publish(2, 3)
	publish(4, 3) // one of them is known
	for _, sequence := range []uint64{1, 4, 6, 7} {
		data, err := b.traces.Trace(ctx, sequence)
		r.add("trace %d: %s %s", sequence, data, kind(err))
	}
	return r
}

// fetched records the deliveries of one fetch. The fetch waits only if not enough messages
// arrive.
func (r *record) fetched(t *testing.T, s source, n int) []stream.Message {
	t.Helper()
	messages, err := s.Fetch(t.Context(), nil, n, 0, 2*time.Second)
	for i := range messages {
		m := &messages[i]
		r.add("sequence %d, delivery %d, again %v, agent %s, partition %d: %s", m.Sequence, m.Delivery, m.Redelivered, m.Agent, m.Partition, m.Data)
	}
	r.add("%d messages, %s", len(messages), kind(err))
	return messages
}

func (r *record) progress(t *testing.T, b *broker) {
	t.Helper()
	progress, err := b.outlet.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
	progress.Now = time.Time{}
	r.add("%+v %s", progress, kind(err))
}

// store publishes traces one after another, so they are in order.
func store(t *testing.T, b *broker, first, n int) {
	t.Helper()
	committer := b.traces.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	if _, err := committer.Publish(t.Context(), traces(first, n)); err != nil {
		t.Fatal(err)
	}
}

func deliver(t *testing.T, b *broker) *record {
	t.Helper()
	r := new(record)
	store(t, b, 1, 5)
	s := b.open(t, stream.VerifierConsumer, false)
	defer s.Close()
	first := r.fetched(t, s, 5)
	ack := func(messages ...stream.Message) {
		if err := stream.Acknowledge(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		r.progress(t, b)
	}
	r.progress(t, b)
	ack(first[1])
	if err := first[0].NakAfter(0); err != nil {
		t.Fatal(err)
	}
	again := r.fetched(t, s, 1)
	ack(again...)
	ack(first[0]) // a late ack
	store(t, b, 6, 2)
	later := r.fetched(t, s, 2)
	ack(first[3])
	ack(later[0])
	ack(first[2])
	ack(first[4], later[1])
	return r
}

func rewind(t *testing.T, b *broker) *record {
	t.Helper()
	r := new(record)
	store(t, b, 1, 5)
	s := b.open(t, stream.VerifierConsumer, true)
	first := r.fetched(t, s, 5)
	if err := stream.Acknowledge(t.Context(), []stream.Message{first[0], first[2]}); err != nil {
		t.Fatal(err)
	}
	r.progress(t, b)
	s.Close()
	s = b.open(t, stream.VerifierConsumer, true)
	defer s.Close()
	second := r.fetched(t, s, 4) // the first one is below the floor
	if err := stream.Acknowledge(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	r.progress(t, b)
	return r
}
