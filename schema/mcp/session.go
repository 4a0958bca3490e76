package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// Session pairs the messages between an MCP client and a server, in the order in which they
// were sent. It numbers the calls in the order in which they were made. FromClient, FromServer,
// Block and Abandon return the calls that are over. Message and End are for a transcript without
// directions and return traces.
type Session struct {
	AgentID    string
	CardID     string
	SessionID  string
	Server     string // name of the server; if empty, the name that the server reports
	Unnumbered bool   // for a session in which others record, too

	asked   map[question]*request
	order   []question // in the order in which they were asked
	offered []schema.Alternative
	listed  bool // whether a list of tools was seen
	pages   bool // whether further pages of the list follow
	number  uint64
	last    time.Time // of the last call
}

// question identifies a request without an answer so far. An id is unique within its scope.
type question struct{ scope, id string }

// request is what a question asked.
type request struct {
	at     time.Time
	method string
	params params
	number uint64 // of a call
	// The tools that the server had offered when the request was made.
	offered []schema.Alternative
	listed  bool
}

// unanswered is the text of a trace about a call without an answer.
const unanswered = "no answer was recorded"

// FromClient reads a message, or a batch of messages, of the client. It returns the calls that
// the client cancelled. Requests of different scopes may have the same id: the scope of a
// transport with one stream in each direction is empty. The error says which message could not
// be read; the others of the batch were.
func (s *Session) FromClient(at time.Time, scope string, message []byte) (done []*Invocation, err error) {
	err = each(message, func(m *rpc) error {
		switch {
		case m.Method != "" && (m.ID != nil || m.Method == methodCall):
			over, err := s.ask(at, scope, m)
			done = append(done, over...)
			return err
		case m.Method == methodCancelled:
			cancelled, err := s.cancel(at, scope, m)
			done = append(done, cancelled...)
			return err
		}
		return nil // an answer to the server, or another notification
	})
	return done, err
}

// FromServer reads a message, or a batch of messages, of the server. It returns the calls that
// were answered.
func (s *Session) FromServer(at time.Time, scope string, message []byte) (done []*Invocation, err error) {
	err = each(message, func(m *rpc) error {
		if m.Method != "" || m.ID == nil {
			return nil // a request of the server, or a notification
		}
		answered, err := s.answer(at, scope, m)
		if answered != nil {
			done = append(done, answered)
		}
		return err
	})
	return done, err
}

// Abandon forgets requests of a scope, all of them or those with the ids: they will not be
// answered. It returns the calls among them in the order in which they were made, with why as the
// error of each.
func (s *Session) Abandon(at time.Time, scope, why string, ids ...string) (done []*Invocation) {
	for _, q := range slices.Clone(s.order) {
		if q.scope != scope || len(ids) > 0 && !slices.Contains(ids, q.id) {
			continue
		}
		if r := s.take(q); r.method == methodCall {
			done = append(done, s.invocation(at, q, r, nil, why))
		}
	}
	return done
}

// Block returns a call that a gate did not pass on, with the reason; nil if there is no such call.
func (s *Session) Block(at time.Time, scope, id, why string) *Invocation {
	r := s.take(question{scope, id})
	if r == nil || r.method != methodCall {
		return nil
	}
	v := s.invocation(at, question{scope, id}, r, nil, "")
	v.Blocked, v.Duration = why, 0
	v.Reasoning += " The call was not passed on to the server."
	return v
}

// Message reads one message, or a batch, of a transcript that does not say who sent it. It
// returns the traces of the calls that the message ends. The error is that of Invocation.Trace,
// or says why the message is not JSON-RPC.
func (s *Session) Message(at time.Time, message []byte) (traces [][]byte, err error) {
	ended, err := s.FromClient(at, "", message)
	if err != nil {
		return nil, err
	}
	answered, err := s.FromServer(at, "", message)
	if err != nil {
		return nil, err
	}
	return s.traces(append(ended, answered...))
}

// End ends a transcript. It returns the traces of the calls without an answer, in the order in
// which they were made.
func (s *Session) End() (traces [][]byte, err error) {
	return s.traces(s.Abandon(time.Time{}, "", unanswered))
}

func (s *Session) traces(done []*Invocation) (traces [][]byte, err error) {
	for _, v := range done {
		raw, err := v.Fit()
		if err != nil {
			return nil, err
		}
		traces = append(traces, raw)
	}
	return traces, nil
}

// ask records a request. It returns the call that had the same id and no answer, and the call
// itself if it has no id.
func (s *Session) ask(at time.Time, scope string, m *rpc) (over []*Invocation, err error) {
	if m.Method != methodInitialize && m.Method != methodDiscover && m.Method != methodList && m.Method != methodCall {
		return nil, nil
	}
	r := &request{at: at, method: m.Method, offered: s.offered, listed: s.listed}
	if m.Method == methodList || m.Method == methodCall {
		err = m.params(&r.params) // a call is on record even if its parameters cannot be read
	}
	if m.Method == methodCall {
		if at.Before(s.last) { // the clock was set back
			r.at = s.last
		}
		s.last = r.at
		s.number++
		r.number = s.number
	}
	q := question{scope, string(m.ID)}
	if m.ID == nil {
		return append(over, s.invocation(at, q, r, nil, "the call has no id, so it cannot be answered")), err
	}
	if earlier := s.take(q); earlier != nil && earlier.method == methodCall {
		over = append(over, s.invocation(at, q, earlier, nil, unanswered+"; the client used its id again"))
	}
	if s.asked == nil {
		s.asked = map[question]*request{}
	}
	s.asked[q], s.order = r, append(s.order, q)
	return over, err
}

