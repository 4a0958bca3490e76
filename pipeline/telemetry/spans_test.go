package telemetry

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

const (
	traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// A span of a batch has the times of its steps, and of an error only that there was one. After an answer that
// asks for it the same span comes again, with the same ids.
func TestSpansArrive(t *testing.T) { overBoth(t, testSpansArrive) }

func testSpansArrive(t *testing.T, protocol string) {
	defer goleak.VerifyNone(t)
	var asked atomic.Int64
	r := newReceiver(t, protocol, nil, func(signal string) verdict {
		if signal == "traces" && asked.Add(1) == 1 {
			return verdict{code: codes.Unavailable}
		}
		return verdict{}
	})
	defer r.end()
	r.Endpoint += "/"
	e, _, log := open(t, r.OTLP)
	began := time.Now().Add(-time.Second)
	s := e.Tracer("drift").Begin("store drift", began)
	s.Number("plumbline.traces", 7)
	s.Step("insert points")
	s.Step("record")
	s.End(errors.New("a SECRET"))
	end := e.Start()
	first, again := (<-r.requests).spans, (<-r.requests).spans
	end()
	wantCounts(t, e, [3]float64{1, 0, 0}, [3]float64{1, 0, 0})
	resource := again.ResourceSpans().At(0)
	for name, want := range map[string]string{"service.namespace": "plumbline", "service.name": "verifier", "service.version": "1", "plumbline.tenant": "t"} {
		if got, _ := resource.Resource().Attributes().Get(name); got.AsString() != want {
			t.Errorf("%s is %q", name, got.AsString())
		}
	}
	span := resource.ScopeSpans().At(0).Spans().At(0)
	if before := first.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0); span.SpanID() != before.SpanID() || span.TraceID() != before.TraceID() || span.SpanID().IsEmpty() || span.TraceID().IsEmpty() {
		t.Errorf("ids %s %s, and again %s %s", before.TraceID(), before.SpanID(), span.TraceID(), span.SpanID())
	}
	if got := span.Attributes().AsRaw(); span.Name() != "store drift" || span.Kind() != ptrace.SpanKindInternal || !span.ParentSpanID().IsEmpty() || got["plumbline.stage"] != "drift" || got["plumbline.traces"] != int64(7) {
		t.Errorf("%s, kind %s, attributes %v", span.Name(), span.Kind(), got)
	}
	if !span.StartTimestamp().AsTime().Equal(began) || span.Events().Len() != 2 || span.Events().At(1).Name() != "record" ||
		span.Events().At(0).Timestamp() <= span.StartTimestamp() || span.Events().At(1).Timestamp() > span.EndTimestamp() {
		t.Errorf("%s to %s, %d steps", span.StartTimestamp(), span.EndTimestamp(), span.Events().Len())
	}
	if span.Status().Code() != ptrace.StatusCodeError || span.Status().Message() != "" {
		t.Errorf("status %s %q", span.Status().Code(), span.Status().Message())
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "protocol="+protocol) || !strings.Contains(got, map[string]string{config.OTLPOverHTTP: "status 503", config.OTLPOverGRPC: "gRPC status Unavailable"}[protocol]) || strings.Count(got, "takes everything again") != 1 {
		t.Errorf("the log is\n%s", got)
	}
}

