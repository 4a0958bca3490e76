package wire

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// Among an agent's traces only a request about the agent's own session is a request.
func TestEndOf(t *testing.T) {
	long := strings.Repeat("s", schema.MaxIDBytes+1)
	want := EndRequest{AgentID: "did:web:a", SessionID: "s \"1\"", ThroughSequence: 7}
	m, err := want.AmongTraces()
	if err != nil || m.Subject != "aap.trace.did=3Aweb=3Aa" {
		t.Fatalf("%+v, error %v", m, err)
	}
	if got, ok := EndOf("did:web:a", m.Data); !ok || got != want {
		t.Errorf("%+v (%v), want %+v", got, ok, want)
	}
	for name, c := range map[string]struct{ agent, data string }{
		"another agent":      {"did:web:b", string(m.Data)},
		"two objects":        {"did:web:a", string(m.Data) + "{}"},
		"a broken one":       {"did:web:a", string(m.Data[:len(m.Data)-1])},
		"receipts":           {"a", `{"receipts":[]}`},
		"no session":         {"a", `{"end":{"agent_id":"a","session_id":"","through_sequence":1}}`},
		"a long session":     {"a", `{"end":{"agent_id":"a","session_id":"` + long + `","through_sequence":1}}`},
		"an unknown member":  {"a", `{"end":{"agent_id":"a","session_id":"s","through_sequence":1,"card_id":"c"}}`},
		"a trace":            {"a", `{"trace_id":"t","agent_id":"a"}`},
		"no JSON whatsoever": {"a", "end"},
	} {
		if got, ok := EndOf(c.agent, []byte(c.data)); ok {
			t.Errorf("%s counts as the request %+v", name, got)
		}
	}
}
