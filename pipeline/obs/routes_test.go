package obs_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/plumbline/plumbline/pipeline/obs"
)

// A route that a stage adds while the process answers is served in addition to the operator's own
// routes, and replaces none of them.
func TestRoutesOfStages(t *testing.T) {
	routes := new(obs.Routes)
	handler := routes.Before(obs.Handler(new(obs.Health), obs.NewRegistry("1")))
	if status, _ := get(t, handler, "/v1/keys"); status != http.StatusNotFound {
		t.Errorf("before: %d", status)
	}
	routes.Handle("GET /v1/keys", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "keys"); err != nil {
			t.Error(err)
		}
	}))
	if status, body := get(t, handler, "/v1/keys"); status != http.StatusOK || body != "keys" {
		t.Errorf("after: %d %s", status, body)
	}
	if status, _ := get(t, handler, "/healthz"); status != http.StatusOK {
		t.Errorf("the operator's: %d", status)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/v1/keys", nil))
	if recorder.Code == http.StatusOK {
		t.Error("it was written to")
	}
}
