package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

func record(agent, data string) stream.Record {
	return stream.Record{Agent: agent, Data: []byte(data), Digest: schema.DigestOf([]byte(data))}
}

// records returns n different records of a few agents, in an order that must be kept.
func records(prefix string, n int) []stream.Record {
	all := make([]stream.Record, n)
	for i := range all {
		all[i] = record(fmt.Sprintf("did:web:%d", i%7), fmt.Sprintf("%s %d", prefix, i))
	}
	return all
}

func newCommitter(t testing.TB, client *stream.Client, cfg stream.CommitConfig) *stream.Committer {
	t.Helper()
	committer := client.NewCommitter(cfg)
	t.Cleanup(committer.Close)
	return committer
}

func TestPublishStoresInOrder(t *testing.T) {
	client := connect(t, brokertest.New(t))
	all := records("r", 2500)
	outcomes, err := newCommitter(t, client, stream.CommitConfig{}).Publish(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i, outcome := range outcomes {
		if outcome != (stream.Outcome{Sequence: uint64(i + 1)}) {
			t.Fatalf("outcome %d = %+v", i, outcome)
		}
	}
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	for i, m := range fetch(t, consumer, len(all)) {
		if m.Sequence != uint64(i+1) || m.Agent != all[i].Agent || !bytes.Equal(m.Data, all[i].Data) {
			t.Fatalf("message %d = %+v", i, m)
		}
	}
}

func TestPublishReportsDuplicates(t *testing.T) {
	client := connect(t, brokertest.New(t))
	committer := newCommitter(t, client, stream.CommitConfig{})
	if _, err := committer.Publish(t.Context(), []stream.Record{record("a", "known")}); err != nil {
		t.Fatal(err)
	}
	outcomes, err := committer.Publish(t.Context(), []stream.Record{
		record("a", "new"), record("a", "known"), record("a", "twice"), record("a", "twice"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []stream.Outcome{{Sequence: 2}, {Sequence: 1, Duplicate: true}, {Sequence: 3}, {Sequence: 3, Duplicate: true}}
	for i := range want {
		if outcomes[i] != want[i] {
			t.Errorf("outcome %d = %+v, want %+v", i, outcomes[i], want[i])
		}
	}
	checkStored(t, client, 3)
}

// A known record in a full batch changes neither the order nor the outcomes of the others.
func TestPublishKeepsTheOrderAroundDuplicates(t *testing.T) {
	client := connect(t, brokertest.New(t))
	committer := newCommitter(t, client, stream.CommitConfig{})
	all := records("r", 1000)
	for _, known := range []int{7, 503} {
		if _, err := committer.Publish(t.Context(), all[known:known+1]); err != nil {
			t.Fatal(err)
		}
	}
	outcomes, err := committer.Publish(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(2)
	for i, outcome := range outcomes {
		known := i == 7 || i == 503
		if outcome.Duplicate != known || !known && outcome.Sequence != last+1 {
			t.Fatalf("outcome %d = %+v after sequence %d", i, outcome, last)
		}
		if !known {
			last = outcome.Sequence
		}
	}
	checkStored(t, client, 1000)
}

func checkStored(t *testing.T, client *stream.Client, want uint64) {
	t.Helper()
	state, err := client.StreamState(t.Context(), stream.Traces)
	if err != nil || state.Messages != want || state.LastSequence != want {
		t.Errorf("the stream holds %+v, want %d messages; error %v", state, want, err)
	}
}

func TestPublishRefusesOnlyTheOversizeRecord(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	committer := newCommitter(t, client, stream.CommitConfig{})
	large := record("a", string(make([]byte, 8<<20)))
	outcomes, err := committer.Publish(t.Context(), []stream.Record{record("a", "before"), large, record("a", "after")})
	if err != nil || !errors.Is(outcomes[1].Err, stream.ErrTooLarge) || outcomes[0].Err != nil || outcomes[2].Err != nil {
		t.Errorf("outcomes %+v, error %v", outcomes, err)
	}
	limitMessages(t, broker, 1000)
	large = record("a", string(make([]byte, 2000)))
	outcomes, err = committer.Publish(t.Context(), []stream.Record{record("a", "more"), large})
	if err != nil || !errors.Is(outcomes[1].Err, stream.ErrTooLarge) || outcomes[0].Err != nil {
		t.Errorf("with a limit of the stream: outcomes %+v, error %v", outcomes, err)
	}
	checkStored(t, client, 3)
}

func TestPublishRefusesImpossibleAgents(t *testing.T) {
	client := connect(t, brokertest.New(t))
	outcomes, err := newCommitter(t, client, stream.CommitConfig{}).Publish(t.Context(), []stream.Record{
		record("", "of nobody"), record(strings.Repeat(":", schema.MaxIDBytes+100), "too long"),
		record(strings.Repeat(":", schema.MaxIDBytes), "just right"),
	})
	if err != nil || outcomes[0].Err == nil || !errors.Is(outcomes[1].Err, stream.ErrTooLarge) || outcomes[2].Err != nil {
		t.Errorf("outcomes %+v, error %v", outcomes, err)
	}
}

func limitMessages(t *testing.T, broker *brokertest.Server, size int32) {
	t.Helper()
	cfg := goodTraces()
	cfg.MaxMsgSize = size
	if _, err := admin(t, broker.URL()).UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func TestPublishPushesBackWhenTheStreamIsFull(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	cfg := goodTraces()
	cfg.MaxMsgs = 2
	if _, err := admin(t, broker.URL()).UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	outcomes, err := newCommitter(t, client, stream.CommitConfig{}).Publish(t.Context(), records("r", 3))
	if !errors.Is(err, stream.ErrUnavailable) || stream.RetryAfter(err) < time.Second {
		t.Errorf("error %v, retry after %v", err, stream.RetryAfter(err))
	}
	stored := uint64(0)
	for _, outcome := range outcomes {
		if outcome.Err == nil {
			stored++
		}
	}
	if stored != 2 {
		t.Errorf("outcomes %+v, want two of three stored", outcomes)
	}
	checkStored(t, client, stored)
}

// publishFromMany publishes 100 records of 50 callers at once.
func publishFromMany(t *testing.T, committer *stream.Committer) {
	t.Helper()
	var callers errgroup.Group
	for i := range 50 {
		callers.Go(func() error {
			_, err := committer.Publish(t.Context(), records(fmt.Sprint("caller ", i), 2))
			return err
		})
	}
	if err := callers.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestPublishOfManyCallersSharesBatches(t *testing.T) {
	client := connect(t, brokertest.New(t))
	// Only a full batch is handed over, so the callers must share it.
	committer := newCommitter(t, client, stream.CommitConfig{MaxMessages: 100, Linger: time.Hour})
	publishFromMany(t, committer)
	checkStored(t, client, 100)
}

// A batch that is not full waits until the previous one is old enough, but the first one after a pause does not.
func TestPublishKeepsThePaceOfBatches(t *testing.T) {
	client := connect(t, brokertest.New(t))
	committer := newCommitter(t, client, stream.CommitConfig{MaxMessages: 100, Linger: time.Nanosecond, Pace: time.Hour})
	if _, err := committer.Publish(t.Context(), records("first", 1)); err != nil { // it would take an hour
		t.Fatal(err)
	}
	publishFromMany(t, committer)
	batches := map[string]int{}
	for sequence := uint64(2); sequence <= 101; sequence++ {
		batches[client.Header(t, stream.Traces, sequence).Get("Nats-Batch-Id")]++
	}
	if len(batches) != 1 || batches[""] > 0 {
		t.Errorf("the records of 50 callers by batch: %v", batches)
	}
}

func TestPublishAfterTheCallerGaveUp(t *testing.T) {
	client := connect(t, brokertest.New(t))
	committer := newCommitter(t, client, stream.CommitConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	outcomes, err := committer.Publish(ctx, records("r", 2))
	if !errors.Is(err, stream.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("outcomes %v, error %v", outcomes, err)
	}
	committer.Close()
	if _, err := committer.Publish(t.Context(), records("r", 2)); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	checkStored(t, client, 0)
}

func TestPublishPushesBackWithoutBroker(t *testing.T) {
	broker := brokertest.New(t)
	connect(t, broker)
	client := dial(t, broker, stream.Config{Timeout: 300 * time.Millisecond})
	committer := newCommitter(t, client, stream.CommitConfig{})
	broker.Stop()
	for range 3 { // the first call waits, the later ones do not
		if _, err := committer.Publish(t.Context(), records("r", 3)); !errors.Is(err, stream.ErrUnavailable) {
			t.Fatalf("error %v", err)
		}
	}
	broker.Start()
}

// TestPublishThroughRestarts checks that every acknowledged record is stored exactly once.
func TestPublishThroughRestarts(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	committer := newCommitter(t, client, stream.CommitConfig{})
	const callers, calls, perCall, restarts = 4, 40, 100, 3
	third := make(chan struct{}, callers*calls)
	var publishers errgroup.Group
	for i := range callers {
		publishers.Go(func() error {
			for j := range calls {
				third <- struct{}{}
				if err := publishUntilTaken(t.Context(), committer, records(fmt.Sprint(i, " ", j), perCall)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range restarts {
		for range callers * calls / (restarts + 1) {
			<-third
		}
		broker.Restart()
	}
	if err := publishers.Wait(); err != nil {
		t.Fatal(err)
	}
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	seen := map[string]bool{}
	for _, m := range fetch(t, consumer, callers*calls*perCall) {
		seen[string(m.Data)] = true
	}
	if len(seen) != callers*calls*perCall {
		t.Errorf("%d different records, want %d", len(seen), callers*calls*perCall)
	}
	checkStored(t, client, callers*calls*perCall)
}

func publishUntilTaken(ctx context.Context, committer *stream.Committer, all []stream.Record) error {
	for {
		outcomes, err := committer.Publish(ctx, all)
		if errors.Is(err, stream.ErrUnavailable) {
			continue
		}
		for _, outcome := range outcomes {
			err = errors.Join(err, outcome.Err)
		}
		return err
	}
}
