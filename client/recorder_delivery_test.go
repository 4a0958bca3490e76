package client

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

// Retries send the same bytes, and only the lines without an outcome.
func TestRecorderRepeatsTheSameBytes(t *testing.T) {
	f := newFakeIngest(t)
	f.refusals = 1
	f.status = func(request, line int, _ string) string {
		if request == 1 && line == 1 {
			return retryLater
		}
		return Accepted
	}
	r, h := record(t, f.URL, nil)
	s := r.Session("s")
	for range 3 {
		s.Record(Decision{Action: "x"})
	}
	flush(t, r)
	lines := f.lines()
	if len(lines) != 4 || lines[3] != lines[1] {
		t.Errorf("got %q", lines)
	}
	if got := h.of(KindUnreachable); len(got) != 1 || got[0].Count != 3 {
		t.Errorf("told %+v", h.errors)
	}
}

func TestOutcomesAreTold(t *testing.T) {
	f := newFakeIngest(t)
	f.status = func(_, line int, _ string) string { return []string{Refused, Forbidden, Duplicate}[line] }
	r, h := record(t, f.URL, nil)
	s := r.Session("s")
	if id := s.Record(Decision{}); id == "" {
		t.Error("no id for what is no trace")
	}
	for range 3 {
		s.Record(Decision{Action: "x"})
	}
	if err := r.RecordTrace([]byte(`{"trace_id":1}`)); err == nil {
		t.Error("what is no trace was recorded")
	}
	flush(t, r)
	if got := r.Stats(); got.Refused != 1 || got.Forbidden != 1 || got.Duplicate != 1 || got.Invalid != 2 || got.Recorded != 3 {
		t.Errorf("counted %+v", got)
	}
	if e := h.of(KindRefused); len(e) != 1 || e[0].TraceID == "" || e[0].Faults[0].Pointer != "/x" {
		t.Errorf("told %+v", e)
	}
	if e := h.of(KindInvalid); len(e) != 2 || len(e[0].Faults) == 0 || len(h.of(KindForbidden)) != 1 {
		t.Errorf("told %+v", h.errors)
	}
}

// A request that ingest refuses as a whole keeps its traces in the spool; the end of a session
// that may not be requested does not.
func TestRefusedRequests(t *testing.T) {
	allowed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-allowed:
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"token","message":"no token"}`)
			return
		}
		if r.URL.Path == "/v1/sessions/end" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":"scope","message":"the token lacks sessions:write"}`)
			return
		}
		fmt.Fprint(w, `{"line":1,"trace_id":"x","status":"accepted"}`)
	}))
	defer server.Close()
	told := make(chan *RecordError, 10)
	r, _ := record(t, server.URL, func(c *RecorderConfig) { c.OnError = func(e *RecordError) { told <- e } })
	s := r.Session("s")
	s.Record(Decision{Action: "x"})
	s.End()
	if e := <-told; e.Kind != KindRequest || !strings.Contains(e.Message, "no token") || e.Count == 0 {
		t.Errorf("told %+v", e)
	}
	close(allowed)
	flush(t, r)
	if got := r.Stats(); got.Accepted != 1 || got.Waiting != 0 {
		t.Errorf("counted %+v", got)
	}
}

// A proxy that takes only small requests gets small ones. A line that is too large for it is refused, and holds up no other.
func TestAProxyThatTakesOnlySmallRequests(t *testing.T) {
	f := newFakeIngest(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 5000 {
			http.Error(w, "<html>", http.StatusRequestEntityTooLarge)
			return
		}
		f.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	r, h := record(t, proxy.URL, nil)
	s := r.Session("s")
	for i := range 40 {
		d := Decision{Action: "x"}
		if i == 20 {
			d.Parameters = map[string]any{"large": strings.Repeat("x", 6000)}
		}
		s.Record(d)
	}
	flush(t, r)
	if stats := r.Stats(); stats.Accepted != 39 || stats.Refused != 1 || len(h.of(KindRefused)) != 1 || len(f.lines()) != 39 {
		t.Errorf("counted %+v, told %+v", stats, h.errors)
	}
}

// Failures of servers between the recorder and ingest are no refusals, and do not stop it for long.
func TestPausesOfOthers(t *testing.T) {
	f := newFakeIngest(t)
	answers := []int{http.StatusBadGateway, http.StatusTooManyRequests, http.StatusInternalServerError}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(answers) > 0 {
			w.Header().Set("Retry-After", "36000")
			w.WriteHeader(answers[0])
			answers = answers[1:]
			return
		}
		f.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	told := make(chan *RecordError, 10)
	r, _ := record(t, proxy.URL, func(c *RecorderConfig) { c.OnError = func(e *RecordError) { told <- e } })
	r.Session("s").Record(Decision{Action: "x"})
	if e := <-told; e.Kind != KindUnreachable || !strings.Contains(e.Message, "HTTP 502") {
		t.Errorf("told %+v", e)
	}
	pipelinetest.Await(t, "Flush to end each pause", func() bool {
		ended, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return r.Flush(ended) == nil
	})
	if stats := r.Stats(); stats.Accepted != 1 {
		t.Errorf("counted %+v", stats)
	}
}
