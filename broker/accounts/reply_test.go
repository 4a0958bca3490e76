package accounts_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// The broker answers a publisher on any reply subject that the publisher names, without
// checking whether the publisher may publish there. So an agent could have an answer stored as
// another agent's trace, as a card, or as the plan of a seal.
func TestAnswersReachOnlyAgents(t *testing.T) {
	s := serve(t, accounts.Config{Agents: agents})
	operator := s.client(stream.RoleOperator)
	conn, stored := s.connect("a"), uint64(0)
	for _, reply := range []string{
		"aap.trace.ingest", "$KV.cards.ac-ingest", "$KV.seals.x", "receipts.0", "ledger.META", "deadletter.ingest",
		"$JS.API.CONSUMER.RESET.TRACES.verifier", "$JS.API.STREAM.PURGE.RECEIPTS", "_INBOX_service.ingest.x",
	} {
		message := &nats.Msg{
			Subject: subject.Trace("a"), Reply: reply,
			Data: pipelinetest.Trace("tr-"+reply, "a", "ac-a", "s", "2026-02-01T00:00:00Z", "search").Data,
		}
		if err := conn.PublishMsg(message); err != nil {
			t.Fatal(err)
		}
		stored++
	}
	if _, err := publish(t, conn, "a", nil); err != nil { // answered after all of them
		t.Fatal(err)
	}
	stored++
	for name, want := range map[string]uint64{
		stream.Traces: stored, stream.Receipts: 0, stream.Ledger: 0, stream.DeadLetters: 0, "KV_cards": 0, "KV_seals": 0,
	} {
		state, err := operator.StreamState(t.Context(), name)
		if err != nil || state.LastSequence != want {
			t.Errorf("stream %s is at sequence %d, want %d: %v", name, state.LastSequence, want, err)
		}
	}
}

// The trace of a message's way through the server goes to a subject that the message names, if
// its publisher may publish there.
func TestWayOfMessageGoesNowhere(t *testing.T) {
	s := serve(t, accounts.Config{Agents: agents})
	operator := s.client(stream.RoleOperator)
	conn := s.connect("a")
	for _, dest := range []string{"aap.trace.ingest", "$KV.cards.x", "receipts.0"} {
		header := nats.Header{"Nats-Trace-Dest": {dest}}
		if err := conn.PublishMsg(&nats.Msg{Subject: subject.Trace("a"), Header: header, Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := publish(t, conn, "a", nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{stream.Receipts, "KV_cards"} {
		if state, err := operator.StreamState(t.Context(), name); err != nil || state.LastSequence != 0 {
			t.Errorf("stream %s is at sequence %d: %v", name, state.LastSequence, err)
		}
	}
}