// A request is a child of the client's span, if that is sampled and the client has a token.
func TestSpansOfRequests(t *testing.T) {
	r := newReceiver(t, config.OTLPOverHTTP, nil, nil)
	e, _, _ := open(t, r.OTLP)
	tracer := e.Tracer("ingest")
	tracer.Request("POST /v1/traces", unsampled, time.Now(), 200)
	tracer.Request("POST /v1/traces", traceparent, time.Now(), 200)
	tracer.Request("PUT /v1/cards/{card_id}", "00-4bf9", time.Now(), 503)
	tracer.Request("POST /v1/traces", unsampled, time.Now(), 401)
	e.Start()()
	spans := (<-r.requests).spans
	if got := (<-r.requests); spans.SpanCount() == 0 { // traces and metrics arrive in any order
		spans = got.spans
	}
	all := spans.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	if all.Len() != 3 {
		t.Fatalf("%d spans", all.Len())
	}
	child, failed, unauthorized := all.At(0), all.At(1), all.At(2)
	if child.TraceID().String() != traceparent[3:35] || child.ParentSpanID().String() != traceparent[36:52] || child.Kind() != ptrace.SpanKindServer || child.Status().Code() != ptrace.StatusCodeUnset {
		t.Errorf("%s, parent %s, kind %s", child.TraceID(), child.ParentSpanID(), child.Kind())
	}
	if got := failed.Attributes().AsRaw(); !failed.ParentSpanID().IsEmpty() || failed.Status().Code() != ptrace.StatusCodeError || failed.Name() != "PUT /v1/cards/{card_id}" ||
		got["http.request.method"] != "PUT" || got["http.route"] != "/v1/cards/{card_id}" || got["http.response.status_code"] != int64(503) {
		t.Errorf("%s has %v", failed.Name(), got)
	}
	if !unauthorized.ParentSpanID().IsEmpty() {
		t.Errorf("a client without a token names the parent %s", unauthorized.ParentSpanID())
	}
}

// A receiver that never answers delays no stage, and the end of the process by little. What does not fit into the
// queue, and what is left at the end, is counted.
func TestStagesNeverWait(t *testing.T) { overBoth(t, testStagesNeverWait) }

func testStagesNeverWait(t *testing.T, protocol string) {
	defer goleak.VerifyNone(t)
	r := newReceiver(t, protocol, nil, func(string) verdict { return verdict{hang: true} })
	defer r.end()
	e, _, log := open(t, r.OTLP)
	e.lastWithin = 20 * time.Millisecond
	end, tracer := e.Start(), e.Tracer("ingest")
	const made = 2 * queued
	for range made {
		tracer.Request("POST /v1/traces", "", time.Now(), 200)
	}
	<-r.requests // it hangs
	end()        // if this test hangs here, the bound does not hold
	wantCounts(t, e, [3]float64{0, 0, made}, [3]float64{0, 0, 1})
	if !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("the log is\n%s", log)
	}
}

// What is refused is not sent again. Of a request that is taken in part the part counts. Neither address nor
// answer is in the log.
func TestRefusalsAreCounted(t *testing.T) {
	overBoth(t, func(t *testing.T, protocol string) {
		for name, test := range map[string]struct {
			answer             verdict
			spans, collections [3]float64
		}{
			"refused":              {verdict{code: codes.InvalidArgument}, [3]float64{0, 2, 0}, [3]float64{0, 1, 0}},
			"in part":              {verdict{rejected: 1}, [3]float64{1, 1, 0}, [3]float64{0, 1, 0}},
			"too large a count":    {verdict{rejected: 1 << 40}, [3]float64{0, 2, 0}, [3]float64{0, 1, 0}},
			"less than none":       {verdict{rejected: -1}, [3]float64{2, 0, 0}, [3]float64{1, 0, 0}},
			"taken, with a remark": {verdict{}, [3]float64{2, 0, 0}, [3]float64{1, 0, 0}},
		} {
			t.Run(name, func(t *testing.T) {
				r := newReceiver(t, protocol, nil, func(string) verdict { return test.answer })
				e, _, log := open(t, r.OTLP)
				for range 2 {
					e.Tracer("ingest").Begin("a", time.Now()).End(nil)
				}
				e.Start()()
				wantCounts(t, e, test.spans, test.collections)
				if strings.Contains(log.String(), "SECRET") || strings.Contains(log.String(), r.Endpoint) {
					t.Errorf("the log is\n%s", log)
				}
			})
		}
	})
}

