package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
