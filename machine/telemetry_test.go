package machine_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// telemetry receives what a machine sends over OTLP/HTTP.
type telemetry struct {
	*httptest.Server
	mu      sync.Mutex
	spans   map[string]int  // by stage and name
	metrics map[string]bool // names of the last collection
}

func receiveTelemetry(t *testing.T) *telemetry {
	r := &telemetry{spans: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(body, []byte(secret)) {
			t.Errorf("%s has the secret", request.URL.Path)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		switch request.URL.Path {
		case "/v1/traces":
			err = r.addSpans(body)
		case "/v1/metrics":
			err = r.addMetrics(body)
		}
		if err != nil {
			t.Errorf("%s: %v", request.URL.Path, err)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *telemetry) addSpans(body []byte) error {
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(body); err != nil {
		return err
	}
	for _, span := range request.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		stage, _ := span.Attributes().Get("plumbline.stage")
		r.spans[stage.Str()+" "+span.Name()]++
	}
	return nil
}

func (r *telemetry) addMetrics(body []byte) error {
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalProto(body); err != nil {
		return err
	}
	r.metrics = map[string]bool{}
	for _, m := range request.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		r.metrics[m.Name()] = true
	}
	return nil
}

// complete reports whether spans of every stage have arrived, and metrics.
func (r *telemetry) complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range []string{"ingest POST /v1/traces", "verifier verify traces", "drift store drift", "exporter seal sessions"} {
		if r.spans[name] == 0 {
			return false
		}
	}
	for _, name := range []string{"plumbline_verifier_traces_total", "plumbline_exporter_bundles_total", "plumbline_ingest_request_seconds", "plumbline_telemetry_spans_total", "go_goroutines"} {
		if !r.metrics[name] {
			return false
		}
	}
	return true
}
