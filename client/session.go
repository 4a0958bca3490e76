package client

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/plumbline/plumbline/schema"
)

// Session is a session of a recorder's agent. Its traces are numbered from 1 in the order in
// which they are recorded, and no trace is dated earlier than the one with the number before it.
type Session struct {
	recorder *Recorder
	state    *sessionState
	open     bool // End sends no request
}

// sessionState is what a recorder knows of a session id. A session that is begun again continues
// with it.
type sessionState struct {
	id    string
	begun uint64 // order among the recorder's sessions; guarded by its lock

	mu    sync.Mutex
	next  uint64 // number of the next trace; 0: its traces have no numbers
	last  time.Time
	ended bool
}

// SessionOption changes a session from the usual.
type SessionOption func(*Session)

// KeepOpen is for a conversation that continues later: End does not request the end of the
// session, which ends when it is idle.
func KeepOpen() SessionOption { return func(s *Session) { s.open = true } }

// FirstNumber is the number of the session's next trace, for example NextNumber of the agent's
// last session, so that traces withheld at its end leave a gap. 0 means no numbers: for a session
// in which several processes record.
func FirstNumber(n uint64) SessionOption { return func(s *Session) { s.state.next = n } }

// maxSessions bounds the sessions whose numbers a recorder remembers.
const maxSessions = 1000

// Session begins a session, or continues one that this recorder had. An empty id is a new UUID.
func (r *Recorder) Session(id string, options ...SessionOption) *Session {
	if id == "" {
		id = uuid.NewString()
	}
	r.mu.Lock()
	state := r.sessions[id]
	if state == nil {
		if len(r.sessions) >= maxSessions {
			r.forgetSession()
		}
		state = &sessionState{id: id, next: 1}
		r.sessions[id] = state
	}
	r.begun++
	state.begun = r.begun
	r.mu.Unlock()
	s := &Session{recorder: r, state: state}
	state.mu.Lock()
	defer state.mu.Unlock()
	state.ended = false
	for _, option := range options {
		option(s)
	}
	return s
}

// forgetSession forgets the session that was begun first. The caller holds the lock.
func (r *Recorder) forgetSession() {
	var first *sessionState
	for _, state := range r.sessions {
		if first == nil || state.begun < first.begun {
			first = state
		}
	}
	delete(r.sessions, first.id)
}

// ID returns the session's id.
func (s *Session) ID() string { return s.state.id }

// NextNumber returns the number of the session's next trace.
func (s *Session) NextNumber() uint64 {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return s.state.next
}

// Record records a decision and returns the id of its trace. If the decision makes no valid trace,
// OnError gets the faults.
func (s *Session) Record(d Decision) (traceID string) {
	number := s.begin(&d)
	s.recorder.record(s.state.id, number, &d)
	return d.TraceID
}

// begin gives a decision its id, its number and its time.
func (s *Session) begin(d *Decision) (number uint64) {
	if d.TraceID == "" {
		d.TraceID = uuid.NewString()
	}
	if d.Timestamp.IsZero() {
		d.Timestamp = time.Now()
	}
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	if d.Timestamp.Before(s.state.last) {
		d.Timestamp = s.state.last
	}
	s.state.last = d.Timestamp
	if number = s.state.next; number > 0 {
		s.state.next++
	}
	return number
}

// record builds the trace of a decision, once, and hands it to the delivery.
func (r *Recorder) record(sessionID string, number uint64, d *Decision) {
	defer r.recovered() // a value's own methods may panic
	limit := schema.MaxTraceBytes
	if r.config.Key != nil {
		limit -= signatureRoom
	}
	var w written
	var raw []byte
	var err error
	for _, most := range memberBytes {
		w = written{options: r.options, most: most}
		raw, err = w.trace(r.config.AgentID, r.config.CardID, sessionID, number, d)
		if err != nil || len(raw) <= limit {
			break
		}
	}
	if err == nil {
		_, err = schema.Admit(r.config.AgentID, raw)
	}
	if err == nil && len(raw) > limit {
		err = fmt.Errorf("%d bytes, a trace may have %d", len(raw), limit)
	}
	if err != nil {
		r.invalid(d.TraceID, err)
		return
	}
	for _, name := range w.leftOut {
		r.reports.warn(WarnLeftOut, name+" is too large or too deep for a trace, or cannot be read: the trace says so instead of it", d.TraceID)
	}
	r.put(raw, true)
}

// WarnLeftOut is the code of a warning: a value was too large or too deep for its trace.
const WarnLeftOut = "left_out"

// Call is a call of a tool that has begun.
type Call struct {
	session  *Session
	decision Decision
	number   uint64
	started  time.Time
}

// Begin begins a call of a tool: it takes the number and the time of its trace, which End
// records. The parameters of the decision are the inputs of its execution, unless it has an
// Execution of its own.
func (s *Session) Begin(d Decision) *Call {
	c := &Call{session: s, decision: d, started: time.Now()}
	c.number = s.begin(&c.decision)
	return c
}

// End records the call with its outputs, or with the error that it ended with, and returns the
// id of the trace.
func (c *Call) End(outputs any, err error) (traceID string) {
	d := &c.decision
	execution := Execution{ToolName: d.Action, Inputs: d.Parameters}
	if d.Execution != nil {
		execution = *d.Execution
	}
	execution.Outputs = outputs
	if err != nil {
		execution.Error = err.Error()
	}
	d.Execution = &execution
	metadata := map[string]any{"duration_ms": float64(time.Since(c.started).Microseconds()) / 1000}
	maps.Copy(metadata, d.Metadata)
	d.Metadata = metadata
	c.session.recorder.record(c.session.state.id, c.number, d)
	return d.TraceID
}

// End requests the end of the session, once its traces are stored. It does not wait.
func (s *Session) End() {
	s.state.mu.Lock()
	first := !s.state.ended
	s.state.ended = true
	s.state.mu.Unlock()
	if first && !s.open {
		s.recorder.EndSession(s.state.id)
	}
}

// endItem is the line of the spool that requests the end of a session.
type endItem struct {
	EndSession struct {
		AgentID   string `json:"agent_id"`
		SessionID string `json:"session_id"`
	} `json:"end_session"`
}

// EndSession requests the end of a session whose traces were built elsewhere, once they are
// stored. It does not wait.
func (r *Recorder) EndSession(sessionID string) {
	defer r.recovered()
	var end endItem
	end.EndSession.AgentID, end.EndSession.SessionID = r.config.AgentID, sessionID
	line, err := json.Marshal(end, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		r.invalid("", err)
		return
	}
	r.put(line, false)
}
