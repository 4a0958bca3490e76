package mcp

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/schema"
)

// bought is an invocation with every member set.
func bought() Invocation {
	number, confidence := uint64(7), 0.5
	return Invocation{
		TraceID: "tr-1", AgentID: "did:web:a.example", CardID: "ac-1",
		Time:   time.Date(2026, 1, 31, 13, 30, 0, 250_000_000, time.FixedZone("", 3600)),
		Server: "shop", Tool: "buy",
		Arguments: jsontext.Value(`{"item": "p-1", "amount": 12.50}`),
		Result:    jsontext.Value(`{"content": [{"type": "text", "text": "<sold>"}], "structuredContent": {"order": 9007199254740993}}`),
		CostCents: 3, Category: schema.CategoryEscalation,
		Alternatives: []schema.Alternative{
			{OptionID: "buy", Description: "buy it", Score: 0.9, HasScore: true, Flags: []string{"sponsored"},
				ScoringFactors: schema.Members{{Name: "risk", Value: []byte("0.1")}, {Name: "cost", Value: []byte("0.2")}}},
			{OptionID: "wait", Description: "wait"},
		},
		Selected: "buy", Reasoning: "it is needed", Values: []string{"honesty"}, Confidence: &confidence,
		SessionID: "s-1", PriorTraceIDs: []string{"tr-0"}, SequenceNumber: &number,
	}
}

