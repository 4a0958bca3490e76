package ingest

import (
	"net/http"
	"strings"
	"testing"
)

// A request without a route is answered with a list of routes, in the form of every other
// problem.
func TestUnroutedRequestsAreProblems(t *testing.T) {
	r := start(t)
	r.server.env.Routes.Handle("GET /v1/keys", http.NotFoundHandler()) // like another stage
	for _, c := range []struct {
		method, path string
		code         int
		word, says   string
	}{
		{"POST", "/", 404, "no_such_address", "POST /v1/traces"},
		{"POST", "/otlp/v1/metrics", 404, "no_such_address", "spans of OpenTelemetry to POST /otlp/v1/traces"},
		{"POST", "/traces", 404, "no_such_address", "POST /v1/traces"},
		{"GET", "/v2/traces", 404, "no_such_address", "docs/PUBLISH.md"},
		{"PUT", "/v1/traces", 405, "method_not_allowed", "this address does not support PUT: use POST"},
		{"PUT", "/v1/cards", 405, "method_not_allowed", "use GET, HEAD"},
		{"DELETE", "/v1/cards/c", 405, "method_not_allowed", "use GET, HEAD, PUT"},
		{"POST", "/healthz", 405, "method_not_allowed", "use GET, HEAD"},
		{"POST", "/v1/keys", 405, "method_not_allowed", "use GET, HEAD"},
	} {
		answer := r.send(c.method, c.path, nil)
		p := answer.problem(t)
		if answer.code != c.code || p.Word != c.word || !strings.Contains(p.Message, c.says) || answer.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s", c.method, c.path, answer.code, answer.text)
		}
		if allow := answer.header.Get("Allow"); (allow != "") != (c.code == 405) || !strings.HasSuffix(p.Message, allow) && allow != "" {
			t.Errorf("%s %s: Allow is %q, the answer %s", c.method, c.path, allow, answer.text)
		}
	}
}
