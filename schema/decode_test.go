package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema/published"
)

// whole is a trace with every member of AAP sections 5.3 to 5.7.
const whole = `{
  "trace_id": "tr-1", "agent_id": "did:web:a.example", "card_id": "ac-1",
  "timestamp": "2026-01-31T13:30:00.25+01:00",
  "action": {"type": "execute", "name": "add_to_cart", "category": "bounded",
    "target": {"type": "product", "identifier": "p-9"}, "parameters": {"quantity": 2, "note": "a\u00e9"}},
  "decision": {
    "alternatives_considered": [
      {"option_id": "A", "description": "first", "score": 0.85, "scoring_factors": {"principal_benefit": 0.9}, "flags": []},
      {"option_id": "B", "description": "second", "flags": ["sponsored_content"]}],
    "selected": "A", "selection_reasoning": "best \"match\"", "values_applied": ["honesty"], "confidence": 0.5},
  "escalation": {"evaluated": true, "required": true, "reason": "r", "escalation_id": "e-1",
    "triggers_checked": [{"trigger": "quantity > 1", "matched": true, "value_observed": 2}],
    "escalation_status": "approved",
    "principal_response": {"decision": "approved", "timestamp": "2026-01-31T12:31:00Z", "conditions": ["quantity <= 2"]}},
  "context": {"session_id": "s-1", "conversation_turn": 3, "prior_trace_ids": ["tr-0"],
    "environment": {"client": "web"},
    "metadata": {"session_end": true, "sequence_number": 7, "free": [1, {"deep": null}],
      "execution": {"tool_name": "shop.add", "inputs": {"id": 1}, "outputs": [true], "cost_cents": 2, "error": "sold out"}}},
  "unknown": {"kept": "in raw"}
}`

func TestAdmitReadsEveryMember(t *testing.T) {
	trace, err := Admit("did:web:a.example", []byte("\n "+whole+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 1, 31, 12, 30, 0, 250_000_000, time.UTC); !trace.Timestamp.Equal(want) || trace.Timestamp.Location() != time.UTC {
		t.Errorf("timestamp %v, want %v", trace.Timestamp, want)
	}
	if string(trace.Raw) != whole || trace.Digest != DigestOf([]byte(whole)) {
		t.Error("the evidence is not the bytes from opening to closing brace")
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %q, want %q", what, got, want)
		}
	}
	check("target", trace.Action.Target.Identifier, "p-9")
	note, _ := trace.Action.Parameters.Get("note")
	check("parameter", string(note), `"a\u00e9"`)
	check("reasoning", trace.Decision.Reasoning, `best "match"`)
	check("selected", trace.Decision.SelectedAlternative().Description, "first")
	check("flag", trace.Decision.Alternatives[1].Flags[0], "sponsored_content")
	check("observed", string(trace.Escalation.TriggersChecked[0].ValueObserved), "2")
	check("condition", trace.Escalation.Response.Conditions[0], "quantity <= 2")
	environment, _ := trace.Context.Members.Get("environment")
	check("context member", string(environment), `{"client": "web"}`)
	free, _ := trace.Context.Metadata.Get("free")
	check("metadata member", string(free), `[1, {"deep": null}]`)
	check("inputs", string(trace.Context.Execution.Inputs), `{"id": 1}`)
	check("session", SessionID(trace), "s-1")
	check("error", trace.Context.Execution.Error, "sold out")
	if !trace.Escalation.Present || !trace.Escalation.Evaluated {
		t.Errorf("escalation is %+v", trace.Escalation)
	}
	if !trace.Context.SessionEnd || trace.Context.SequenceNumber != 7 || trace.Context.ConversationTurn != 3 {
		t.Errorf("context is %+v", trace.Context)
	}
}

// edit returns whole with one piece of text replaced.
func edit(t testing.TB, old, new string) string {
	t.Helper()
	if !strings.Contains(whole, old) {
		t.Fatalf("%q is not part of the trace", old)
	}
	return strings.Replace(whole, old, new, 1)
}

