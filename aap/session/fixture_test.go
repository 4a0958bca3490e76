package session_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

// step is one trace of a session, reduced to the relevant members.
type step struct {
	id       string // default: tr-<place>
	second   int    // default: its place
	number   any
	turn     any
	priors   []string
	kind     string // default: execute
	action   string // default: search
	params   string // JSON
	target   string // JSON
	escalate string // the escalation block, JSON
	category string // default: bounded
	executed string // metadata.execution, JSON
	session  string // default: s; "-": none
	end      bool
}

func (s step) trace(t testing.TB, place int) *schema.Trace {
	t.Helper()
	trace, err := s.admit(place)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func (s step) admit(place int) (*schema.Trace, error) {
	context, metadata := map[string]any{}, map[string]any{}
	if s.session != "-" {
		context["session_id"] = or(s.session, "s")
	}
	if s.number != nil {
		metadata["sequence_number"] = s.number
	}
	if s.executed != "" {
		metadata["execution"] = json.RawMessage(s.executed)
	}
	if s.end {
		metadata["session_end"] = true
	}
	if len(metadata) > 0 {
		context["metadata"] = metadata
	}
	if s.turn != nil {
		context["conversation_turn"] = s.turn
	}
	if s.priors != nil {
		context["prior_trace_ids"] = s.priors
	}
	block, err := json.Marshal(context)
	if err != nil {
		return nil, err
	}
	if s.second == 0 {
		s.second = place + 1
	}
	at := time.Date(2026, 2, 1, 0, 0, s.second, 0, time.UTC).Format(time.RFC3339)
	raw := fmt.Sprintf(`{"trace_id":%q,"agent_id":"a","card_id":"c","timestamp":%q,"action":{"type":%q,"name":%q,"category":%q,"parameters":%s,"target":%s},`+
		`"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"r","values_applied":["v"]},`+
		`"escalation":%s,"context":%s}`,
		or(s.id, fmt.Sprintf("tr-%d", place+1)), at, or(s.kind, "execute"), or(s.action, "search"), or(s.category, "bounded"), or(s.params, "{}"), or(s.target, "null"), or(s.escalate, "null"), block)
	trace, err := schema.Admit("", []byte(raw))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", raw, err)
	}
	return trace, nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// clean is the verdict on a trace without faults.
var clean = schema.Verdict{Verified: true, Status: schema.StatusJudged, RecommendedAction: schema.Proceed, SimilarityScore: 0.5}

var at = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// whole judges a session of one part; found holds everything stored elsewhere about its agent.
func whole(t testing.TB, found session.Found, steps ...step) *schema.SessionVerdict {
	t.Helper()
	v, _ := part(t, session.Head{AgentID: "a", SessionID: "s", Part: 1, LastPart: true}, nil, found, steps...)
	return v
}

func part(t testing.TB, head session.Head, carry *session.NextPart, found session.Found, steps ...step) (*schema.SessionVerdict, *session.NextPart) {
	t.Helper()
	head.Numbered = !slices.ContainsFunc(steps, func(s step) bool { return s.number == nil })
	j := session.New(head, carry)
	for i, s := range steps {
		j.Add(s.trace(t, i), &clean)
	}
	answers := j.Answers(found)
	v, next := j.Finish(&answers, at)
	if again, _ := j.Finish(&answers, at); encoded(t, again) != encoded(t, v) {
		t.Error("a second Finish gives another verdict")
	}
	return v, next
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// said returns the findings of a verdict, one a line.
func said(v *schema.SessionVerdict) string {
	var b strings.Builder
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "%s %s %s: %s\n", f.Type, f.Severity, f.TraceID, f.Description)
	}
	return b.String()
}

// expect checks the findings; each is a line of said or the beginning of one.
func expect(t *testing.T, v *schema.SessionVerdict, lines ...string) {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(said(v), "\n"), "\n")
	if len(v.Findings) == 0 {
		got = nil
	}
	matched := len(got) == len(lines)
	for i := range got {
		matched = matched && strings.HasPrefix(got[i], lines[i])
	}
	if !matched {
		t.Errorf("found\n%swant\n%s", said(v), strings.Join(lines, "\n"))
	}
}
