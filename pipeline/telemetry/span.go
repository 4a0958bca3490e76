package telemetry

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/plumbline/plumbline/pipeline/wire"
)

// Tracer makes the spans of one stage. A nil Tracer makes none.
type Tracer struct {
	stage   string
	queue   chan<- ptrace.Span
	wake    chan<- struct{} // there is enough for a request
	dropped func()          // counts a span that does not fit into the queue
}

// Span is something that a stage does, such as the commit of a batch. Only one goroutine uses it at a time, and none
// after End. A nil Span does nothing.
type Span struct {
	tracer *Tracer
	data   ptrace.Span
}

// Begin begins a span of its own trace, at a time that may be past. No part of a trace may be in the name.
func (t *Tracer) Begin(name string, at time.Time) *Span {
	if t == nil {
		return nil
	}
	s := &Span{tracer: t, data: ptrace.NewSpan()}
	s.data.SetTraceID(newTraceID())
	s.data.SetSpanID(newSpanID())
	s.data.SetName(name)
	s.data.SetKind(ptrace.SpanKindInternal)
	s.data.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
	s.data.Attributes().PutStr("plumbline.stage", t.stage)
	return s
}

// Request records a request that is answered with a status code. pattern is its route, as http.ServeMux takes it;
// traceparent is the header of the client's span, which becomes the parent. As usual with OpenTelemetry there is no
// span if the client does not sample its own one. The header of a client without a valid token is ignored.
func (t *Tracer) Request(pattern, traceparent string, began time.Time, code int) {
	if t == nil {
		return
	}
	s := t.Begin(pattern, began)
	if parent := wire.Traceparent(traceparent); parent != "" && code != http.StatusUnauthorized {
		trace, span, sampled := split(parent)
		if !sampled {
			return
		}
		s.data.SetTraceID(trace)
		s.data.SetParentSpanID(span)
	}
	s.data.SetKind(ptrace.SpanKindServer)
	method, route, _ := strings.Cut(pattern, " ")
	s.data.Attributes().PutStr("http.request.method", method)
	s.data.Attributes().PutStr("http.route", route)
	s.Number("http.response.status_code", code)
	s.end(code >= http.StatusInternalServerError)
}

// Step records that a step begins now.
func (s *Span) Step(name string) {
	if s != nil {
		event := s.data.Events().AppendEmpty()
		event.SetName(name)
		event.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	}
}

// Number sets an attribute.
func (s *Span) Number(name string, n int) {
	if s != nil {
		s.data.Attributes().PutInt(name, int64(n))
	}
}

// End ends the span and queues it. Of err it has only that there is one: the log has the error.
func (s *Span) End(err error) {
	if s != nil {
		s.end(err != nil)
	}
}

func (s *Span) end(failed bool) {
	s.data.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	if failed {
		s.data.Status().SetCode(ptrace.StatusCodeError)
	}
	select {
	case s.tracer.queue <- s.data:
	default:
		s.tracer.dropped()
	}
	if len(s.tracer.queue) >= together {
		select {
		case s.tracer.wake <- struct{}{}:
		default: // the sender knows
		}
	}
}

// split returns the parts of a valid traceparent, "00-<32 digits>-<16 digits>-<2 digits>", all of which are
// hexadecimal digits.
func split(traceparent string) (trace pcommon.TraceID, span pcommon.SpanID, sampled bool) {
	var flags [1]byte
	_, _ = hex.Decode(trace[:], []byte(traceparent[3:35]))
	_, _ = hex.Decode(span[:], []byte(traceparent[36:52]))
	_, _ = hex.Decode(flags[:], []byte(traceparent[53:55]))
	return trace, span, flags[0]&1 == 1
}

// The ids of spans are random, not secret, and not zero.
func newSpanID() (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

func newTraceID() (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:8], rand.Uint64()|1)
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	return id
}