// Over TLS, the receiver's certificate is checked, and the headers of the file are sent. A file that cannot be read
// any more delays the spans until it can.
func TestTLSAndHeaders(t *testing.T) { overBoth(t, testTLSAndHeaders) }

func testTLSAndHeaders(t *testing.T, protocol string) {
	authority := transporttest.New(t)
	r := newReceiver(t, protocol, authority.Server(0), nil)
	r.HeadersFile = write(t, "headers", []byte("# of the collector\nAuthorization: Bearer SECRET\nX-Scope-OrgID: a: b\nContent-Type: text/html\n"))
	r.CAFile = authority.CAFile
	e, _, log := open(t, r.OTLP)
	e.Tracer("ingest").Begin("a", time.Now()).End(nil)
	e.Start()()
	wantCounts(t, e, [3]float64{1, 0, 0}, [3]float64{1, 0, 0})
	if log.String() != "" {
		t.Errorf("the log is\n%s", log)
	}
	for range 2 {
		got := (<-r.requests).header
		for name, want := range map[string]string{
			"Authorization": "Bearer SECRET", "X-Scope-OrgID": "a: b", "User-Agent": "plumbline/1",
			"Content-Type": map[string]string{config.OTLPOverHTTP: "application/x-protobuf", config.OTLPOverGRPC: "application/grpc"}[protocol],
		} {
			if got := got.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	unknown, foreign, unreadable := r.OTLP, r.OTLP, r.OTLP
	unknown.CAFile, foreign.CAFile = "", transporttest.New(t).CAFile
	unreadable.HeadersFile += "none"
	for name, test := range map[string]struct {
		cfg    config.OTLP
		reason string
	}{
		"an authority that the system does not know": {unknown, "failed to verify certificate"},
		"somebody else's certificate":                {foreign, "failed to verify certificate"},
		"no file of headers":                         {unreadable, "no such file"},
	} {
		e, _, log := open(t, test.cfg)
		e.Tracer("ingest").Begin("a", time.Now()).End(nil)
		e.Start()()
		wantCounts(t, e, [3]float64{0, 0, 1}, [3]float64{0, 0, 1})
		if got := log.String(); !strings.Contains(got, test.reason) || strings.Contains(got, "SECRET") {
			t.Errorf("%s: want %s, the log is\n%s", name, test.reason, got)
		}
	}
}

// Without a receiver there is no exporter, and what a stage calls allocates nothing.
func TestNoReceiverCostsNothing(t *testing.T) {
	nowhere := config.DefaultOTLP()
	e, err := Open(&nowhere, Process{})
	if e != nil || err != nil {
		t.Fatalf("%v, %v", e, err)
	}
	e.Start()()
	tracer, now := e.Tracer("ingest"), time.Now()
	if allocated := testing.AllocsPerRun(100, func() { batch(tracer, now) }); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// batch does what a stage does for a batch.
func batch(tracer *Tracer, at time.Time) {
	s := tracer.Begin("verify traces", at)
	s.Number("plumbline.traces", 1000)
	for range 7 {
		s.Step("insert traces")
	}
	s.End(nil)
	tracer.Request("POST /v1/traces", traceparent, at, 200)
}

// BenchmarkSpans measures what a batch and a request cost: off without a receiver, on up to the bytes of the request
// to the receiver.
func BenchmarkSpans(b *testing.B) {
	b.Run("off", func(b *testing.B) {
		at := time.Now()
		for b.Loop() {
			batch(nil, at)
		}
	})
	b.Run("on", func(b *testing.B) {
		b.ReportAllocs()
		cfg := config.OTLP{Endpoint: "http://127.0.0.1:1"}
		registry := prometheus.NewRegistry()
		e, err := Open(&cfg, Process{Gatherer: registry, Metrics: registry})
		if err != nil {
			b.Fatal(err)
		}
		tracer, at := e.Tracer("verifier"), time.Now()
		for b.Loop() {
			batch(tracer, at)
			if len(e.queue) >= together {
				var r request
				e.fill(&r)
			}
		}
	})
}