// alternatives returns n valid alternatives, each followed by a comma.
func alternatives(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"option_id": "x%d", "description": ""},`, i)
	}
	return b.String()
}

// A null means that the trace does not give the answer.
func TestAdmitReadsNullInAnEscalation(t *testing.T) {
	raw := edit(t, `"escalation_status": "approved"`, `"escalation_status": null`)
	raw = strings.Replace(raw, `"decision": "approved", "timestamp": "2026-01-31T12:31:00Z"`, `"decision": null, "timestamp": null`, 1)
	trace, err := Admit("did:web:a.example", []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if e := &trace.Escalation; e.Status != "" || e.Response.Decision != "" || !e.Response.Timestamp.IsZero() {
		t.Errorf("escalation is %+v", e)
	}
}

func TestAdmitRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)
	for name, c := range map[string]struct{ raw, reason, pointer, message string }{
		"broken JSON":        {edit(t, `"score": 0.85`, `"score": 0.`), ReasonInvalidJSON, "/decision/alternatives_considered/0/score", ""},
		"nothing":            {" ", ReasonInvalidJSON, "", ""},
		"not an object":      {`[1]`, ReasonInvalidTrace, "", "want an object"},
		"text behind":        {whole + "{}", ReasonInvalidTrace, "", "after the record"},
		"duplicate name":     {edit(t, `"card_id": "ac-1"`, `"card_id": "ac-1", "agent_id": "x"`), ReasonInvalidJSON, "/agent_id", "duplicate"},
		"duplicate inside":   {edit(t, `"kept": "in raw"`, `"a": 1, "a": 2`), ReasonInvalidJSON, "/unknown/a", "duplicate"},
		"invalid UTF-8":      {edit(t, `"reason": "r"`, "\"reason\": \"\xff\""), ReasonInvalidJSON, "/escalation/reason", "UTF-8"},
		"lone surrogate":     {edit(t, `"reason": "r"`, `"reason": "\ud800"`), ReasonInvalidJSON, "/escalation/reason", ""},
		"other case":         {edit(t, `"agent_id"`, `"Agent_id"`), ReasonInvalidTrace, "/agent_id", "missing"},
		"missing action":     {edit(t, `"action"`, `"auction"`), ReasonInvalidTrace, "/action", "missing"},
		"empty id":           {edit(t, `"tr-1"`, `""`), ReasonInvalidTrace, "/trace_id", "empty"},
		"long id":            {edit(t, `"tr-1"`, `"`+strings.Repeat("x", MaxIDBytes+1)+`"`), ReasonInvalidTrace, "/trace_id", "at most"},
		"numeric id":         {edit(t, `"tr-1"`, `7`), ReasonInvalidTrace, "/trace_id", "a number"},
		"time without zone":  {edit(t, `13:30:00.25+01:00`, `13:30:00`), ReasonInvalidTrace, "/timestamp", "zone"},
		"time of 1920":       {edit(t, `2026-01-31T13`, `1920-01-31T13`), ReasonInvalidTrace, "/timestamp", "outside"},
		"time of year 1":     {edit(t, `2026-01-31T13:30:00.25+01:00`, `0001-01-01T00:00:00Z`), ReasonInvalidTrace, "/timestamp", "zero time"},
		"hour of one digit":  {edit(t, `T13:30:00.25`, `T3:30:00`), ReasonInvalidTrace, "/timestamp", "RFC 3339"},
		"comma in a time":    {edit(t, `00.25+`, `00,25+`), ReasonInvalidTrace, "/timestamp", "RFC 3339"},
		"zone of a day":      {edit(t, `+01:00`, `+24:00`), ReasonInvalidTrace, "/timestamp", "RFC 3339"},
		"zone of 60 minutes": {edit(t, `+01:00`, `+05:60`), ReasonInvalidTrace, "/timestamp", "RFC 3339"},
		"time of 2200":       {edit(t, `2026-01-31T13`, `2200-01-31T13`), ReasonInvalidTrace, "/timestamp", "outside"},
		"action type":        {edit(t, `"execute"`, `"EXECUTE"`), ReasonInvalidTrace, "/action/type", "none of"},
		"category":           {edit(t, `"bounded"`, `"free"`), ReasonInvalidTrace, "/action/category", "none of"},
		"no alternative":     {`{"decision":{"alternatives_considered":[]}}`, ReasonInvalidTrace, "/decision/alternatives_considered", "at least one"},
		"many alternatives":  {edit(t, `{"option_id": "B"`, alternatives(MaxAlternatives)+`{"option_id": "B"`), ReasonInvalidTrace, "/decision/alternatives_considered/256", "more than"},
		"option twice":       {edit(t, `"option_id": "B"`, `"option_id": "A"`), ReasonInvalidTrace, "/decision/alternatives_considered/1/option_id", "earlier"},
		"no description":     {edit(t, `"description": "second", `, ``), ReasonInvalidTrace, "/decision/alternatives_considered/1/description", "missing"},
		"selected unknown":   {edit(t, `"selected": "A"`, `"selected": "C"`), ReasonInvalidTrace, "/decision/selected", "no alternative"},
		"score above 1":      {edit(t, `0.85`, `1.85`), ReasonInvalidTrace, "/decision/alternatives_considered/0/score", "0..1"},
		"confidence below 0": {edit(t, `0.5}`, `-0.5}`), ReasonInvalidTrace, "/decision/confidence", "0..1"},
		"value not a string": {edit(t, `["honesty"]`, `["honesty", {"id": "x"}]`), ReasonInvalidTrace, "/decision/values_applied/1", "an object"},
		"status":             {edit(t, `"approved",`, `"perhaps",`), ReasonInvalidTrace, "/escalation/escalation_status", "none of"},
		"reserved session":   {edit(t, `"s-1"`, `"~utc-2026-01-31"`), ReasonInvalidTrace, "/context/session_id", "reserved"},
		"turn":               {edit(t, `"conversation_turn": 3`, `"conversation_turn": 3.5`), ReasonInvalidTrace, "/context/conversation_turn", "integer"},
		"number too great":   {edit(t, `"free": [1,`, `"free": [1e400,`), ReasonInvalidTrace, "/context/metadata/free", "beyond the range"},
		"long number":        {edit(t, `"free": [1,`, `"free": [1`+strings.Repeat("0", 400)+`,`), ReasonInvalidTrace, "/context/metadata/free", "beyond the range"},
		"long with exponent": {edit(t, `"free": [1,`, `"free": [1`+strings.Repeat("0", 209)+`.5e99,1`+strings.Repeat("0", 210)+`e99,`), ReasonInvalidTrace, "/context/metadata/free", "beyond the range"},
		"plain great number": {edit(t, `"quantity": 2`, `"quantity": -1e999`), ReasonInvalidTrace, "/action/parameters/quantity", "beyond the range"},
		"too deep":           {edit(t, `"free": [1,`, `"free": [`+deep+`,`), ReasonInvalidTrace, "/context/metadata/free", "deeper"},
		"too large":          {edit(t, `"in raw"`, `"`+strings.Repeat("x", MaxTraceBytes)+`"`), ReasonTooLarge, "", "bytes"},
		"foreign agent":      {edit(t, `"did:web:a.example"`, `"did:web:b.example"`), ReasonForeignAgent, "/agent_id", "not the agent"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Admit("did:web:a.example", []byte(c.raw))
			var refusal *Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("error is %v, want a refusal", err)
			}
			if refusal.Reason != c.reason {
				t.Errorf("reason %q, want %q (%v)", refusal.Reason, c.reason, err)
			}
			for _, f := range refusal.Faults {
				if f.Pointer == c.pointer && strings.Contains(f.Message, c.message) {
					return
				}
			}
			t.Errorf("no fault at %q saying %q in %v", c.pointer, c.message, err)
		})
	}
}

// One fault is reported once, at its place.
func TestAdmitReportsAFaultOnce(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"a time of another type":       {edit(t, `"2026-01-31T13:30:00.25+01:00"`, `7`), "invalid_trace: /timestamp: want a string, found a number"},
		"a broken time":                {edit(t, `"2026-01-31T13:30:00.25+01:00"`, `"2026\x"`), "invalid_json: /timestamp: invalid escape sequence"},
		"an answer before the era":     {edit(t, `2026-01-31T12:31:00Z`, `0000-01-01T00:00:00+01:00`), `invalid_trace: /escalation/principal_response/timestamp: "0000-01-01T00:00:00+01:00": in UTC its year is outside 0..9999`},
		"an answer of the year 10,000": {edit(t, `2026-01-31T12:31:00Z`, `9999-12-31T23:59:59-01:00`), `invalid_trace: /escalation/principal_response/timestamp: "9999-12-31T23:59:59-01:00": in UTC its year is outside 0..9999`},
		"a boolean as a number":        {edit(t, `"required": true`, `"required": 1`), "invalid_trace: /escalation/required: want a boolean, found a number"},
		"a turn as a text":             {edit(t, `"conversation_turn": 3`, `"conversation_turn": "3"`), "invalid_trace: /context/conversation_turn: want an integer, found a string"},
		"no alternative": {edit(t, whole[strings.Index(whole, `{"option_id": "A"`):strings.Index(whole, `],
    "selected"`)], ``), "invalid_trace: /decision/alternatives_considered: at least one alternative is required"},
		"one alternative too many":   {edit(t, `{"option_id": "B"`, alternatives(MaxAlternatives-1)+`{"option_id": "B"`), "invalid_trace: /decision/alternatives_considered/256: more than 256 alternatives"},
		"broken behind the selected": {edit(t, `"selected": "A", "selection_reasoning": "best`, `"selected": "C", "selection_reasoning": "\xbest`), "invalid_json: /decision/selection_reasoning: invalid escape sequence"},
		"no colon":                   {edit(t, `"action": {`, `"action" {`), "invalid_json: /action: invalid character '{' after object name (expecting ':')"},
		"closed by a brace":          {edit(t, `["honesty"]`, `["honesty"}`), "invalid_json: /decision/values_applied: invalid character '}' after array element"},
		"a comma at the end":         {edit(t, `"in raw"}`, `"in raw"},`), "invalid_json: invalid character ',' at start of value"},
	} {
		_, err := Admit("", []byte(c.raw))
		var refusal *Refusal
		if !errors.As(err, &refusal) || len(refusal.Faults) != 1 || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %.300v, want %s", name, err, c.want)
		}
	}
}

// A null member is absent, and an unknown member is kept unchanged.
func TestContextMembersMayBeNullAndUnknown(t *testing.T) {
	const block = `"context": {"session_id": null, "task": {"a": [1]}, "conversation_turn": null, "free": "session_id", "prior_trace_ids": null, "environment": null, "metadata": null}`
	raw := whole[:strings.Index(whole, `"context"`)] + block + "}"
	trace, err := Admit("", []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := &trace.Context
	if c.SessionID != "" || c.HasTurn || c.PriorTraceIDs != nil || c.Environment != nil || c.Metadata != nil {
		t.Errorf("context is %+v", c)
	}
	var kept []string
	for _, m := range c.Members {
		kept = append(kept, m.Name+" "+string(m.Value))
	}
	want := []string{"session_id null", `task {"a": [1]}`, "conversation_turn null", `free "session_id"`, "prior_trace_ids null", "environment null", "metadata null"}
	if !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if value, ok := c.Members.Get("nowhere"); ok || value != nil {
		t.Errorf("an absent member is %q", value)
	}
}

// The claims in a reasoning are counted by their tags, wherever they are (message-integrity
// RFC, section 6).
func TestClaims(t *testing.T) {
	for reasoning, want := range map[string][2]int{
		"": {0, 0}, "no tag": {0, 0}, "[G] the fare is 90. [I] it will rise. [G] it was 80.": {2, 1},
		"[I]": {0, 1}, "a [g] and a [ G ] are none": {0, 0},
	} {
		grounded, inferred := (&Decision{Reasoning: reasoning}).Claims()
		if grounded != want[0] || inferred != want[1] {
			t.Errorf("%q: %d and %d, want %v", reasoning, grounded, inferred, want)
		}
	}
}

func TestAdmitReportsAllFaults(t *testing.T) {
	_, err := Admit("", []byte(`{"trace_id":"", "action":{"type":"x","name":"n"}, "timestamp":"never", "decision":{"confidence":2}}`))
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	want := []string{"/trace_id", "/action/type", "/action/category", "/timestamp", "/decision/confidence",
		"/decision/alternatives_considered", "/decision/selected", "/decision/selection_reasoning", "/decision/values_applied",
		"/agent_id", "/card_id"}
	var got []string
	for _, f := range refusal.Faults {
		got = append(got, f.Pointer)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("faults at\n%v, want\n%v", got, want)
	}
}

func TestAdmitBoundsItsFaults(t *testing.T) {
	many := `{"decision":{"alternatives_considered":[` + strings.Repeat(`{"score":7},`, MaxAlternatives+5) + `{}]}}`
	_, err := Admit("", []byte(many))
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	last := refusal.Faults[len(refusal.Faults)-1]
	if len(refusal.Faults) != MaxFaults+1 || !strings.Contains(last.Message, "more faults") {
		t.Errorf("%d faults, the last is %v", len(refusal.Faults), last)
	}
}

// A decoder must keep nothing of one trace for the next.
func TestDecoderKeepsNothingOfThePreviousTrace(t *testing.T) {
	const small = `{"trace_id":"t","agent_id":"a","card_id":"c","timestamp":"2026-01-01T00:00:00Z",` +
		`"action":{"type":"deny","name":"n","category":"forbidden"},` +
		`"decision":{"alternatives_considered":[{"option_id":"o","description":""}],"selected":"o","selection_reasoning":"","values_applied":[]}}`
	var d Decoder
	var reused Trace
	if err := d.Admit(&reused, "", []byte(whole)); err != nil {
		t.Fatal(err)
	}
	if err := d.Admit(&reused, "", []byte(small)); err != nil {
		t.Fatal(err)
	}
	fresh, err := Admit("", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(fresh)
	b, _ := json.Marshal(&reused)
	if string(bytes.ReplaceAll(b, []byte("[]"), []byte("null"))) != string(bytes.ReplaceAll(a, []byte("[]"), []byte("null"))) {
		t.Errorf("reused decoder gives\n%s, a fresh one\n%s", b, a)
	}
	if SessionID(&reused) != "~utc-2026-01-01" {
		t.Errorf("session %q", SessionID(&reused))
	}
}

func TestCorpusIsAdmitted(t *testing.T) {
	var d Decoder
	var trace Trace
	for i, line := range published.Lines(t, "corpus/traces.jsonl.gz") {
		if err := d.Admit(&trace, "", line); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
	}
}

func FuzzAdmit(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"trace_id":1e400}`))
	f.Add([]byte(strings.Repeat(`{"a":`, 100)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		trace, err := Admit("", raw)
		if err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) || len(refusal.Faults) == 0 {
				t.Fatalf("error without a fault: %v", err)
			}
			return
		}
		if !json.Valid(trace.Raw) {
			t.Fatalf("text that is not JSON is admitted: %q", raw)
		}
	})
}
