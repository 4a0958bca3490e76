package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// Session makes traces of the messages between an MCP client and a server, in the order in
// which they were sent. It numbers the calls in the order of their answers.
type Session struct {
	AgentID   string
	CardID    string
	SessionID string
	Server    string // name of the server; if empty, the name that the server reports

	asked   map[string]question // by the id of the request
	order   []string            // ids of the questions
	offered []schema.Alternative
	number  uint64 // of the last trace
}

// question is a request without an answer so far.
type question struct {
	at     time.Time
	method string
	params params
}

type params struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Cursor    string         `json:"cursor"`
}

// rpc is a JSON-RPC message: a request or the answer to one.
type rpc struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params jsontext.Value `json:"params"`
	Result jsontext.Value `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// answers are the members of results that a session reads.
type answers struct {
	ServerInfo struct {
		Name string `json:"name"`
	} `json:"serverInfo"`
	Tools []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"tools"`
}

const (
	methodInitialize = "initialize"
	methodList       = "tools/list"
	methodCall       = "tools/call"
)

// unanswered is the text of a trace about a call without an answer.
const unanswered = "no answer was recorded"

// Message reads one JSON-RPC message that was sent at the given time. It returns the trace of
// the call that the message answers, or nil where it answers no call. The error is that of
// Invocation.Trace, or says why the message is not JSON-RPC.
func (s *Session) Message(at time.Time, message []byte) (trace []byte, err error) {
	var m rpc
	if err := json.Unmarshal(message, &m); err != nil {
		return nil, fmt.Errorf("read a JSON-RPC message: %w", err)
	}
	switch {
	case m.Method != "" && m.ID != nil:
		return nil, s.ask(at, &m)
	case m.Method == "" && m.ID != nil:
		return s.answer(&m)
	}
	return nil, nil // a notification
}

func (s *Session) ask(at time.Time, m *rpc) error {
	if m.Method != methodInitialize && m.Method != methodList && m.Method != methodCall {
		return nil
	}
	q := question{at: at, method: m.Method}
	if m.Params != nil && m.Method != methodInitialize {
		if err := json.Unmarshal(m.Params, &q.params); err != nil {
			return fmt.Errorf("read the params of %s: %w", m.Method, err)
		}
	}
	if s.asked == nil {
		s.asked = map[string]question{}
	}
	id := string(m.ID)
	if _, twice := s.asked[id]; twice {
		return fmt.Errorf("the id %s belongs to an earlier request without an answer", schema.Clip(id, schema.MaxIDBytes))
	}
	s.asked[id], s.order = q, append(s.order, id)
	return nil
}

func (s *Session) answer(m *rpc) ([]byte, error) {
	id := string(m.ID)
	q, known := s.asked[id]
	if !known {
		return nil, nil // an answer to the server, or to a request that makes no trace
	}
	delete(s.asked, id)
	if q.method == methodCall {
		failure := ""
		if m.Error != nil {
			failure = m.Error.Message
		}
		return s.trace(id, &q, m.Result, failure)
	}
	var a answers
	if m.Result == nil {
		return nil, nil
	}
	if err := json.Unmarshal(m.Result, &a); err != nil {
		return nil, fmt.Errorf("read the result of %s: %w", q.method, err)
	}
	if q.method == methodInitialize && s.Server == "" {
		s.Server = a.ServerInfo.Name
	}
	if q.method != methodList {
		return nil, nil
	}
	if q.params.Cursor == "" { // otherwise a further page of the list
		s.offered = nil
	}
	for _, tool := range a.Tools {
		description := cmp.Or(tool.Description, "call "+tool.Name)
		s.offered = append(s.offered, schema.Alternative{OptionID: tool.Name, Description: description})
	}
	return nil, nil
}

func (s *Session) trace(id string, q *question, result jsontext.Value, failure string) ([]byte, error) {
	s.number++
	number := s.number
	// The id depends on the call alone, so the same transcript makes the same traces.
	sum := sha256.New()
	for _, part := range []string{s.AgentID, s.SessionID, q.at.UTC().Format(time.RFC3339Nano), id, q.params.Name, string(q.params.Arguments)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	v := Invocation{
		TraceID: "mcp-" + hex.EncodeToString(sum.Sum(nil)[:16]), AgentID: s.AgentID, CardID: s.CardID, Time: q.at, SessionID: s.SessionID,
		Server: s.Server, Tool: q.params.Name, Arguments: q.params.Arguments, Result: result, Failure: failure,
		SequenceNumber: &number, Selected: q.params.Name,
	}
	// The alternatives are the tools that the server offered, if the called one is among them and
	// a decision may have so many.
	called := func(a schema.Alternative) bool { return a.OptionID == q.params.Name }
	if len(s.offered) <= schema.MaxAlternatives && slices.ContainsFunc(s.offered, called) {
		v.Alternatives = s.offered
	}
	return v.Trace()
}

// End ends the session. It returns the traces of the calls without an answer, in the order in
// which they were made.
func (s *Session) End() (traces [][]byte, err error) {
	for _, id := range s.order {
		q, open := s.asked[id]
		if !open || q.method != methodCall {
			continue
		}
		raw, err := s.trace(id, &q, nil, unanswered)
		if err != nil {
			return nil, err
		}
		traces = append(traces, raw)
	}
	return traces, nil
}