func TestTraceHoldsTheInvocation(t *testing.T) {
	v := bought()
	raw, err := v.Trace()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"trace_id":"tr-1","agent_id":"did:web:a.example","card_id":"ac-1","timestamp":"2026-01-31T12:30:00.25Z",` +
		`"action":{"type":"execute","name":"buy","category":"escalation_trigger","target":{"type":"mcp_server","identifier":"shop"},` +
		`"parameters":{"item":"p-1","amount":12.50}},` +
		`"decision":{"alternatives_considered":[{"option_id":"buy","description":"buy it","score":0.9,"scoring_factors":{"cost":0.2,"risk":0.1},"flags":["sponsored"]},` +
		`{"option_id":"wait","description":"wait"}],"selected":"buy","selection_reasoning":"it is needed","values_applied":["honesty"],"confidence":0.5},` +
		`"context":{"session_id":"s-1","prior_trace_ids":["tr-0"],"metadata":{"sequence_number":7,"execution":{"tool_name":"shop.buy",` +
		`"inputs":{"item":"p-1","amount":12.50},"outputs":{"content":[{"type":"text","text":"<sold>"}],"structuredContent":{"order":9007199254740993}},"cost_cents":3}}}}`
	if string(raw) != want {
		t.Errorf("got\n%s\nwant\n%s", raw, want)
	}
	trace, err := schema.Admit(v.AgentID, raw)
	if err != nil {
		t.Fatal(err)
	}
	e := &trace.Context.Execution
	if !e.Present || e.ToolName != "shop.buy" || string(e.Inputs) != `{"item":"p-1","amount":12.50}` || e.CostCents != 3 || e.Error != "" {
		t.Errorf("execution is %+v", e)
	}
}

func TestRequiredFieldsAreEnough(t *testing.T) {
	v := Invocation{TraceID: "tr-1", AgentID: "a", CardID: "c", Time: time.Unix(0, 0), Tool: "ping"}
	raw, err := v.Trace()
	if err != nil {
		t.Fatal(err)
	}
	trace, err := schema.Admit("a", raw)
	if err != nil {
		t.Fatal(err)
	}
	d, x := &trace.Decision, &trace.Context
	if trace.Action.Type != schema.ActionExecute || trace.Action.Category != schema.CategoryBounded || trace.Action.Target.Type != "" {
		t.Errorf("action is %+v", trace.Action)
	}
	if d.Reasoning != noReasoning || d.SelectedAlternative().Description != "call mcp.ping" || d.HasConfidence || d.ValuesApplied != nil {
		t.Errorf("decision is %+v", d)
	}
	if x.SessionID != "" || x.HasSequenceNumber || x.Execution.ToolName != "mcp.ping" || string(x.Execution.Inputs) != "{}" || x.Execution.Outputs != nil {
		t.Errorf("context is %+v", x)
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct{ result, failure, want string }{
		"no error":          {`{"isError": false, "content": [{"type": "text", "text": "fine"}]}`, "", ""},
		"tool error":        {`{"isError": true, "content": [{"type": "text", "text": "no stock"}, {"type": "image"}, {"type": "text", "text": "sorry"}]}`, "", "no stock\nsorry"},
		"tool error, mute":  {`{"isError": true}`, "", unnamedFailure},
		"protocol error":    {``, "unknown tool", "unknown tool"},
		"tool error, long":  {`{"isError": true, "content": [{"text": "` + strings.Repeat("é", maxFailure) + `"}]}`, "", strings.Repeat("é", maxFailure/2) + "…"},
		"cancelled request": {``, "", ""},
	} {
		v := bought()
		v.Failure, v.Result = c.failure, nil
		if c.result != "" {
			v.Result = jsontext.Value(c.result)
		}
		raw, err := v.Trace()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		trace, err := schema.Admit("", raw)
		if err != nil || trace.Context.Execution.Error != c.want || (trace.Context.Execution.Outputs == nil) != (c.result == "") {
			t.Errorf("%s: got %+v (%v)", name, trace.Context.Execution, err)
		}
	}
}

func TestLargeResultIsReplacedByItsDigest(t *testing.T) {
	v := bought()
	v.Result = jsontext.Value(`{"content": [{"type": "text", "text": "` + strings.Repeat("x", schema.MaxTraceBytes) + `"}]}`)
	raw, err := v.Trace()
	if err != nil {
		t.Fatal(err)
	}
	trace, err := schema.Admit("", raw)
	if err != nil {
		t.Fatal(err)
	}
	var outputs struct {
		Bytes  int           `json:"omitted_bytes"`
		SHA256 schema.Digest `json:"sha256"`
	}
	if err := json.Unmarshal(trace.Context.Execution.Outputs, &outputs); err != nil || outputs.Bytes != len(v.Result) || outputs.SHA256 != schema.DigestOf(v.Result) {
		t.Errorf("outputs are %s (%v)", trace.Context.Execution.Outputs, err)
	}
}

// A result is replaced by a summary only where it does not fit into the trace.
func TestLargestResult(t *testing.T) {
	v := bought()
	text := func(n int) {
		v.Result = jsontext.Value(`{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}]}`)
	}
	text(0)
	raw, err := v.Trace()
	if err != nil {
		t.Fatal(err)
	}
	room := schema.MaxTraceBytes - len(raw)
	for n, whole := range map[int]bool{room: true, room + 1: false} {
		text(n)
		raw, err := v.Trace()
		if err != nil || strings.Contains(string(raw), `"omitted_bytes"`) == whole {
			t.Errorf("a result may have %d bytes and has %d: error %v, a trace of %d bytes", room, n, err, len(raw))
		}
	}
	last := uint64(math.MaxInt64)
	v.SequenceNumber = &last
	if _, err := v.Trace(); err != nil {
		t.Errorf("the highest sequence number: %v", err)
	}
}

func TestTraceRefuses(t *testing.T) {
	beyond := uint64(math.MaxInt64) + 1
	var refusal *schema.Refusal
	for name, c := range map[string]struct {
		change  func(*Invocation)
		refused bool // by the rules for every trace
	}{
		"no trace id":       {func(v *Invocation) { v.TraceID = "" }, true},
		"no agent":          {func(v *Invocation) { v.AgentID = "" }, true},
		"no card":           {func(v *Invocation) { v.CardID = "" }, true},
		"no tool":           {func(v *Invocation) { v.Tool = "" }, true},
		"no time":           {func(v *Invocation) { v.Time = time.Time{} }, true},
		"year 10000":        {func(v *Invocation) { v.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, true},
		"category":          {func(v *Invocation) { v.Category = "free" }, true},
		"list of arguments": {func(v *Invocation) { v.Arguments = jsontext.Value(`[1]`) }, true},
		"too many arguments": {func(v *Invocation) {
			v.Arguments = jsontext.Value(`{"a":"` + strings.Repeat("x", schema.MaxTraceBytes/2) + `"}`)
		}, true},
		"broken arguments":     {func(v *Invocation) { v.Arguments = jsontext.Value(`{"a":`) }, false},
		"name twice":           {func(v *Invocation) { v.Arguments = jsontext.Value(`{"a":1,"a":2}`) }, false},
		"two arguments":        {func(v *Invocation) { v.Arguments = jsontext.Value(`{},"x":{}`) }, false},
		"broken result":        {func(v *Invocation) { v.Result = jsontext.Value(`{`) }, false},
		"result not an object": {func(v *Invocation) { v.Result = jsontext.Value(`[]`) }, false},
		"invalid UTF-8":        {func(v *Invocation) { v.Reasoning = "\xff" }, false},
		"selected":             {func(v *Invocation) { v.Selected = "neither" }, true},
		"option twice":         {func(v *Invocation) { v.Alternatives[1].OptionID = "buy" }, true},
		"confidence":           {func(v *Invocation) { *v.Confidence = 1.5 }, true},
		"not a number":         {func(v *Invocation) { *v.Confidence = math.NaN() }, false},
		"reserved session":     {func(v *Invocation) { v.SessionID = "~utc-2026-01-31" }, true},
		"cost":                 {func(v *Invocation) { v.CostCents = -1 }, false},
		"a greater cost":       {func(v *Invocation) { v.CostCents = schema.MaxCostCents + 1 }, false},
		"sequence number":      {func(v *Invocation) { v.SequenceNumber = &beyond }, false},
	} {
		v := bought()
		c.change(&v)
		raw, err := v.Trace()
		if err == nil || raw != nil || errors.As(err, &refusal) != c.refused {
			t.Errorf("%s: got %s (%v)", name, raw, err)
		}
	}
	v := bought()
	v.CostCents = schema.MaxCostCents
	if _, err := v.Trace(); err != nil {
		t.Errorf("the greatest cost: %v", err)
	}
}

// anyJSON draws a JSON value of limited depth.
func anyJSON(t *rapid.T, depth int) any {
	kinds := map[int]int{0: 3}[depth]
	if depth > 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.String().Draw(t, "text")
	case 3:
		return rapid.Float64Range(-1e300, 1e300).Draw(t, "number")
	case 4:
		return anyObject(t, depth-1)
	default:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = anyJSON(t, depth-1)
		}
		return list
	}
}

func anyObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for _, name := range rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "names") {
		object[name] = anyJSON(t, depth)
	}
	return object
}

func marshal(t *rapid.T, value any) jsontext.Value {
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Every invocation that MCP allows becomes an admissible trace.
func TestEveryInvocationIsAdmitted(t *testing.T) {
	id := rapid.StringN(1, 64, 256)
	maybe := func(t *rapid.T, s *rapid.Generator[string], name string) string {
		if rapid.Bool().Draw(t, "has "+name) {
			return s.Draw(t, name)
		}
		return ""
	}
	rapid.Check(t, func(t *rapid.T) {
		v := Invocation{
			TraceID: id.Draw(t, "trace"), AgentID: id.Draw(t, "agent"), CardID: id.Draw(t, "card"),
			Time:   time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")),
			Server: maybe(t, id, "server"), Tool: id.Draw(t, "tool"), Failure: maybe(t, rapid.String(), "failure"),
			Reasoning: maybe(t, rapid.String(), "reasoning"), Values: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "values"),
			SessionID: maybe(t, id, "session"), PriorTraceIDs: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "prior"),
			CostCents: rapid.Int64Range(0, schema.MaxCostCents).Draw(t, "cost"),
		}
		if rapid.Bool().Draw(t, "has arguments") {
			v.Arguments = marshal(t, anyObject(t, 3))
		}
		if rapid.Bool().Draw(t, "has a result") {
			result := anyObject(t, 3)
			result["isError"] = rapid.Bool().Draw(t, "is an error")
			result["content"] = []any{map[string]any{"type": "text", "text": rapid.String().Draw(t, "content")}}
			v.Result = marshal(t, result)
		}
		raw, err := v.Trace()
		if err != nil {
			t.Fatal(err)
		}
		trace, err := schema.Admit(v.AgentID, raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		e := &trace.Context.Execution
		if trace.TraceID != v.TraceID || trace.Action.Name != v.Tool || !trace.Timestamp.Equal(v.Time) || schema.SessionID(trace) == "" ||
			!e.Present || !strings.HasSuffix(e.ToolName, "."+v.Tool) || e.CostCents != v.CostCents || (v.Result == nil) != (e.Outputs == nil) {
			t.Fatalf("%+v became %s", v, raw)
		}
	})
}
