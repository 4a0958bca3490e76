package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, handler http.Handler, path string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

func TestReadinessFollowsItsComponents(t *testing.T) {
	health := new(obs.Health)
	handler := obs.Handler(health, obs.NewRegistry("1"))
	expect := func(when string, wantStatus int, wantBody string) {
		t.Helper()
		if status, body := get(t, handler, "/readyz"); status != wantStatus || strings.TrimSpace(body) != wantBody {
			t.Errorf("%s: %d %s, want %d %s", when, status, body, wantStatus, wantBody)
		}
		if status, _ := get(t, handler, "/healthz"); status != http.StatusOK {
			t.Errorf("%s: liveness %d: an outage of a peer must not cause a restart", when, status)
		}
	}
	expect("nothing declared", 200, `{"ready":true}`)
	broker, database := health.Component("broker", "verifier"), health.Component("clickhouse", "verifier")
	expect("declared", 503, `{"ready":false,"down":{"broker":"starting","clickhouse":"starting"}}`)
	broker.Up()
	database.Down("connection refused")
	health.Component("broker", "verifier") // a second declaration changes nothing
	expect("one down", 503, `{"ready":false,"down":{"clickhouse":"connection refused"}}`)
	database.Up()
	expect("all up", 200, `{"ready":true}`)
	health.Drain()
	expect("draining", 503, `{"ready":false,"draining":true}`)
}

func TestLimitationsAreServedWhole(t *testing.T) {
	status, body := get(t, obs.Handler(new(obs.Health), obs.NewRegistry("1")), "/v1/limitations")
	var answer struct{ Limitations []string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v: %s", status, err, body)
	}
	if len(answer.Limitations) != 5 || !slices.Equal(answer.Limitations, schema.Limitations()) {
		t.Errorf("served %q", answer.Limitations)
	}
}

func TestMetricsAreServed(t *testing.T) {
	_, body := get(t, obs.Handler(new(obs.Health), obs.NewRegistry("1.2.3")), "/metrics")
	for _, want := range []string{`plumbline_build_info{version="1.2.3"} 1`, "go_goroutines", "process_open_fds"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log, err := obs.NewLogger(&out, obs.FormatJSON, "warn")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("silence")
	log.Warn("injected", "id", "a\nb\x1b[31m")
	if got := strings.Count(out.String(), "\n"); got != 1 || !json.Valid(out.Bytes()) {
		t.Errorf("%d lines, want one JSON object: %s", got, out.String())
	}
	for _, wrong := range [][2]string{{"xml", "info"}, {obs.FormatJSON, "loud"}} {
		if _, err := obs.NewLogger(io.Discard, wrong[0], wrong[1]); err == nil {
			t.Errorf("%v accepted", wrong)
		}
	}
}

// What a library writes to the standard log is in the process's log, except for what it quotes.
func TestStandardLogIsWithoutQuotes(t *testing.T) {
	was, flags, writer := slog.Default(), log.Flags(), log.Writer()
	t.Cleanup(func() { slog.SetDefault(was); log.SetFlags(flags); log.SetOutput(writer) })
	var out bytes.Buffer
	logger, err := obs.NewLogger(&out, obs.FormatText, "info")
	if err != nil {
		t.Fatal(err)
	}
	obs.TakeStandardLog(logger)
	log.Printf("Unsolicited response starting with %q; err=%v", "SECRET\r\n\"SECRET", nil)
	log.Print("a plain line")
	slog.Warn("a line of the default logger")
	got := out.String()
	for _, want := range []string{`level=WARN msg="Unsolicited response starting with" left_out=true`, `msg="a plain line" left_out=false`, `msg="a line of the default logger"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "SECRET") || strings.Count(got, "\n") != 3 {
		t.Errorf("want 3 lines without what is quoted: %s", got)
	}
}

func newLimit(cfg admission.Config) *admission.Limit {
	return admission.New("operators", cfg, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
}

// Operators are answered however many connections are open, even from their own address.
func TestOperatorsAreAnsweredOverTheBound(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		handler := obs.Handler(new(obs.Health), obs.NewRegistry("1"))
		served <- obs.Serve(ctx, listener, handler, newLimit(admission.Config{MaxConnections: 16, AddressShare: 25}))
	}()
	var slow []net.Conn
	for range 100 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /readyz HTTP/1.1\r\n"); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	client := &http.Client{Transport: &http.Transport{}}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		answer, err := client.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK || !answer.Close {
			t.Errorf("%s: %s, the connection ends: %v, error %v", path, answer.Status, answer.Close, err)
		}
	}
	if _, err := slow[len(slow)/2].Read(make([]byte, 1)); err == nil {
		t.Error("a connection over the limit is still open")
	}
	for _, conn := range slow {
		_ = conn.Close()
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestServeFinishesTheCurrentRequest(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- obs.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			cancel()
			w.WriteHeader(http.StatusTeapot)
		}), newLimit(admission.Operators()))
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusTeapot {
		t.Errorf("%v, status %d", err, answer.StatusCode)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestServeReportsALostListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := obs.Serve(t.Context(), listener, http.NotFoundHandler(), newLimit(admission.Operators())); err == nil {
		t.Error("serving on a closed listener returned no error")
	}
}

// An unknown path on an operator's port is answered with a problem that lists the known ones.
func TestUnroutedRequestsAreProblems(t *testing.T) {
	routes := new(obs.Routes)
	handler := routes.Before(obs.Handler(new(obs.Health), obs.NewRegistry("1")))
	routes.Handle("GET /v1/keys", http.NotFoundHandler())
	for _, c := range []struct {
		method, path string
		code         int
		says         string
	}{
		{"GET", "/", 404, "/readyz"}, {"POST", "/v1/traces", 404, "published to ingest"},
		{"POST", "/readyz", 405, "use GET, HEAD"}, {"PUT", "/v1/keys", 405, "use GET, HEAD"},
	} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(c.method, c.path, nil))
		var p struct{ Error, Message string }
		err := json.Unmarshal(recorder.Body.Bytes(), &p)
		if err != nil || recorder.Code != c.code || p.Error == "" || !strings.Contains(p.Message, c.says) || recorder.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s, error %v", c.method, c.path, recorder.Code, recorder.Body, err)
		}
	}
}

// The log repeats ids and errors, but no secrets in them.
func TestLogHidesSecrets(t *testing.T) {
	for _, format := range []string{obs.FormatJSON, obs.FormatText} {
		var out bytes.Buffer
		log, err := obs.NewLogger(&out, format, "info")
		if err != nil {
			t.Fatal(err)
		}
		const session = "s?access_token=hunter2"
		log.With("session", session).WithGroup("g").Error("a session is held: password=hunter2", "id", session, "n", 1,
			"error", fmt.Errorf("session %q of agent %q: %w", session, "a", errors.New("Authorization: Bearer hunter2")))
		if text := out.String(); strings.Contains(text, "hunter2") || strings.Count(text, "[REDACTED]") != 5 || !strings.Contains(text, "agent") {
			t.Errorf("%s: %s", format, text)
		}
	}
}

// Readiness repeats errors, but no secrets in them.
func TestReadinessHidesSecrets(t *testing.T) {
	health := new(obs.Health)
	health.Component("database", "verifier").Down("insert: password=hunter2 is refused")
	if status, body := get(t, obs.Handler(health, obs.NewRegistry("1")), "/readyz"); status != http.StatusServiceUnavailable ||
		strings.Contains(body, "hunter2") || !strings.Contains(body, "is refused") {
		t.Errorf("%d %s", status, body)
	}
}
