package mcp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// play sends messages to a session, one a second, and returns the traces.
func play(t *testing.T, messages ...string) []*schema.Trace {
	t.Helper()
	s := Session{AgentID: "a", CardID: "c", SessionID: "s"}
	var all [][]byte
	at := time.Unix(1_700_000_000, 0)
	for _, message := range messages {
		at = at.Add(time.Second)
		raw, err := s.Message(at, []byte(message))
		if err != nil {
			t.Fatalf("%s: %v", message, err)
		}
		all = append(all, raw...)
	}
	rest, err := s.End()
	if err != nil {
		t.Fatal(err)
	}
	var traces []*schema.Trace
	for _, raw := range append(all, rest...) {
		trace, err := schema.Admit("a", raw)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, trace)
	}
	return traces
}

const (
	hello   = `{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"shop"}}}`
	tools   = `{"jsonrpc":"2.0","id":"l","result":{"tools":[{"name":"search","description":"looks"},{"name":"buy"}]}}`
	listing = `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`
	buying  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"buy","arguments":{"item":"p"}}}`
	bring   = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"sold"}]}}`
)

func TestSessionMakesATraceOfEachCall(t *testing.T) {
	traces := play(t,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`, hello,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		listing, tools,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search"}}`, buying, bring,
		`{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no stock"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"unlisted"}}`,
		`{"jsonrpc":"2.0","id":9,"result":{}}`,
		`{"jsonrpc":"2.0","id":10,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":10,"result":{"serverInfo":{"name":"another"}}}`,
		`{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"search"}}`,
		listing,
	)
	if len(traces) != 4 {
		t.Fatalf("%d traces", len(traces))
	}
	buy, search, unlisted, last := traces[0], traces[1], traces[2], traces[3]
	if buy.Action.Name != "buy" || buy.Action.Target.Identifier != "shop" || buy.Context.Execution.Error != "" ||
		len(buy.Decision.Alternatives) != 2 || buy.Decision.Selected != "buy" || buy.Decision.Alternatives[0].Description != "looks" || buy.Decision.Alternatives[1].Description != "call buy" {
		t.Errorf("%+v", buy)
	}
	if search.Action.Name != "search" || search.Context.Execution.Error != "no stock" || !search.Timestamp.Before(buy.Timestamp) {
		t.Errorf("%+v", search)
	}
	if unlisted.Context.Execution.Error != unanswered || len(unlisted.Decision.Alternatives) != 3 || unlisted.Decision.Reasoning != unknownReasons+notOffered {
		t.Errorf("%+v", unlisted)
	}
	if last.Action.Name != "search" || last.Action.Target.Identifier != "shop" {
		t.Errorf("the server's first name must not change: %+v", last)
	}
	for i, number := range []uint64{2, 1, 3, 4} { // in the order in which the calls were made
		if trace := traces[i]; trace.Context.SequenceNumber != number || trace.Context.SessionID != "s" {
			t.Errorf("trace %d: number %d, session %q", i, trace.Context.SequenceNumber, trace.Context.SessionID)
		}
	}
	if again := play(t, listing, tools, buying, bring); again[0].TraceID == buy.TraceID {
		t.Error("a call at another time has the same trace_id")
	}
}

func TestPagesOfTools(t *testing.T) {
	more := strings.Replace(listing, `}`, `,"params":{"cursor":"2"}}`, 1)
	page := strings.Replace(tools, `"search"`, `"more"`, 1)
	page = strings.Replace(page, `,{"name":"buy"}`, ``, 1)
	if got := play(t, listing, tools, more, page, buying, bring); len(got[0].Decision.Alternatives) != 3 {
		t.Errorf("%+v", got[0].Decision)
	}
	got := play(t, listing, tools, listing, page, buying, bring)
	if d := &got[0].Decision; len(d.Alternatives) != 2 || d.Selected != "buy" || d.Reasoning != unknownReasons+notOffered {
		t.Errorf("the tool that was called is no longer offered: %+v", d)
	}
	if got := play(t, buying, listing, tools, bring); got[0].Decision.Reasoning != unknownReasons+neverListed {
		t.Errorf("a list that came after the call: %+v", got[0].Decision)
	}
}

