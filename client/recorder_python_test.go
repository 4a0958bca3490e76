package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/clients/clientstest"
)

// A recorder in Go delivers what a process in Python left in the spool, and the other way round.
func TestSpoolIsSharedWithPython(t *testing.T) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/v1/sessions/end" {
			got = append(got, string(body))
			w.WriteHeader(http.StatusAccepted)
			return
		}
		for line := range strings.Lines(string(body)) {
			got = append(got, line)
			_, _ = io.WriteString(w, `{"line":1,"trace_id":"x","status":"accepted","faults":[]}`+"\n")
		}
	}))
	defer server.Close()
	const nobody = "http://127.0.0.1:1"
	spool := t.TempDir()
	python := func(url, text string) {
		t.Helper()
		cmd := clientstest.Python(t, "-c", `import sys
from plumbline import Recorder
recorder = Recorder("did:web:a.example", "c", url=sys.argv[1], spool=sys.argv[2], on_error=lambda e: None, on_warning=lambda *a: None)
`+text, url, spool)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	start := func(url string) *client.Recorder {
		r, err := client.NewRecorder(client.RecorderConfig{AgentID: "did:web:a.example", CardID: "c", URL: url, Spool: spool,
			OnError: func(*client.RecordError) {}, OnWarning: func(string, string, string) {}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	python(nobody, `session = recorder.session("py")
session.record(action="x", trace_id="of-python")
session.end()
recorder.close(0)`)
	r := start(nobody)
	s := r.Session("go")
	s.Record(client.Decision{Action: "x", TraceID: "of-go"})
	s.End()
	_ = r.Close(ended) // has taken over what Python left, and leaves all of it
	python(server.URL, `recorder.session("py-2").record(action="x", trace_id="also-of-python")
assert recorder.flush(20)
import os; os._exit(0)`)
	r = start(server.URL)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	all := strings.NewReplacer(`": "`, `":"`, `", "`, `","`).Replace(strings.Join(got, "\n"))
	for _, want := range []string{`"of-python"`, `"of-go"`, `"also-of-python"`, `.example","session_id":"py"}`, `.example","session_id":"go"}`} {
		if n := strings.Count(all, want); n != 1 {
			t.Errorf("%s was delivered %d times: %s", want, n, all)
		}
	}
}
