package ingest

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/otel"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/schema"
)

const (
	// pathSpans is where OTLP/HTTP is received. The endpoint that exporters are given is that without
	// /v1/traces, which they append. At /v1/traces itself JSON is a trace.
	pathSpans    = "/otlp/v1/traces"
	spansHint    = "set OTEL_EXPORTER_OTLP_ENDPOINT to the address of this ingest and /otlp (docs/OTEL.md)"
	typeProtobuf = "application/x-protobuf"

	// maxSpansBytes is the largest body of spans, unpacked: they are decoded as a whole.
	maxSpansBytes = 16 << 20
	// chunkBytes is how many bytes of traces are committed together, at least.
	chunkBytes = 1 << 20

	noDecision = "no_decision" // outcome of a span that is none
)

// postSpans stores the traces of the spans of an OTLP/HTTP request.
func (s *server) postSpans(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
	kind, err := request.MediaType(r, typeProtobuf, request.TypeJSON)
	if err != nil {
		return 0, err
	}
	held := s.router.Hold(r)
	defer held.Release()
	limit := min(s.cfg.MaxBodyBytes, maxSpansBytes, held.Share()-1) // a body that never fits is too large, and not to be repeated
	body, err := s.router.Body(w, r, new(gzip.Reader), limit)
	if err != nil {
		return 0, err
	}
	raw, err := held.ReadAll(r.Context(), body, limit)
	if err != nil {
		return 0, err
	}
	encoding := otel.Protobuf
	if kind == request.TypeJSON {
		encoding = otel.JSON
	}
	done, err := s.export(r, held, encoding, raw, grant)
	if err != nil {
		return 0, err
	}
	text, err := done.answer(encoding)
	if err != nil {
		return 0, fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", kind)
	return problem.WriteText(w, http.StatusOK, text), nil
}

// export is one OTLP request in progress.
type export struct {
	upload
	traces   int           // mapped spans
	spans    []ptrace.Span // of the chunk, by the line of their result minus first
	first    int
	bytes    int // of the traces of the chunk
	rejected int64
	notes    notes
}

// export maps the spans of a request and stores their traces, in their order and by the path of lines:
// admit, then commit. After an error the client sends the same request again; the same span gives the
// same bytes, so what is stored already is then a duplicate.
func (s *server) export(r *http.Request, held *request.Holding, encoding otel.Encoding, raw []byte, grant auth.Grant) (*export, error) {
	spans, err := decodeSpans(r.Context(), held, encoding, raw)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	e := &export{upload: upload{server: s, buffers: s.pool.take(), grant: grant, began: now, forgotten: now.Add(-recognised)}}
	e.recheck = func() error { return s.router.Recheck(r, auth.TracesWrite) }
	e.report = e.note
	e.lines.whole = true
	p := e.runSpans(r.Context(), spans)
	if !e.suspect {
		s.pool.giveBack(e.buffers)
	}
	if p != nil {
		return nil, p
	}
	return e, nil
}

// decodeSpans decodes a request into memory that it reserves first.
func decodeSpans(ctx context.Context, held *request.Holding, encoding otel.Encoding, raw []byte) (ptrace.Traces, error) {
	unreadable := func(err error) error {
		return problem.New(http.StatusBadRequest, "invalid_otlp", "the body is no ExportTraceServiceRequest: %v", err)
	}
	size, err := otel.Size(encoding, raw)
	if err != nil {
		return ptrace.Traces{}, unreadable(err)
	}
	if size += int64(cap(raw)) + chunkBytes + schema.MaxTraceBytes; size > held.Share() { // with the body, which is held already
		return ptrace.Traces{}, problem.New(http.StatusRequestEntityTooLarge, "too_large",
			"the decoded request needs %d bytes of memory, a request may have %d: send fewer spans in a request", size, held.Share())
	}
	if err := held.Grow(ctx, size); err != nil {
		return ptrace.Traces{}, err
	}
	spans, err := otel.Decode(encoding, raw)
	if err != nil {
		return ptrace.Traces{}, unreadable(err)
	}
	if n := spans.SpanCount(); n > maxLines {
		return ptrace.Traces{}, problem.New(http.StatusRequestEntityTooLarge, "too_large", "%d spans, a request may have %d: send them in several requests", n, maxLines)
	}
	return spans, nil
}

// runSpans maps and admits the spans and commits their traces, chunk after chunk. It returns a problem if
// the request must be sent again.
func (e *export) runSpans(ctx context.Context, spans ptrace.Traces) *problem.Problem {
	for _, resource := range spans.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				e.admitSpan(span, otel.Map(resource.Resource(), scope.Scope(), span), func() []byte { return otel.Letter(resource.Resource(), scope.Scope(), span) })
				if len(e.results) < chunkLines && e.bytes < chunkBytes {
					continue
				}
				if p := e.commitChunk(ctx); p != nil {
					return p
				}
				if e.stopping() {
					return problem.Unavailable(0, "the service is stopping: send the request again, to another instance or later")
				}
			}
		}
	}
	return e.commitChunk(ctx)
}

