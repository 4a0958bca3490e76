package telemetry

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/plumbline/plumbline/pipeline/config"
)

// receiver is a receiver of OTLP/HTTP, which answers as a test says.
type receiver struct {
	*httptest.Server
	requests chan received
}

// received is one request, decoded.
type received struct {
	spans   ptrace.Traces
	metrics pmetric.Metrics
	path    string
	header  http.Header
}

// newReceiver returns a receiver that keeps up to 100 requests. A nil answer is 200 without a body.
func newReceiver(t *testing.T, start func(*httptest.Server), answer http.HandlerFunc) *receiver {
	r := &receiver{requests: make(chan received, 100)}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		got := received{path: request.URL.Path, header: request.Header.Clone()}
		spans, metrics := ptraceotlp.NewExportRequest(), pmetricotlp.NewExportRequest()
		switch {
		case err != nil:
		case got.path == "/v1/traces":
			err = spans.UnmarshalProto(body)
		case got.path == "/v1/metrics":
			err = metrics.UnmarshalProto(body)
		default:
			http.NotFound(w, request)
			return
		}
		if err != nil {
			t.Errorf("%s: %v", got.path, err)
		}
		got.spans, got.metrics = spans.Traces(), metrics.Metrics()
		r.requests <- got
		if answer != nil {
			answer(w, request)
		}
	}))
	start(r.Server)
	t.Cleanup(r.Close)
	return r
}

// logBuffer is a log that goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// open returns an exporter that sends spans every few milliseconds, and metrics at its end, for which it has time.
func open(t *testing.T, cfg config.OTLP) (*Exporter, *prometheus.Registry, *logBuffer) {
	t.Helper()
	registry, log := prometheus.NewRegistry(), new(logBuffer)
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
