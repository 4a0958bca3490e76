package ingest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/sys/unix"

	"github.com/plumbline/plumbline/pipeline/otel"
)

// BenchmarkForms compares the forms in which traces arrive: the same traces, byte for byte, as lines and as the
// spans that they are mapped from, in requests of 500 (the Go SDK exports up to 512 spans at once). The handlers
// are called without a network and a broker. cpu-µs/trace is the CPU time of the process, with garbage collection.
func BenchmarkForms(b *testing.B) {
	const perRequest = 500
	spans := calls("did:web:agent-1", perRequest, func(i int, span ptrace.Span) {
		a := span.Attributes()
		a.PutStr("gen_ai.conversation.id", "session-1")
		a.PutStr("gen_ai.tool.call.id", fmt.Sprint("call_", i))
		a.PutStr("gen_ai.tool.call.arguments", `{"query":"kettles in stock","limit":20,"notes":"`+strings.Repeat("argument ", 30)+`"}`)
		a.PutStr("gen_ai.tool.call.result", `{"found":[{"id":1,"name":"kettle"}],"notes":"`+strings.Repeat("result ", 40)+`"}`)
	})
	resource := spans.Traces().ResourceSpans().At(0)
	var lines bytes.Buffer
	for _, span := range resource.ScopeSpans().At(0).Spans().All() {
		mapped := otel.Map(resource.Resource(), resource.ScopeSpans().At(0).Scope(), span)
		if mapped.Trace == nil {
			b.Fatal(mapped.Faults)
		}
		lines.Write(mapped.Trace)
		lines.WriteByte('\n')
	}
	text, err := spans.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	for _, form := range []struct {
		name, path, kind string
		body             []byte
	}{
		{"lines", "/v1/traces", typesOfLines[0], lines.Bytes()},
		{"protobuf", pathSpans, typeProtobuf, protobuf(b, spans)},
		{"json", pathSpans, "application/json", text},
	} {
		b.Run(form.name, func(b *testing.B) {
			s := offline(b)
			handler := s.handler()
			b.ReportAllocs()
			began := cpuTime(b)
			for left := b.N; left > 0; left -= perRequest {
				request := httptest.NewRequest(http.MethodPost, form.path, bytes.NewReader(form.body))
				request.Header.Set("Content-Type", form.kind)
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, request)
				if answer.Code != http.StatusOK {
					b.Fatalf("%d %.200s", answer.Code, answer.Body)
				}
			}
			requests := (b.N + perRequest - 1) / perRequest
			b.ReportMetric(float64(cpuTime(b)-began)/float64(time.Microsecond)/float64(requests*perRequest), "cpu-µs/trace")
			b.ReportMetric(float64(len(form.body))/perRequest, "bytes/trace")
		})
	}
}

// cpuTime returns the CPU time that this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
