package stream_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

func TestDeadLetterKeepsEverything(t *testing.T) {
	client := connect(t, brokertest.New(t))
	want := wire.DeadLetter{
		Stage: "verifier", Reason: "malformed",
		Faults:  []schema.Fault{{Pointer: "/action/name", Message: "a\r\nb \u2028 ä"}},
		Subject: "traces.3.did=3Aa", Sequence: 42,
		Agent: "did:a\nX: y", Data: []byte("{\x00\xff not JSON\r\n"),
	}
	for range 2 { // the second time is a retry
		if err := client.DeadLetter(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	other := wire.DeadLetter{Stage: "ingest", Reason: "too_large", Data: []byte("x")}
	if err := client.DeadLetter(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	messages := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.DeadLetters, Durable: stream.DeadLetterConsumer}), 2)
	for i, want := range []wire.DeadLetter{want, other} {
		got, err := wire.ParseDeadLetter(messages[i].Subject, messages[i].Header, messages[i].Data)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("letter %d = %+v, want %+v; error %v", i, got, want, err)
		}
	}
}

func TestDeadLetterWithMoreFaultsThanHeadersHold(t *testing.T) {
	client := connect(t, brokertest.New(t))
	letter := wire.DeadLetter{Stage: "verifier", Reason: "invalid", Data: []byte("{}")}
	for range 1000 {
		letter.Faults = append(letter.Faults, schema.Fault{Pointer: "/x", Message: strings.Repeat("long ", 30)})
	}
	if err := client.DeadLetter(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	messages := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.DeadLetters, Durable: stream.DeadLetterConsumer}), 1)
	got, err := wire.ParseDeadLetter(messages[0].Subject, messages[0].Header, messages[0].Data)
	if err != nil || len(got.Faults) < 100 {
		t.Errorf("%d faults, error %v", len(got.Faults), err)
	}
}

func TestAlertsAreStoredOnce(t *testing.T) {
	client := connect(t, brokertest.New(t))
	alerts := []wire.Alert{
		{Kind: subject.AlertViolation, Agent: "did:a", ID: "1", Data: []byte(`{"a":1}`)},
		{Kind: subject.AlertDrift, Agent: "did:b", ID: "2", Data: []byte(`{"a":2}`)},
	}
	for range 2 {
		if err := client.PublishAlerts(t.Context(), alerts); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.PublishAlerts(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	state, err := client.StreamState(t.Context(), stream.Alerts)
	if err != nil || state.Messages != 2 {
		t.Errorf("state %+v, error %v", state, err)
	}
	messages := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.Alerts, Filter: "aap.alert.drift.*"}), 1)
	if messages[0].Subject != "aap.alert.drift.did=3Ab" || string(messages[0].Data) != `{"a":2}` {
		t.Errorf("message %+v", messages[0])
	}
}

func TestLedgerEvents(t *testing.T) {
	client := connect(t, brokertest.New(t))
	want := ledger.Event{Type: "CLAIM", ID: "x.y", Data: []byte(`{"sha256":"00"}`)}
	for range 2 {
		if err := client.AppendLedger(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	messages := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.Ledger}), 1)
	got, err := wire.ParseEvent(messages[0].Subject, messages[0].ID(), messages[0].Data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("event %+v, error %v", got, err)
	}
}

func TestReceiptsOnTheStream(t *testing.T) {
	client := connect(t, brokertest.New(t))
	want := make([]schema.Receipt, 10_000) // several messages
	for i := range want {
		want[i] = schema.Receipt{AgentID: "did:a", SessionID: "s", Sequence: uint64(i + 1), EventTime: time.Unix(int64(i), 0).UTC()}
	}
	for range 2 { // the second time is a retry
		if err := client.PublishReceipts(t.Context(), [][]schema.Receipt{5: want}); err != nil {
			t.Fatal(err)
		}
	}
	request := wire.EndRequest{AgentID: "did:a", SessionID: "s", ThroughSequence: 10_000}
	if err := client.RequestEnd(t.Context(), 5, request); err != nil {
		t.Fatal(err)
	}
	state, err := client.StreamState(t.Context(), stream.Receipts)
	if err != nil || state.Messages < 3 {
		t.Fatalf("state %+v, error %v", state, err)
	}
	messages := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.Receipts}), int(state.Messages))
	var got []schema.Receipt
	var end *wire.EndRequest
	for _, m := range messages {
		if len(m.Data) > 750<<10 || m.Subject != "receipts.5" {
			t.Errorf("a message of %d bytes on %s", len(m.Data), m.Subject)
		}
		if got, end, err = wire.DecodeReceipts(m.Data, got); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %d receipts back, want %d", len(got), len(want))
	}
	if end == nil || *end != request {
		t.Errorf("the last message is %v, want the request", end)
	}
	m := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.Traces}), 1)[0]
	if found, ok := wire.EndOf(m.Agent, m.Data); !ok || found != request || m.Partition != subject.Partition("did:a") {
		t.Errorf("among the traces of partition %d is %s, want the request", m.Partition, m.Data)
	}
}
