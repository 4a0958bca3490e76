package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/plumbline/plumbline/pipeline/config"
)

// The sizes and times of OpenTelemetry's own exporters.
const (
	queued     = 2048 // spans that wait to be sent
	together   = 512  // spans in a request
	spansEvery = 5 * time.Second
)

// lastWithin bounds what is sent when the process ends.
const lastWithin = 2 * time.Second

// Process is what is sent, and by whom.
type Process struct {
	Name, Version, Tenant string
	Gatherer              prometheus.Gatherer
	Metrics               prometheus.Registerer
	Log                   *slog.Logger
}

// Exporter sends what a process records. A nil Exporter sends nothing.
type Exporter struct {
	process Process
	every   time.Duration // how often metrics are sent; 0: never
	traces  *signal
	metrics *signal

	resource    pcommon.Resource
	began       time.Time
	queue       chan ptrace.Span
	wake        chan struct{} // there is enough for a request
	spansEvery  time.Duration
	lastWithin  time.Duration
	spans       *prometheus.CounterVec // outcome
	collections *prometheus.CounterVec // outcome
}

// Open returns the exporter of a process, or nil if no receiver is configured. It connects to nothing.
func Open(cfg *config.OTLP, p Process) (*Exporter, error) {
	if cfg.Endpoint == "" {
		return nil, nil
	}
	poster, err := newPoster(cfg, "plumbline/"+p.Version)
	if err != nil {
		return nil, err
	}
	e := &Exporter{
		process: p, every: cfg.Interval, resource: resourceOf(p), began: time.Now(),
		traces:  &signal{name: "traces", poster: poster, log: p.Log, rejected: rejectedSpans},
		metrics: &signal{name: "metrics", poster: poster, log: p.Log, rejected: rejectedPoints},
		queue:   make(chan ptrace.Span, queued), wake: make(chan struct{}, 1), spansEvery: spansEvery, lastWithin: lastWithin,
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_telemetry_spans_total", Help: "Own spans, by outcome: sent, rejected by the receiver, or dropped because it did not take them in time."}, []string{"outcome"}),
		collections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_telemetry_collections_total", Help: "Collections of all metrics, by outcome: sent, rejected (at least in part) by the receiver, or dropped because it did not answer."}, []string{"outcome"}),
	}
	for _, counts := range []*prometheus.CounterVec{e.spans, e.collections} {
		for _, o := range []outcome{sent, rejected, dropped} {
			counts.WithLabelValues(string(o))
		}
		if err := p.Metrics.Register(counts); err != nil {
			return nil, fmt.Errorf("metrics of telemetry: %w", err)
		}
	}
	return e, nil
}

// resourceOf describes the process, in the terms of OpenTelemetry's conventions.
func resourceOf(p Process) pcommon.Resource {
	resource := pcommon.NewResource()
	attributes := resource.Attributes()
	attributes.PutStr("service.namespace", "plumbline")
	attributes.PutStr("service.name", p.Name)
	attributes.PutStr("service.version", p.Version)
	attributes.PutStr("service.instance.id", uuid.NewString())
	attributes.PutStr("plumbline.tenant", p.Tenant)
	if host, err := os.Hostname(); err == nil { // otherwise the process has no name of its host
		attributes.PutStr("host.name", host)
	}
	return resource
}

// Tracer returns what makes the spans of a stage; nil if nothing is sent.
func (e *Exporter) Tracer(stage string) *Tracer {
	if e == nil {
		return nil
	}
	return &Tracer{stage: stage, queue: e.queue, wake: e.wake, dropped: e.spans.WithLabelValues(string(dropped)).Inc}
}

// Start sends until end is called, which sends what is left, within two seconds.
func (e *Exporter) Start() (end func()) {
	if e == nil {
		return func() {}
	}
	stop := make(chan struct{})
	work, cut := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() { e.runSpans(work, stop) })
	if e.every > 0 {
		both.Go(func() { e.runMetrics(work, stop) })
	}
	return func() {
		close(stop)
		late := time.AfterFunc(e.lastWithin, cut)
		both.Wait()
		late.Stop()
		cut()
		e.traces.poster.client.CloseIdleConnections()
	}
}