// take returns the request of a question and forgets it; nil if there is none.
func (s *Session) take(q question) *request {
	r := s.asked[q]
	if r != nil {
		delete(s.asked, q)
		s.order = slices.DeleteFunc(s.order, func(other question) bool { return other == q })
	}
	return r
}

// cancel ends the call that a notification of the client cancels. The server may have carried it
// out: an answer that still arrives is not read.
func (s *Session) cancel(at time.Time, scope string, m *rpc) (done []*Invocation, err error) {
	var p struct {
		RequestID jsontext.Value `json:"requestId"`
		Reason    string         `json:"reason"`
	}
	if err := m.params(&p); err != nil {
		return nil, err
	}
	q := question{scope, string(idOf(p.RequestID))}
	r := s.asked[q]
	if r == nil || r.method != methodCall {
		return nil, nil
	}
	s.take(q)
	why := "cancelled by the client; it is not known whether the tool acted"
	if p.Reason != "" {
		why += ": " + p.Reason
	}
	return append(done, s.invocation(at, q, r, nil, why)), nil
}

// answer reads an answer of the server. It returns the call that it answers, nil if it answers
// another request.
func (s *Session) answer(at time.Time, scope string, m *rpc) (*Invocation, error) {
	q := question{scope, string(m.ID)}
	r := s.take(q)
	if r == nil {
		return nil, nil // of a request that makes no trace
	}
	var a answers
	var err error
	if m.Result != nil && (r.method != methodCall || s.Server == "") {
		err = lenient(m.Result, &a)
	}
	if s.Server == "" && r.method == methodInitialize {
		s.Server = schema.Clip(a.ServerInfo.Name, maxName)
	}
	if s.Server == "" {
		s.Server = schema.Clip(a.Meta.ServerInfo.Name, maxName)
	}
	switch {
	case r.method == methodCall && m.Error != nil:
		return s.invocation(at, q, r, nil, cmp.Or(m.Error.Message, unnamedFailure)), nil
	case r.method == methodCall && m.Result == nil:
		return s.invocation(at, q, r, nil, "the answer has neither a result nor an error"), nil
	case r.method == methodCall:
		return s.invocation(at, q, r, m.Result, ""), nil
	case err != nil:
		return nil, fmt.Errorf("read the result of %s: %w", r.method, err)
	case m.Result == nil || r.method != methodList:
		return nil, nil
	}
	if r.params.Cursor == "" { // otherwise a further page of the list
		s.offered = nil
	}
	s.listed, s.pages = true, a.NextCursor != ""
	s.offered = slices.Clip(s.offered) // requests keep the list that they were made with
	for _, tool := range a.Tools {
		name := nameOf(tool.Name)
		if tool.Name == "" || slices.ContainsFunc(s.offered, named(name)) {
			continue
		}
		description := cmp.Or(schema.Clip(tool.Description, maxDescription), "call "+name)
		s.offered = append(s.offered, schema.Alternative{OptionID: name, Description: description})
	}
	return nil, nil
}

// Offered returns the names of the tools in the server's last list, and whether the list is
// complete.
func (s *Session) Offered() (names []string, complete bool) {
	for i := range s.offered {
		names = append(names, s.offered[i].OptionID)
	}
	return names, s.listed && !s.pages
}

// invocation returns a call that is over.
func (s *Session) invocation(at time.Time, q question, r *request, result jsontext.Value, failure string) *Invocation {
	// The id depends on the call alone, so the same transcript makes the same traces.
	sum := sha256.New()
	for _, part := range []string{s.AgentID, s.SessionID, r.at.UTC().Format(time.RFC3339Nano), q.id, r.params.Name, string(r.params.Arguments)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	name := nameOf(r.params.Name)
	v := &Invocation{
		TraceID: "mcp-" + hex.EncodeToString(sum.Sum(nil)[:16]), AgentID: s.AgentID, CardID: s.CardID, Time: r.at, SessionID: s.SessionID,
		Server: s.Server, Tool: name, Arguments: r.params.Arguments, Result: result, Failure: schema.Clip(failure, maxFailure), Selected: name,
		Scope: q.scope, RequestID: q.id,
	}
	if !s.Unnumbered {
		v.SequenceNumber = &r.number
	}
	if !at.IsZero() {
		v.Duration = max(at.Sub(r.at), 0)
	}
	v.Alternatives, v.Reasoning = options(r, name)
	return v
}

// What a trace made of messages says about the model's reasons, and about alternatives that
// differ from the server's list.
const (
	unknownReasons = "Recorded between the MCP client and the server. The messages do not contain the model's reasons."
	neverListed    = " No list of the server's tools was seen before the call."
	notOffered     = " The tool is not in the server's last list of tools."
	moreOffered    = " The server offered %d tools, of which %d are listed."
)

// options returns the alternatives of a call: the tools that the server offered, the called one
// among them. It also returns the reasoning.
func options(r *request, name string) ([]schema.Alternative, string) {
	reasoning, all := unknownReasons, r.offered
	called := slices.IndexFunc(all, named(name))
	if called < 0 {
		why := notOffered
		if !r.listed {
			why = neverListed
		}
		reasoning += why
		all = append(slices.Clip(all), schema.Alternative{OptionID: name, Description: "call " + name})
		called = len(all) - 1
	}
	if len(all) <= schema.MaxAlternatives {
		return all, reasoning
	}
	first := slices.Clone(all[:schema.MaxAlternatives])
	if called >= len(first) {
		first[len(first)-1] = all[called]
	}
	return first, reasoning + fmt.Sprintf(moreOffered, len(r.offered), len(first))
}

func named(name string) func(schema.Alternative) bool {
	return func(a schema.Alternative) bool { return a.OptionID == name }
}
