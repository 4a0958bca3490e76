package service

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
)

// A service with a receiver of OTLP gives its stage a tracer, and sends its metrics. Without one the stage has no tracer.
func TestServiceSendsTelemetry(t *testing.T) {
	arrived := make(chan string, 100) // paths
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case arrived <- r.URL.Path:
		default:
		}
	}))
	defer receiver.Close()
	for _, endpoint := range []string{"", receiver.URL} {
		common, env := config.DefaultCommon(""), testEnv(io.Discard)
		common.OTLP.Endpoint, common.OTLP.Interval = endpoint, time.Second
		end, err := env.sendTelemetry(&common)
		if err != nil {
			t.Fatal(err)
		}
		if (env.Spans != nil) != (endpoint != "") {
			t.Errorf("receiver %q: the tracer is %v", endpoint, env.Spans)
		}
		for path := ""; endpoint != "" && path != "/v1/metrics"; {
			path = <-arrived
		}
		end()
	}
	common, env := config.DefaultCommon(""), testEnv(io.Discard)
	common.OTLP.Endpoint, common.OTLP.CAFile = "https://collector.example", filepath.Join(t.TempDir(), "none")
	if _, err := env.sendTelemetry(&common); err == nil {
		t.Error("a missing authority is no error")
	}
}
