package obs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// Register adds the operator's routes to mux: GET /healthz (200 while the process answers),
// /readyz (200 or 503, a Readiness), /metrics (Prometheus) and /v1/limitations (AAP section
// 10.1).
func Register(mux *http.ServeMux, health *Health, metrics prometheus.Gatherer) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		state, status := health.Readiness(), http.StatusOK
		if !state.Ready {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, state)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /v1/limitations", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string][]string{"limitations": schema.Limitations()})
	})
}

// Handler serves only the routes of Register.
func Handler(health *Health, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	Register(mux, health, metrics)
	return problem.Routed(mux, "this port has /healthz, /readyz, /metrics and /v1/limitations; traces are published to ingest")
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "encode the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client left before it had its answer.
	_, _ = w.Write(append(text, '\n'))
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
	bounded := limit.Bound(server, listener)
	served := make(chan error, 1)
	go func() { served <- server.Serve(bounded) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve HTTP on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("stop serving HTTP on %s: %w", listener.Addr(), err)
	}
	return nil
}