func (e *export) commitChunk(ctx context.Context) *problem.Problem {
	p := e.commit(ctx)
	e.spans, e.first, e.bytes = e.spans[:0], e.traces, 0
	return p
}

// admitSpan admits the trace of a span, refuses a decision without one, and counts what is no decision.
// letter returns the bytes of the dead letter.
func (e *export) admitSpan(span ptrace.Span, mapped otel.Result, letter func() []byte) {
	for _, name := range mapped.Unread {
		e.notes.add("unread_attribute", span, schema.Clip(name, schema.MaxIDBytes)+" names no member of a trace; docs/OTEL.md lists the names")
	}
	if mapped.Reason != "" {
		e.metrics.unmapped.WithLabelValues(mapped.Reason).Inc()
	}
	if mapped.Trace == nil && len(mapped.Faults) == 0 {
		e.metrics.spans.WithLabelValues(noDecision).Inc()
		return
	}
	e.traces++
	e.lines.number = e.traces
	e.spans = append(e.spans, span)
	e.bytes += len(mapped.Trace)
	e.parent = parentOf(span)
	if mapped.Trace == nil {
		e.trace.TraceID, e.trace.AgentID = otel.TraceID(span.TraceID(), span.SpanID()), ""
		e.refuse(refused, otel.ReasonUnmapped, letter(), mapped.Faults...)
		return
	}
	if err := e.admit(mapped.Trace); err != nil { // a whole line never fills a window
		e.refuse(refused, schema.ReasonInvalidTrace, mapped.Trace, schema.Fault{Message: err.Error()})
	}
}

// parentOf returns a span as a traceparent. The lowest byte of its flags is that of W3C.
func parentOf(span ptrace.Span) string {
	trace, id := span.TraceID(), span.SpanID()
	return fmt.Sprintf("00-%x-%x-%02x", trace[:], id[:], span.Flags()&0xff)
}

// note counts the outcome of a span, and notes what the client must know.
func (e *export) note(r *result) {
	e.metrics.spans.WithLabelValues(r.status.String()).Inc()
	span := e.spans[r.line-e.first-1]
	switch r.status {
	case refused, forbidden:
		e.rejected++
		for _, fault := range r.faults {
			e.notes.add(strings.TrimSuffix(r.status.String()+": "+fault.Pointer, ": "), span, fault.Message) // a fault of the whole span has no pointer
		}
	case accepted, duplicate:
		for _, warning := range r.warnings {
			e.notes.add("warning "+warning.Code, span, warning.Message)
		}
	}
}

// notes are what the answer says about spans: each kind once, with its number and its first span.
type notes struct {
	kinds []note
	more  int // notes of further kinds
}

type note struct {
	kind, first string
	count       int
}

// maxNotes bounds the kinds of notes in an answer.
const maxNotes = 10

func (n *notes) add(kind string, span ptrace.Span, message string) {
	for i := range n.kinds {
		if n.kinds[i].kind == kind {
			n.kinds[i].count++
			return
		}
	}
	if len(n.kinds) == maxNotes {
		n.more++
		return
	}
	id := span.SpanID()
	first := fmt.Sprintf("span %s (%s): %s", hex.EncodeToString(id[:]), schema.Clip(span.Name(), 64), schema.Clip(message, schema.MaxIDBytes))
	n.kinds = append(n.kinds, note{kind: kind, first: strings.ToValidUTF8(first, "\uFFFD"), count: 1})
}

// text returns the notes as one text.
func (n *notes) text() string {
	var b strings.Builder
	for i, k := range n.kinds {
		if i > 0 {
			b.WriteString("; ")
		}
		times := ":"
		if k.count > 1 {
			times = fmt.Sprintf(", %d times: first", k.count)
		}
		fmt.Fprintf(&b, "%s%s %s", k.kind, times, k.first)
	}
	if n.more > 0 {
		fmt.Fprintf(&b, "; and %d further notes", n.more)
	}
	return b.String()
}

// answer returns the ExportTraceServiceResponse. It is a partial success if spans were rejected, or if
// there are notes.
func (e *export) answer(encoding otel.Encoding) ([]byte, error) {
	return otel.Answer(encoding, e.rejected, e.notes.text())
}

// refuseSpans answers with a problem as OTLP/HTTP wants it: a Status in the encoding of the request.
// Clients repeat a request after 503 and not after 408, so a body that came too slowly is a 503.
func refuseSpans(w http.ResponseWriter, r *http.Request, p *problem.Problem) int {
	if p.Code == http.StatusRequestTimeout {
		p = problem.Unavailable(0, "%s", p.Message)
	}
	p.SetHeaders(w.Header())
	encoding, kind := otel.JSON, request.TypeJSON
	if strings.HasPrefix(r.Header.Get("Content-Type"), typeProtobuf) {
		encoding, kind = otel.Protobuf, typeProtobuf
	}
	w.Header().Set("Content-Type", kind)
	text, err := otel.Status(encoding, otel.CodeOf(p.Code), p.Message)
	if err != nil {
		text = nil // the code says enough
	}
	return problem.WriteText(w, p.Code, text)
}
