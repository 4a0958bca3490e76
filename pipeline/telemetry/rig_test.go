package telemetry

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/locked"
)

// overBoth runs a test over each protocol.
func overBoth(t *testing.T, test func(t *testing.T, protocol string)) {
	for _, protocol := range []string{config.OTLPOverHTTP, config.OTLPOverGRPC} {
		t.Run(protocol, func(t *testing.T) { test(t, protocol) })
	}
}

// verdict is how a receiver answers a request. What it says in words is SECRET.
type verdict struct {
	code     codes.Code // over HTTP, its status
	rejected int64      // of a request that is taken
	retry    *durationpb.Duration
	hang     bool
}

// received is one request, decoded.
type received struct {
	signal  string
	spans   ptrace.Traces
	metrics pmetric.Metrics
	header  http.Header
}

// receiver is a receiver of OTLP over one of its protocols, which answers as a test says: net/http, or gRPC's own
// library. It keeps up to 100 requests.
type receiver struct {
	config.OTLP // how it is reached
	requests    chan received
	answer      func(signal string) verdict
	end         func()
}

// newReceiver starts a receiver, over TLS if secure is not nil. A nil answer takes everything.
func newReceiver(t *testing.T, protocol string, secure *tls.Config, answer func(signal string) verdict) *receiver {
	r := &receiver{OTLP: config.OTLP{Protocol: protocol}, requests: make(chan received, 100), answer: answer}
	if protocol == config.OTLPOverGRPC {
		r.startGRPC(t, secure)
	} else {
		server := httptest.NewUnstartedServer(http.HandlerFunc(r.serveHTTP))
		start := server.Start
		if secure != nil {
			server.TLS, start = secure, server.StartTLS
		}
		start()
		r.Endpoint, r.end = server.URL, server.Close
	}
	t.Cleanup(r.end)
	return r
}

func (r *receiver) startGRPC(t *testing.T, secure *tls.Config) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	security, scheme := insecure.NewCredentials(), "http://"
	if secure != nil {
		security, scheme = credentials.NewTLS(secure), "https://"
	}
	server := grpc.NewServer(grpc.Creds(security))
	ptraceotlp.RegisterGRPCServer(server, &tracesOf{r: r})
	pmetricotlp.RegisterGRPCServer(server, &metricsOf{r: r})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	r.Endpoint = scheme + listener.Addr().String()
	r.end = sync.OnceFunc(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// take keeps a request, and returns how it is answered, when that is due.
func (r *receiver) take(ctx context.Context, got received) (v verdict) {
	r.requests <- got
	if r.answer != nil {
		v = r.answer(got.signal)
	}
	if v.hang {
		<-ctx.Done()
	}
	return v
}

func (r *receiver) serveHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	got := received{header: request.Header.Clone()}
	spans, metrics := ptraceotlp.NewExportRequest(), pmetricotlp.NewExportRequest()
	switch {
	case err != nil:
	case request.URL.Path == "/v1/traces":
		got.signal, err = "traces", spans.UnmarshalProto(body)
	case request.URL.Path == "/v1/metrics":
		got.signal, err = "metrics", metrics.UnmarshalProto(body)
	default:
		http.NotFound(w, request)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	got.spans, got.metrics = spans.Traces(), metrics.Metrics()
	v := r.take(request.Context(), got)
	if v.retry != nil {
		w.Header().Set("Retry-After", strconv.FormatInt(v.retry.GetSeconds(), 10))
	}
	if v.code != codes.OK {
		http.Error(w, "SECRET", map[codes.Code]int{codes.Unavailable: http.StatusServiceUnavailable, codes.InvalidArgument: http.StatusBadRequest}[v.code])
		return
	}
	said := ptraceotlp.NewExportResponse() // of the same form as that of metrics
	said.PartialSuccess().SetRejectedSpans(v.rejected)
	said.PartialSuccess().SetErrorMessage("SECRET")
	text, err := said.MarshalProto()
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	_, _ = w.Write(text) // the client may be gone
}

// tracesOf and metricsOf are the services of gRPC.
type tracesOf struct {
	ptraceotlp.UnimplementedGRPCServer
	r *receiver
}

type metricsOf struct {
	pmetricotlp.UnimplementedGRPCServer
	r *receiver
}

// Export is ptraceotlp.GRPCServer's.
func (s *tracesOf) Export(ctx context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	v := s.r.take(ctx, received{signal: "traces", spans: request.Traces(), header: headerOf(ctx)})
	said := ptraceotlp.NewExportResponse()
	said.PartialSuccess().SetRejectedSpans(v.rejected)
	said.PartialSuccess().SetErrorMessage("SECRET")
	return said, v.status()
}

// Export is pmetricotlp.GRPCServer's.
func (s *metricsOf) Export(ctx context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	v := s.r.take(ctx, received{signal: "metrics", spans: ptrace.NewTraces(), metrics: request.Metrics(), header: headerOf(ctx)})
	said := pmetricotlp.NewExportResponse()
	said.PartialSuccess().SetRejectedDataPoints(v.rejected)
	said.PartialSuccess().SetErrorMessage("SECRET")
	return said, v.status()
}

// status returns the error for gRPC's library.
func (v verdict) status() error {
	s := status.New(v.code, "SECRET")
	if v.retry != nil {
		with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: v.retry})
		return cmp.Or(err, with.Err())
	}
	return s.Err()
}

// headerOf returns the metadata of a call.
func headerOf(ctx context.Context) http.Header {
	header := http.Header{}
	sent, _ := metadata.FromIncomingContext(ctx)
	for name, values := range sent {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	return header
}

// open returns an exporter that sends spans every few milliseconds, and metrics at its end, for which it has time.
func open(t *testing.T, cfg config.OTLP) (*Exporter, *prometheus.Registry, *locked.Text) {
	t.Helper()
	registry, log := prometheus.NewRegistry(), new(locked.Text)
	cfg.Interval = time.Hour
	e, err := Open(&cfg, Process{Name: "verifier", Version: "1", Tenant: "t", Gatherer: registry, Metrics: registry, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	e.spansEvery, e.lastWithin = 5*time.Millisecond, time.Hour
	return e, registry, log
}

// wantCounts compares the numbers of spans and collections that are sent, rejected and dropped.
func wantCounts(t *testing.T, e *Exporter, spans, collections [3]float64) {
	t.Helper()
	for i, o := range []outcome{sent, rejected, dropped} {
		if got := value(t, e.spans.WithLabelValues(string(o))); got != spans[i] {
			t.Errorf("%v spans are %s, want %v", got, o, spans[i])
		}
		if got := value(t, e.collections.WithLabelValues(string(o))); got != collections[i] {
			t.Errorf("%v collections are %s, want %v", got, o, collections[i])
		}
	}
}

func value(t *testing.T, counter prometheus.Counter) float64 {
	t.Helper()
	m := new(dto.Metric)
	if err := counter.Write(m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// write writes a file that only its owner may read.
func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
