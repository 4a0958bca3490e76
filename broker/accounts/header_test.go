package accounts_test

import (
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Permissions do not cover headers, so the streams refuse headers that would remove or hide
// messages. Headers that expect a sequence or an id cannot be disabled: they only make the
// stream refuse the message that has them.
func TestHeadersOfAgents(t *testing.T) {
	s := serve(t, accounts.Config{Agents: agents})
	operator := s.client(stream.RoleOperator)
	a, other := s.connect("a"), s.connect("ingest")
	stored := uint64(0)
	neighbour := func(after string) {
		t.Helper()
		if _, err := publish(t, other, "ingest", nil); err != nil {
			t.Errorf("after %s another agent's trace: %v", after, err)
		}
		stored++
		if state, err := operator.StreamState(t.Context(), stream.Traces); err != nil || state.Messages != stored || state.LastSequence != stored {
			t.Errorf("after %s the stream holds %d messages up to %d, want %d: %v", after, state.Messages, state.LastSequence, stored, err)
		}
	}
	neighbour("nothing")
	for _, h := range []struct{ name, value string }{
		{"Nats-Rollup", "sub"},
		{"Nats-Rollup", "all"},
		{"Nats-TTL", "1s"},
		{"Nats-TTL", "never"},
		{"Nats-Incr", "1"},
		{"Nats-Schedule", "@every 1s"},
		{"Nats-Expected-Stream", "RECEIPTS"},
		{"Nats-Expected-Last-Sequence", "77"},
		{"Nats-Expected-Last-Subject-Sequence", "77"},
		{"Nats-Expected-Last-Msg-Id", "nobody's"},
	} {
		header := nats.Header{h.name: {h.value}}
		if h.name == "Nats-Schedule" {
			header["Nats-Schedule-Target"] = []string{"aap.trace.ingest"}
		}
		if ack, err := publish(t, a, "a", header); err == nil {
			t.Errorf("%s: %s is accepted: %+v", h.name, h.value, ack)
		}
		neighbour(h.name + ": " + h.value)
	}
	if _, err := publish(t, a, "a", nats.Header{
		"Nats-Expected-Last-Sequence": {strconv.FormatUint(stored, 10)}, "Nats-Expected-Stream": {stream.Traces},
	}); err != nil {
		t.Errorf("a true expectation is refused: %v", err)
	}
	stored++
	neighbour("what is so")
}