// runSpans sends spans at intervals, and when there are enough for a request. Spans that the receiver does not take now
// are sent again before later ones; meanwhile the queue may become full.
func (e *Exporter) runSpans(work context.Context, stop <-chan struct{}) {
	tick := time.NewTicker(e.spansEvery)
	defer tick.Stop()
	var waiting request
	for stopped := false; !stopped; {
		select {
		case <-stop:
			stopped = true
		case <-tick.C:
		case <-e.wake:
		}
		if !stopped && time.Now().Before(e.traces.notBefore) {
			continue
		}
		for e.fill(&waiting) {
			if !e.sendSpans(work, &waiting) {
				break
			}
		}
	}
	e.spans.WithLabelValues(string(dropped)).Add(float64(waiting.spans + len(e.queue)))
}

// request is an encoded request.
type request struct {
	body  []byte
	err   error // of the encoding
	spans int
}

// fill encodes queued spans, unless an earlier request still waits. It reports whether there is a request.
func (e *Exporter) fill(r *request) bool {
	if r.spans > 0 {
		return true
	}
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	e.resource.CopyTo(resource.Resource())
	scope := resource.ScopeSpans().AppendEmpty()
	e.nameScope(scope.Scope())
	for ; r.spans < together && len(e.queue) > 0; r.spans++ { // nobody else takes spans from it
		span := <-e.queue
		span.MoveTo(scope.Spans().AppendEmpty())
	}
	if r.spans == 0 {
		return false
	}
	r.body, r.err = ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	return true
}

// sendSpans makes one attempt to send a request, and reports whether it is done.
func (e *Exporter) sendSpans(work context.Context, r *request) bool {
	got := e.traces.send(work, r.body, r.err)
	if got.outcome == dropped {
		e.traces.notBefore = time.Now().Add(max(got.wait, e.spansEvery))
		return false
	}
	if got.outcome == rejected {
		got.rejected = int64(r.spans)
	}
	refused := min(max(got.rejected, 0), int64(r.spans))
	e.spans.WithLabelValues(string(sent)).Add(float64(int64(r.spans) - refused))
	e.spans.WithLabelValues(string(rejected)).Add(float64(refused))
	*r = request{}
	return true
}

// runMetrics sends the metrics at intervals. A collection that is not taken is not sent again: the next one has
// the totals.
func (e *Exporter) runMetrics(work context.Context, stop <-chan struct{}) {
	tick := time.NewTicker(e.every)
	defer tick.Stop()
	for stopped := false; !stopped; {
		select {
		case <-stop:
			stopped = true
		case <-tick.C:
		}
		if !stopped && time.Now().Before(e.metrics.notBefore) {
			continue
		}
		body, err := e.collect()
		got := e.metrics.send(work, body, err)
		if got.outcome == sent && got.rejected > 0 {
			got.outcome = rejected
		}
		e.metrics.notBefore = time.Now().Add(got.wait)
		e.collections.WithLabelValues(string(got.outcome)).Inc()
	}
}

// collect encodes the current values of all metrics.
func (e *Exporter) collect() ([]byte, error) {
	families, err := e.process.Gatherer.Gather()
	if err != nil { // the others are there
		e.process.Log.Warn("not all metrics can be collected", "error", err)
	}
	metrics := pmetric.NewMetrics()
	resource := metrics.ResourceMetrics().AppendEmpty()
	e.resource.CopyTo(resource.Resource())
	scope := resource.ScopeMetrics().AppendEmpty()
	e.nameScope(scope.Scope())
	convert(families, e.began, time.Now(), scope.Metrics())
	return pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
}

func (e *Exporter) nameScope(scope pcommon.InstrumentationScope) {
	scope.SetName("github.com/plumbline/plumbline")
	scope.SetVersion(e.process.Version)
}
