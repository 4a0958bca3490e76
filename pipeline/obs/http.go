package obs

import (
	"context"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// Mux receives routes: *http.ServeMux.
type Mux interface {
	Handle(pattern string, handler http.Handler)
}

// Register adds the operator's routes to mux: GET /healthz (200 while the process answers),
// /readyz (200 or 503, a Readiness), /metrics (Prometheus) and /v1/limitations (AAP section
// 10.1).
func Register(mux Mux, health *Health, metrics prometheus.Gatherer) {
	handle := func(pattern string, answer http.HandlerFunc) { mux.Handle(pattern, answer) }
	handle("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		problem.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	handle("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		state, status := health.Readiness(), http.StatusOK
		if !state.Ready {
			status = http.StatusServiceUnavailable
		}
		problem.WriteJSON(w, status, state)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	handle("GET /v1/limitations", func(w http.ResponseWriter, _ *http.Request) {
		problem.WriteJSON(w, http.StatusOK, map[string][]string{"limitations": schema.Limitations()})
	})
}

// Handler serves only the routes of Register.
func Handler(health *Health, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	Register(mux, health, metrics)
	return problem.Routed(mux, "this port has /healthz, /readyz, /metrics and /v1/limitations; traces are published to ingest")
}

// Serve answers requests on listener, within the limit of its connections, until ctx ends. The
// requests in progress may then finish, for at most five seconds. Serve closes the listener. The
// end of ctx is not an error.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, limit *admission.Limit) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(5*time.Second, cancel) })()
	return limit.Serve(ctx, last, server, listener)
}

// Routes are the routes that stages add to the HTTP interface of their process. They are public
// and read-only, such as the keys that sign bundles. Stages of one process share one Routes. A
// stage may add to it while it is served. The zero value has no routes.
type Routes struct {
	mu       sync.Mutex
	handlers map[string]http.Handler // by pattern
	mux      atomic.Pointer[http.ServeMux]
}

// Handle adds a route, and replaces one with the same pattern: a stage that restarts adds its
// routes again.
func (r *Routes) Handle(pattern string, handler http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	handlers := maps.Clone(r.handlers)
	if handlers == nil {
		handlers = map[string]http.Handler{}
	}
	handlers[pattern] = handler
	mux := http.NewServeMux()
	for pattern, handler := range handlers {
		mux.Handle(pattern, handler)
	}
	r.handlers = handlers
	r.mux.Store(mux)
}

// Before returns a handler that answers the routes, refuses other methods on their paths, and
// passes everything else to next.
func (r *Routes) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mux := r.mux.Load()
		if mux == nil {
			next.ServeHTTP(w, request)
			return
		}
		switch unrouted := problem.Unrouted(mux, request, ""); {
		case unrouted == nil:
			mux.ServeHTTP(w, request)
		case unrouted.Code == http.StatusMethodNotAllowed:
			unrouted.Write(w)
		default:
			next.ServeHTTP(w, request)
		}
	})
}

// NewRegistry returns a process's registry. It already contains the metrics of the Go runtime,
// those of the process from the operating system, and plumbline_build_info{version}.
func NewRegistry(version string) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "plumbline_build_info",
		Help:        "Always 1; the label is the running version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	registry.MustRegister(
		build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry
}
