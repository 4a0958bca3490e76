package reading

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// maxPageBytes is how many bytes of traces one page has; at least one trace. A page that is full ends
// early, and its cursor continues after it.
const maxPageBytes = 8 << 20

// writeTime is how long the writing of a page may take.
const writeTime = 30 * time.Second

// tracePlace is the content of a cursor of traces.
type tracePlace struct {
	Time   int64         `json:"t"` // Unix nanoseconds
	Agent  string        `json:"a"`
	Trace  string        `json:"i"`
	Digest schema.Digest `json:"d"`
}

// listTraces answers with a page of traces, the newest event time first.
func (s *Service) listTraces(w http.ResponseWriter, r *http.Request, grant auth.Grant, _ func()) (int, error) {
	p := read(r, "agent_id", "session_id", "from", "to", "violation", "limit", "cursor")
	q := store.TraceQuery{SessionID: p.id("session_id"), Limit: p.limit()}
	q.From, q.To = p.during()
	q.Violation = p.violation()
	traces, cursor, err := s.tracesOf(r, p, grant, q)
	if err != nil {
		return 0, err
	}
	return writeTraces(w, traces, cursor)
}

// tracesOf returns a page of a query, with the agents and the cursor of the request. The cursor is of the next
// page, empty if there is none.
func (s *Service) tracesOf(r *http.Request, p *parameters, grant auth.Grant, q store.TraceQuery) (traces []*store.StoredTrace, cursor string, err error) {
	var place tracePlace
	if p.cursor(&place) {
		q.After = &store.PageTrace{EventTime: time.Unix(0, place.Time).UTC(), AgentID: place.Agent, TraceID: place.Trace, Digest: place.Digest}
	}
	if q.Agents, q.AgentID, err = p.agents(grant); err != nil {
		return nil, "", err
	}
	limit := q.Limit
	q.Limit++ // one more shows whether there is a next page
	places, err := s.rows.ListTraces(r.Context(), q)
	if err != nil {
		return nil, "", err
	}
	more := len(places) > limit
	places = places[:min(limit, len(places))]
	whole := len(places)
	traces, places, err = s.page(r, places)
	if err == nil && (more || len(places) < whole) {
		last := places[len(places)-1]
		cursor, err = cursorAt(tracePlace{last.EventTime.UnixNano(), last.AgentID, last.TraceID, last.Digest})
	}
	return traces, cursor, err
}

// violationTypes are the values of the parameter violation.
var violationTypes = []string{store.AnyViolation, schema.UnboundedAction, schema.ForbiddenAction, schema.MissedEscalation,
	schema.UndeclaredValue, schema.CardExpired, schema.CardMismatch}

func (p *parameters) violation() string {
	text := p.values.Get("violation")
	for _, known := range violationTypes {
		if text == known {
			return text
		}
	}
	if p.values.Has("violation") {
		p.fault("violation", "%q: want one of %q", clip(text), violationTypes)
	}
	return ""
}

// page returns the traces at the first of some places, as many as a page has room for, and these
// places.
func (s *Service) page(r *http.Request, places []store.PageTrace) ([]*store.StoredTrace, []store.PageTrace, error) {
	if len(places) == 0 {
		return nil, nil, nil
	}
	sizes, err := s.rows.TraceBytes(r.Context(), places)
	if err != nil {
		return nil, nil, err
	}
	n, total := 1, sizes[places[0].Digest]
	for n < len(places) && total+sizes[places[n].Digest] <= maxPageBytes {
		total += sizes[places[n].Digest]
		n++
	}
	traces, err := s.rows.TracesAt(r.Context(), places[:n])
	return traces, places[:n], err
}

// getTrace answers with every record of a trace id that the token covers: several if agents or
// contents differ, and then perhaps on several pages.
func (s *Service) getTrace(w http.ResponseWriter, r *http.Request, grant auth.Grant, _ func()) (int, error) {
	p := read(r, "agent_id", "cursor")
	q := store.TraceQuery{TraceID: r.PathValue("trace_id"), From: schema.EarliestTime, To: schema.LatestTime, Limit: maxLimit}
	traces, cursor, err := s.tracesOf(r, p, grant, q)
	if err != nil {
		return 0, err
	}
	if len(traces) == 0 && !p.values.Has("cursor") {
		return 0, problem.New(http.StatusNotFound, "unknown_trace",
			"no trace %q is stored of an agent that this token covers; a trace can be read a moment after it was accepted", clip(q.TraceID))
	}
	return writeTraces(w, traces, cursor)
}

// listedTrace is one trace of an answer. Member trace is written before these.
type listedTrace struct {
	AgentID        string          `json:"agent_id"`
	TraceID        string          `json:"trace_id"`
	CardID         string          `json:"card_id"`
	SessionID      string          `json:"session_id"`
	Timestamp      time.Time       `json:"timestamp"` // of the trace, in UTC
	ReceivedAt     time.Time       `json:"received_at"`
	StreamSequence uint64          `json:"stream_sequence"`
	Digest         schema.Digest   `json:"digest"`
	Altered        bool            `json:"altered,omitempty"`
	Verdict        *schema.Verdict `json:"verdict"`
}

// writeTraces answers with traces. Each one's bytes are written as they are stored, so their SHA-256
// is the digest.
func writeTraces(w http.ResponseWriter, traces []*store.StoredTrace, cursor string) (int, error) {
	size := 64
	for _, t := range traces {
		size += len(t.Raw) + 2<<10
	}
	b := append(make([]byte, 0, size), `{"traces":[`...)
	for i, t := range traces {
		if i > 0 {
			b = append(b, ',')
		}
		rest, err := json.Marshal(listedTrace{
			AgentID: t.AgentID, TraceID: t.TraceID, CardID: t.CardID, SessionID: t.SessionID, Timestamp: t.EventTime,
			ReceivedAt: t.Received, StreamSequence: t.Sequence, Digest: t.Digest, Altered: schema.DigestOf(t.Raw) != t.Digest, Verdict: t.Verdict,
		})
		if err != nil {
			return 0, fmt.Errorf("encode trace %q: %w", t.TraceID, err)
		}
		if json.Valid(t.Raw) {
			b = append(append(b, `{"trace":`...), t.Raw...)
		} else { // an altered row
			b = append(b, `{"trace_base64":"`...)
			b = append(base64.StdEncoding.AppendEncode(b, t.Raw), '"')
		}
		b = append(append(b, ','), rest[1:]...)
	}
	b = append(b, ']')
	if cursor != "" {
		b = append(append(append(b, `,"next_cursor":"`...), cursor...), '"')
	}
	// A reader who takes longer would keep others from reading.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // if it supports deadlines
	w.Header().Set("Content-Type", request.TypeJSON)
	w.Header().Set("Cache-Control", "private, no-store")
	return problem.WriteText(w, http.StatusOK, append(b, "}\n"...)), nil
}