func TestSessionRefuses(t *testing.T) {
	for name, messages := range map[string][]string{
		"no JSON":              {`x`},
		"params not an object": {`{"id":1,"method":"tools/call","params":[1]}`},
		"tools not a list":     {listing, `{"id":"l","result":{"tools":1}}`},
		"batch that breaks":    {`[` + buying + `,`},
		"after the batch":      {`[` + buying + `] {}`},
	} {
		s := Session{AgentID: "a", CardID: "c"}
		var err error
		for _, message := range messages {
			if err != nil {
				t.Errorf("%s: refused too early: %v", name, err)
			}
			_, err = s.Message(time.Unix(1, 0), []byte(message))
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A decision has at most MaxAlternatives: if the server offers more tools, the first ones and the
// called one are listed, and the reasoning gives their number.
func TestManyTools(t *testing.T) {
	for n, said := range map[int]bool{schema.MaxAlternatives: false, schema.MaxAlternatives + 1: true} {
		var offered []string
		for i := 1; i < n; i++ {
			offered = append(offered, fmt.Sprintf(`{"name":"tool-%d"}`, i))
		}
		offered = append(offered, `{"name":"buy"}`)
		answer := `{"id":"l","result":{"tools":[` + strings.Join(offered, ",") + `]}}`
		d := &play(t, listing, answer, buying, bring)[0].Decision
		if len(d.Alternatives) != schema.MaxAlternatives || d.SelectedAlternative() == nil || d.Alternatives[0].OptionID != "tool-1" ||
			strings.Contains(d.Reasoning, fmt.Sprintf("offered %d tools", n)) != said {
			t.Errorf("%d tools: %d alternatives, selected %+v, reasoning %q", n, len(d.Alternatives), d.SelectedAlternative(), d.Reasoning)
		}
	}
}

// live plays messages of both sides, one a second. A message that begins with '<' is the server's.
func live(t *testing.T, s *Session, messages ...string) (done []*Invocation) {
	t.Helper()
	at := time.Unix(1_700_000_000, 0)
	for _, message := range messages {
		at = at.Add(time.Second)
		read := s.FromClient
		text, server := strings.CutPrefix(message, "<")
		if server {
			read = s.FromServer
		}
		ended, err := read(at, "", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", message, err)
		}
		done = append(done, ended...)
	}
	return done
}

// From version 2026-07-28 on there is no initialize: every result names the server.
func TestServerIsNamedInEachResult(t *testing.T) {
	for _, messages := range [][]string{
		{`{"id":1,"method":"server/discover"}`, `<{"id":1,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"shop"}}}}`, buying, "<" + bring},
		{buying, `<{"id":2,"result":{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"shop"}}}}`},
	} {
		if done := live(t, &Session{AgentID: "a", CardID: "c"}, messages...); len(done) != 1 || done[0].Server != "shop" {
			t.Errorf("%+v", done)
		}
	}
}

// Both sides number their own requests: an answer of the client to a request of the server is
// not the server's answer to a call with the same id.
func TestSidesHaveTheirOwnIDs(t *testing.T) {
	s := &Session{AgentID: "a", CardID: "c"}
	done := live(t, s, buying, `<{"jsonrpc":"2.0","id":2,"method":"elicitation/create"}`,
		`{"jsonrpc":"2.0","id":2,"result":{"action":"accept"}}`, "<"+bring)
	if len(done) != 1 || !strings.Contains(string(done[0].Result), "sold") || done[0].Duration != 3*time.Second {
		t.Fatalf("%+v", done)
	}
}

// An id is the same however its characters are written.
func TestFormsOfAnID(t *testing.T) {
	for _, id := range []string{`"\u00e9\/1"`, `"é\u002f1"`, `"é/1"`} {
		traces := play(t, `{"id":"é/1","method":"tools/call","params":{"name":"search"}}`, `{"id":`+id+`,"result":{"content":[]}}`)
		if len(traces) != 1 || traces[0].Context.Execution.Error != "" {
			t.Errorf("answered with id %s: %+v", id, traces)
		}
		traces = play(t, `{"id":"é/1","method":"tools/call","params":{"name":"search"}}`, `{"method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
		if len(traces) != 1 || !strings.HasPrefix(traces[0].Context.Execution.Error, "cancelled by the client") {
			t.Errorf("cancelled with id %s: %+v", id, traces)
		}
	}
}

func TestBatches(t *testing.T) {
	s := &Session{AgentID: "a", CardID: "c"}
	search := `{"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"search"}}`
	done := live(t, s, "["+buying+",\n"+search+"]",
		`<[{"jsonrpc":"2.0","id":"2","result":{"content":[]}}, {"jsonrpc":"2.0","method":"notifications/progress"},`+bring+`]`)
	if len(done) != 2 || done[0].Tool != "search" || done[1].Tool != "buy" {
		t.Fatalf("%+v", done)
	}
}

func TestCallsWithoutAnAnswer(t *testing.T) {
	s := &Session{AgentID: "a", CardID: "c"}
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"too slow"}}`
	done := live(t, s, buying, cancel, cancel, "<"+bring, buying, buying, listing)
	if len(done) != 2 || !strings.Contains(done[0].Failure, "cancelled by the client") || !strings.HasSuffix(done[0].Failure, "too slow") {
		t.Fatalf("%+v", done)
	}
	if !strings.Contains(done[1].Failure, "used its id again") {
		t.Errorf("%+v", done[1])
	}
	at := time.Unix(1_700_000_060, 0)
	if rest := s.Abandon(at, "other", "gone"); rest != nil {
		t.Errorf("%+v", rest)
	}
	rest := s.Abandon(at, "", "the server ended")
	if len(rest) != 1 || rest[0].Failure != "the server ended" || rest[0].Duration == 0 {
		t.Errorf("%+v", rest)
	}
	if rest := s.Abandon(at, "", "again"); rest != nil {
		t.Errorf("%+v", rest)
	}
}

// Whatever the two sides exchange, each call makes a trace that ingest accepts. What does not fit
// is replaced by its size and digest.
func TestStrangeCallsAreOnRecord(t *testing.T) {
	large := strings.Repeat("x", schema.MaxTraceBytes)
	for name, c := range map[string]struct{ call, answer, want string }{
		"large arguments":     {`{"id":1,"method":"tools/call","params":{"name":"buy","arguments":{"a":"` + large + `"}}}`, `{"id":1,"result":{}}`, `"parameters":{"omitted_bytes":786440,`},
		"large result":        {`{"id":1,"method":"tools/call","params":{"name":"buy"}}`, `{"id":1,"result":{"a":"` + large + `"}}`, `"outputs":{"omitted_bytes":786440,`},
		"list of arguments":   {`{"id":1,"method":"tools/call","params":{"name":"buy","arguments":[1]}}`, `{"id":1,"result":{}}`, `"inputs":{"omitted_bytes":3,`},
		"a name twice":        {`{"id":1,"method":"tools/call","params":{"name":"buy","arguments":{"a":1,"a":2}}}`, `{"id":1,"result":{}}`, `"inputs":{"omitted_bytes":13,`},
		"result with a twin":  {`{"id":1,"method":"tools/call","params":{"name":"buy"}}`, `{"id":1,"result":{"a":1,"a":2,"isError":true,"content":[{"text":"no"}]}}`, `"error":"no"`},
		"result no object":    {`{"id":1,"method":"tools/call","params":{"name":"buy"}}`, `{"id":1,"result":"sold"}`, `"outputs":{"omitted_bytes":6,`},
		"neither of both":     {`{"id":1,"method":"tools/call","params":{"name":"buy"}}`, `{"id":1}`, `neither a result nor an error`},
		"no name":             {`{"id":1,"method":"tools/call","params":{}}`, `{"id":1,"result":{}}`, `"name":"(no name)"`},
		"long name":           {`{"id":1,"method":"tools/call","params":{"name":"` + large[:600] + `"}}`, `{"id":1,"result":{}}`, large[:509] + "…"},
		"invalid UTF-8":       {`{"id":1,"method":"tools/call","params":{"name":"b` + "\xff" + `","arguments":{"a":"` + "\xff" + `"}}}`, `{"id":1,"result":{}}`, `"inputs":{"omitted_bytes":9,`},
		"long error":          {`{"id":1,"method":"tools/call","params":{"name":"buy"}}`, `{"id":1,"error":{"message":"` + large + `"}}`, "…"},
		"parameters are text": {`{"id":1,"method":"tools/call","params":"x"}`, `{"id":1,"result":{}}`, `"name":"(no name)"`},
	} {
		s := &Session{AgentID: "a", CardID: "c"}
		_, _ = s.FromClient(time.Unix(1, 0), "", []byte(c.call)) // of params that are text it says so
		done, err := s.FromServer(time.Unix(2, 0), "", []byte(c.answer))
		if err != nil || len(done) != 1 {
			t.Errorf("%s: %d calls, error %v", name, len(done), err)
			continue
		}
		raw, err := done[0].Fit()
		if err != nil || !strings.Contains(string(raw), c.want) {
			t.Errorf("%s: %.2000s, error %v", name, raw, err)
		}
	}
}

// A call without an id cannot be answered, but a server may carry it out.
func TestCallWithoutAnID(t *testing.T) {
	s := &Session{AgentID: "a", CardID: "c", Unnumbered: true}
	done := live(t, s, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"buy"}}`)
	if len(done) != 1 || !strings.Contains(done[0].Failure, "no id") || done[0].SequenceNumber != nil {
		t.Fatalf("%+v", done)
	}
}

func TestBlock(t *testing.T) {
	s := &Session{AgentID: "a", CardID: "c"}
	live(t, s, buying, listing)
	v := s.Block(time.Unix(1_700_000_010, 0), "", "2", "no_message: nobody asked")
	if v == nil || v.Blocked != "no_message: nobody asked" || v.RequestID != "2" || *v.SequenceNumber != 1 {
		t.Fatalf("%+v", v)
	}
	if s.Block(time.Time{}, "", "2", "again") != nil || s.Block(time.Time{}, "", `"l"`, "no call") != nil {
		t.Error("blocked what is no call")
	}
}

func TestBlockedCallIsARecommendation(t *testing.T) {
	v := bought()
	v.Result, v.Blocked, v.MessageAuth = nil, "out_of_scope: no", []byte(`{"message_id":"m"}`)
	raw, err := v.Fit()
	if err != nil || !strings.Contains(string(raw), `"type":"recommend"`) || strings.Contains(string(raw), `"execution"`) ||
		!strings.Contains(string(raw), `"message_auth":{"message_id":"m"},"blocked":"out_of_scope: no"`) {
		t.Errorf("%s, error %v", raw, err)
	}
}

// The outputs of a trace that cites a signed result are that result or absent.
func TestLargeSignedResultIsAbsent(t *testing.T) {
	v := bought()
	v.MessageAuth = []byte(`{"message_id":"m"}`)
	v.Result = []byte(`{"a":"` + strings.Repeat("x", schema.MaxTraceBytes) + `"}`)
	raw, err := v.Fit()
	if err != nil || strings.Contains(string(raw), `"outputs"`) || !strings.Contains(string(raw), `"omitted_outputs":{"omitted_bytes":`) {
		t.Errorf("%.2000s, error %v", raw, err)
	}
}

func TestRequestsOfAGate(t *testing.T) {
	call := `{"id":7,"method":"tools/call","params":{"name":"buy","_meta":{"plumbline/message_id":"m"}}}`
	got, err := Requests([]byte(`[` + call + `,{"id":"8","method":"ping"},{"method":"notifications/initialized"},{"id":9,"result":{}}]`))
	if err != nil || len(got) != 2 || !got[0].Call || got[0].Tool != "buy" || got[0].MessageID != "m" || string(got[1].ID) != `"8"` || got[1].Call {
		t.Errorf("%+v, error %v", got, err)
	}
	// A call without an id is answered by nobody; the gate must see it.
	if got, err := Requests([]byte(`{"method":"tools/call","params":{"name":"buy"}}`)); err != nil || len(got) != 1 || got[0].ID != nil {
		t.Errorf("%+v, error %v", got, err)
	}
	for _, message := range []string{`{"id":1,"method":"ping","method":"tools/call"}`, `{"id":1} {"id":2}`, `{`, "{\"id\":\"\xff\"}", `{"id":1,"method":"tools/call","params":[]}`,
		`{"id":1,"Method":"tools/call"}`, `[{"id":1,"method":"tools/call","params":{"name":"x","Name":"y"}}]`, `{"id":1,"method":"ping","params":{"_META":{}}}`, `[{"id":1}] {}`} {
		if got, err := Requests([]byte(message)); err == nil {
			t.Errorf("%q was read as %+v", message, got)
		}
	}
	other := `{"id":1,"method":"tools/call","params":{"name":"x","arguments":{"Name":1,"ID":[{"Method":{}}]}}}`
	if got, err := Requests([]byte(other)); err != nil || len(got) != 1 {
		t.Errorf("%+v, error %v", got, err)
	}
	denied, err := ToolError([]byte(`"x"`), "no \"way\"")
	if want := `{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"no \"way\""}],"isError":true}}`; err != nil || string(denied) != want {
		t.Errorf("%s, error %v", denied, err)
	}
	failure, err := Failure(nil, CodeParse, "no")
	if want := `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`; err != nil || string(failure) != want {
		t.Errorf("%s, error %v", failure, err)
	}
}
