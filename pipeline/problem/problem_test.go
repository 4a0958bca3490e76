package problem

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// A problem is written with its headers, and always in the same form.
func TestProblemsAreWritten(t *testing.T) {
	for name, c := range map[string]struct {
		p     *Problem
		code  int
		body  string
		retry string
	}{
		"without faults": {New(http.StatusConflict, "changed", "card %q: <changed>", "c"), 409,
			`{"error":"changed","message":"card \"c\": \u003cchanged\u003e"}` + "\n", ""},
		"with faults": {Invalid(WordInvalid, schema.Fault{Pointer: "/a", Message: "is missing (required)"}), 400,
			`{"error":"invalid_request","message":"the request is invalid: see the faults","faults":[{"pointer":"/a","message":"is missing (required)"}]}` + "\n", ""},
		"to retry at once":   {Unavailable(0, "later"), 503, `{"error":"unavailable","message":"later"}` + "\n", "1"},
		"to retry in a time": {Unavailable(1500*time.Millisecond, "later"), 503, `{"error":"unavailable","message":"later"}` + "\n", "2"},
	} {
		answer := httptest.NewRecorder()
		code := c.p.Write(answer)
		if code != c.code || answer.Code != c.code || answer.Body.String() != c.body || answer.Header().Get("Retry-After") != c.retry ||
			answer.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s", name, answer.Code, answer.Header(), answer.Body)
		}
	}
}

// A request without a route gets a problem; one with a route reaches its handler.
func TestRequestsWithoutARoute(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/a", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	routed := Routed(mux, "use GET /v1/a")
	for _, c := range []struct {
		method, path string
		code         int
		allow, body  string
	}{
		{"GET", "/v1/a", http.StatusTeapot, "", ""},
		{"GET", "/v1/b", http.StatusNotFound, "", `{"error":"no_such_address","message":"there is no such address: use GET /v1/a"}` + "\n"},
		{"POST", "/v1/a", http.StatusMethodNotAllowed, "GET, HEAD",
			`{"error":"method_not_allowed","message":"this address does not support POST: use GET, HEAD"}` + "\n"},
	} {
		answer := httptest.NewRecorder()
		routed.ServeHTTP(answer, httptest.NewRequest(c.method, c.path, nil))
		if answer.Code != c.code || answer.Header().Get("Allow") != c.allow || answer.Body.String() != c.body {
			t.Errorf("%s %s: %d %v %s", c.method, c.path, answer.Code, answer.Header(), answer.Body)
		}
	}
}
