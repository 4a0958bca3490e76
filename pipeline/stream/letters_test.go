package stream_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

func TestDeadLetterKeepsEverything(t *testing.T) {
	client := connect(t, brokertest.New(t))
	want := stream.DeadLetter{
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
	other := stream.DeadLetter{Stage: "ingest", Reason: "too_large", Data: []byte("x")}
	if err := client.DeadLetter(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	messages := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.DeadLetters, Durable: stream.DeadLetterConsumer}), 2)
	for i, want := range []stream.DeadLetter{want, other} {
		got, err := stream.ParseDeadLetter(&messages[i])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("letter %d = %+v, want %+v; error %v", i, got, want, err)
		}
	}
}

func TestDeadLetterWithMoreFaultsThanHeadersHold(t *testing.T) {
	client := connect(t, brokertest.New(t))
	letter := stream.DeadLetter{Stage: "verifier", Reason: "invalid", Data: []byte("{}")}
	for range 1000 {
		letter.Faults = append(letter.Faults, schema.Fault{Pointer: "/x", Message: strings.Repeat("long ", 30)})
	}
	if err := client.DeadLetter(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	messages := fetch(t, open(t, client, stream.ConsumerConfig{Stream: stream.DeadLetters, Durable: stream.DeadLetterConsumer}), 1)
	got, err := stream.ParseDeadLetter(&messages[0])
	if err != nil || len(got.Faults) < 100 {
		t.Errorf("%d faults, error %v", len(got.Faults), err)
	}
}

func TestAlertsAreStoredOnce(t *testing.T) {
	client := connect(t, brokertest.New(t))
	alerts := []stream.Alert{
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
	got, err := stream.ParseLedgerEvent(&messages[0])
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("event %+v, error %v", got, err)
	}
}
