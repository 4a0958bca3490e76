package verifier_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/wire"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/verifier"
	streamwire "github.com/plumbline/plumbline/pipeline/wire"
)

// gateway does ingest's part: it signs and decides messages on the rig's broker.
type gateway struct {
	t       *testing.T
	service *messages.Service
}

const messagePolicies = `
agents:
  a: {mode: enforce, tools: {search: read, send_email: send}}
  w: {mode: warn, tools: {search: read, send_email: send}}
`

// newGateway returns a gateway and the path of the policies' file.
func newGateway(t *testing.T, rig *pipelinetest.Rig) (g *gateway, policies string) {
	t.Helper()
	policies = filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(policies, []byte(messagePolicies), 0o600); err != nil {
		t.Fatal(err)
	}
	bucket, err := rig.Client.Bucket(t.Context(), stream.Messages)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := messages.OpenPolicies(policies, false, pipelinetest.Env(t, "ingest").Log)
	if err != nil {
		t.Fatal(err)
	}
	service, err := messages.New(messages.Parts{
		Policies: opened, Records: messages.NewRecords(bucket), Window: message.DefaultWindow,
		Now: time.Now, Random: rand.Reader, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &gateway{t, service}, policies
}

// accepted signs a message and has it verified, with any decision.
func (g *gateway) accepted(agent string, source message.Source, intents ...string) (id string) {
	g.t.Helper()
	m, err := g.service.Sign(g.t.Context(), &wire.SignRequest{AgentID: agent, SessionID: "s", Text: "x", Intents: &intents}, messages.Sender{Source: source, Name: "x"})
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := g.service.Verify(g.t.Context(), &wire.VerifyRequest{AgentID: agent, SessionID: "s", Wrapped: m.Wrapped, Envelope: &m.Envelope}); err != nil {
		g.t.Fatal(err)
	}
	return m.ID
}

func (g *gateway) called(agent, id, tool string) *wire.CallDecision {
	g.t.Helper()
	d, err := g.service.Call(g.t.Context(), &wire.CallRequest{AgentID: agent, SessionID: "s", MessageID: id, ToolName: tool})
	if err != nil {
		g.t.Fatal(err)
	}
	return d
}

func (g *gateway) result(agent, tool, result string) string {
	g.t.Helper()
	s, err := g.service.SignResult(g.t.Context(), &wire.ResultRequest{AgentID: agent, SessionID: "s", ToolName: tool, Result: json.RawMessage(result)})
	if err != nil {
		g.t.Fatal(err)
	}
	return fmt.Sprintf(`{"tool_name":%q,"seq":%d,"sha256":%q}`, s.ToolName, s.Seq, s.SHA256)
}

// standing returns a trace of a tool, with the messages that it cites.
func standing(id, agent, tool, reasoning, outputs, auth string) stream.Record {
	metadata := ""
	if auth != "" {
		metadata = `,"message_auth":` + auth
	}
	return pipelinetest.Record(agent, fmt.Appendf(nil, `{"trace_id":%q,"agent_id":%q,"card_id":%q,"timestamp":%q,`+
		`"action":{"type":"execute","name":"search","category":"bounded"},`+
		`"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":%q,"values_applied":["honesty"]},`+
		`"context":{"session_id":"s","metadata":{"execution":{"tool_name":%q,"outputs":%s}%s}}}`,
		id, agent, "ac-"+agent, time.Now().UTC().Format(time.RFC3339), reasoning, tool, outputs, metadata))
}

// The threats of the RFC, T1 to T6, end to end: what a trace cites is compared with what was
// decided, and each threat is a finding of its verdict.
func TestThreatsAreFindings(t *testing.T) {
	rig := pipelinetest.New(t)
	g, policies := newGateway(t, rig)
	rig.Register(t, pipelinetest.Card("ac-a", "a"), pipelinetest.Card("ac-w", "w"), pipelinetest.Card("ac-free", "free"))
	startWith(t, rig, policies)

	read, relayed := g.accepted("a", message.Human, "read"), g.accepted("a", message.Agent, "read")
	beyond := g.accepted("w", message.Agent, "send") // mode warn accepts it
	permitted, blocked := g.called("a", read, "search"), g.called("a", read, "send_email")
	if permitted.Outcome != message.Executed || blocked.Outcome != message.Blocked {
		t.Fatalf("%+v, %+v", permitted, blocked)
	}
	result := g.result("a", "search", `{"found":1}`)
	const grounded = "[G] one was found. [I] there is no other. [I] that is all"
	cite := func(id, more string) string { return fmt.Sprintf(`{"message_id":%q%s}`, id, more) }
	full := cite(read, `,"call_id":"`+permitted.CallID+`","tool_results":[`+result+`]`)
	rig.Publish(t,
		standing("honest", "a", "search", grounded, `{"found": 1}`, full),
		standing("unbound", "free", "anything", "[G] as it likes, <tool_result>1</tool_result>", `{}`, ""),
		standing("T1", "a", "search", "r", "null", cite("00000000-0000-4000-8000-000000000000", "")),
		standing("T1 silent", "a", "search", "r", "null", ""),
		standing("T2", "a", "search", "r", `{"found":2}`, full),
		standing("T3", "a", "send_email", "r", "null", cite(relayed, "")),
		standing("T3 warned", "w", "send_email", "r", "null", cite(beyond, "")),
		standing("T4", "a", "send_email", "r", "null", cite(read, "")),
		standing("T4 blocked", "a", "send_email", "r", "null", cite(read, `,"call_id":"`+blocked.CallID+`"`)),
		standing("T5", "a", "search", grounded, "null", cite(read, "")),
		standing("T6", "a", "search", "[Tool result for search]: one", "null", cite(read, "")),
	)
	pipelinetest.Await(t, "all traces judged", func() bool { return counts(t, rig).Verdicts == 11 })
	found, err := rig.Store.Findings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"SELF_INSTRUCTION": "T1,T1 silent", "SELF_VALIDATION": "T2", "RELAYED_INSTRUCTION": "T3,T3 warned",
		"INTENT_ESCALATION": "T4,T4 blocked", "UNGROUNDED_CLAIM": "T5", "INLINE_TOOL_RESULT": "T6",
	}
	got := map[string]string{}
	for kind, ids := range found {
		slices.Sort(ids)
		got[kind] = strings.Join(ids, ",")
	}
	if !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	checkClaims(t, rig)
	checkDecisions(t, rig)
}

// checkClaims requires that the tags are counted, and checks the effects of the findings.
func checkClaims(t *testing.T, rig *pipelinetest.Rig) {
	t.Helper()
	reports, err := rig.Store.Trace(t.Context(), "honest")
	if err != nil || len(reports) != 1 || len(reports[0].Verdicts) != 1 {
		t.Fatalf("%+v, error %v", reports, err)
	}
	v := reports[0].Verdicts[0]
	if !v.Verified || len(v.Findings) != 0 || v.Metadata.GroundedClaims != 1 || v.Metadata.InferredClaims != 2 {
		t.Errorf("the verdict on the honest trace is %+v", v)
	}
	rows := query(t, rig, `SELECT count() FROM current_verdicts WHERE trace_id LIKE 'T%' AND recommended_action = 'review' AND verified
		AND has(finding_severities, 'HIGH')`)
	if rows[0][0] != uint64(9) {
		t.Errorf("%v traces are to be reviewed, want 9", rows[0][0])
	}
}

// checkDecisions requires that every decision is a row, and that the ledger lists the hash of
// each.
func checkDecisions(t *testing.T, rig *pipelinetest.Rig) {
	t.Helper()
	pipelinetest.Await(t, "the decisions as rows", func() bool {
		return rig.Number(t, "SELECT count() FROM visible_messages") == 9
	})
	listed := map[string]bool{}
	pipelinetest.Await(t, "the decisions in the ledger", func() bool {
		clear(listed)
		for _, event := range ledgerEvents(t, rig) {
			var data events.Decisions
			if err := json.Unmarshal(event.Data, &data); err != nil || data.Count != len(data.SHA256) && data.Kind == events.KindDecisions {
				t.Fatalf("%s %s: %v", event.Type, event.Data, err)
			}
			for _, hash := range data.SHA256 {
				listed[hash.String()] = true
			}
		}
		return len(listed) >= 9
	})
	for _, row := range query(t, rig, "SELECT digest, record, agent_id, kind, outcome FROM visible_messages") {
		if !listed[row[0].(string)] {
			t.Errorf("the ledger does not list %v", row)
		}
	}
	if got := query(t, rig, "SELECT count() FROM visible_messages WHERE kind = 'tool_call' AND outcome = 'blocked' AND reason = 'out_of_scope' AND tool_class = 'send' AND intents = ['read']"); got[0][0] != uint64(1) {
		t.Errorf("%v blocked calls are recorded, want 1", got)
	}
}

// ledgerEvents reads stream LEDGER from its beginning.
func ledgerEvents(t *testing.T, rig *pipelinetest.Rig) (found []ledger.Event) {
	t.Helper()
	state, err := rig.Client.StreamState(t.Context(), stream.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	inbox := rig.Messages(t, stream.Ledger, int(state.Messages))
	for i := range inbox {
		event, err := streamwire.ParseEvent(inbox[i].Subject, inbox[i].ID(), inbox[i].Data)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, event)
	}
	return found
}

func query(t *testing.T, rig *pipelinetest.Rig, statement string) (rows [][]any) {
	t.Helper()
	result, err := rig.Store.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range result.Rows {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// startWith runs a verifier with message policies.
func startWith(t *testing.T, rig *pipelinetest.Rig, policies string) *pipelinetest.Stage {
	cfg := verifier.Default()
	cfg.Common, cfg.MessagePoliciesFile = rig.Common(), policies
	cfg.ClickHouse = rig.ClickHouse()
	env := pipelinetest.Env(t, "verifier")
	return pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &cfg, env) })
}

