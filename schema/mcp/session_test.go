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
		if raw != nil {
			all = append(all, raw)
		}
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
	if unlisted.Context.Execution.Error != unanswered || len(unlisted.Decision.Alternatives) != 1 {
		t.Errorf("%+v", unlisted)
	}
	if last.Action.Name != "search" || last.Action.Target.Identifier != "shop" {
		t.Errorf("the server's first name must not change: %+v", last)
	}
	for i, trace := range traces {
		if trace.Context.SequenceNumber != uint64(i)+1 || trace.Context.SessionID != "s" {
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
	if got := play(t, listing, tools, listing, page, buying, bring); len(got[0].Decision.Alternatives) != 1 {
		t.Errorf("the tool that was called is no longer offered: %+v", got[0].Decision)
	}
}

func TestSessionRefuses(t *testing.T) {
	for name, messages := range map[string][]string{
		"no JSON":              {`x`},
		"params not an object": {`{"id":1,"method":"tools/call","params":[1]}`},
		"id in use":            {buying, buying},
		"tools not a list":     {listing, `{"id":"l","result":{"tools":1}}`},
		"a call of nothing":    {`{"id":1,"method":"tools/call"}`, `{"id":1,"result":{}}`},
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

// If the server offers no more tools than a decision may have alternatives, all of them are
// alternatives. If it offers more, the called tool is the only one.
func TestManyTools(t *testing.T) {
	for n, want := range map[int]int{schema.MaxAlternatives: schema.MaxAlternatives, schema.MaxAlternatives + 1: 1} {
		offered := []string{`{"name":"buy"}`}
		for i := 1; i < n; i++ {
			offered = append(offered, fmt.Sprintf(`{"name":"tool-%d"}`, i))
		}
		answer := `{"id":"l","result":{"tools":[` + strings.Join(offered, ",") + `]}}`
		if got := play(t, listing, answer, buying, bring); len(got[0].Decision.Alternatives) != want {
			t.Errorf("%d tools: %d alternatives", n, len(got[0].Decision.Alternatives))
		}
	}
}