// Message records are stored once, also over restarts, and traces whose card comes late are
// checked against the same rules.
func TestRecordsSurviveRestarts(t *testing.T) {
	rig := pipelinetest.New(t)
	g, policies := newGateway(t, rig)
	rows := func(want uint64) {
		t.Helper()
		pipelinetest.Await(t, fmt.Sprint(want, " decisions as rows"), func() bool {
			return query(t, rig, "SELECT count() FROM visible_messages")[0][0] == want
		})
	}
	first := startWith(t, rig, policies)
	g.accepted("a", message.Human, "read")
	rig.Publish(t, standing("T4", "a", "send_email", "r", "null", fmt.Sprintf(`{"message_id":%q}`, g.accepted("a", message.Human, "read"))))
	rows(4)
	first.Stop(t)
	g.accepted("a", message.Human, "read")
	startWith(t, rig, policies)
	rows(6)
	rig.Register(t, pipelinetest.Card("ac-a", "a"))
	pipelinetest.Await(t, "the trace judged when its card came", func() bool {
		found, err := rig.Store.Findings(t.Context())
		return err == nil && len(found["INTENT_ESCALATION"]) == 1
	})
	if got := query(t, rig, "SELECT count() FROM messages")[0][0]; got != uint64(6) {
		t.Errorf("%v rows of 6 decisions", got)
	}
}
