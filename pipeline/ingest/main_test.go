package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a running stage with its own broker.
type rig struct {
	t      testing.TB
	broker *brokertest.Server
	server *server
	health *obs.Health
	url    string
	http   *http.Client
	ended  chan struct{} // closed when the stage has ended, with err
	err    error
	stop   func() error // drains
}

// start runs the stage until the test ends. change alters it first.
func start(t testing.TB, change ...func(*Config, *server)) *rig {
	t.Helper()
	r := prepare(t, change...)
	r.awaitReady()
	return r
}

// prepare is start without the wait for readiness.
func prepare(t testing.TB, change ...func(*Config, *server)) *rig {
	t.Helper()
	r := &rig{t: t, broker: brokertest.New(t), health: new(obs.Health), http: &http.Client{Transport: &http.Transport{}}}
	cfg := Default()
	cfg.NATS.URL, cfg.NATS.MonitorURL = r.broker.URL(), r.broker.MonitorURL()
	cfg.HandshakeKeyFile = filepath.Join(t.TempDir(), "handshake.key")
	cfg.MicroKeyFile = filepath.Join(t.TempDir(), "micro.key")
	for _, alter := range change {
		alter(&cfg, nil)
	}
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Fatal(faults)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + listener.Addr().String()
	env := service.NewEnv(stageName, "1", slog.New(slog.DiscardHandler), obs.NewRegistry("1"), r.health)
	if r.server, err = newServer(listener.Addr(), &cfg, env); err != nil {
		t.Fatal(err)
	}
	for _, alter := range change {
		alter(&cfg, r.server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.ended = make(chan struct{})
	go func() {
		defer close(r.ended)
		r.err = r.server.serve(ctx, listener)
	}()
	r.stop = func() error {
		cancel()
		<-r.ended
		return r.err
	}
	t.Cleanup(func() {
		r.http.CloseIdleConnections()
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// configured alters only the configuration.
func configured(alter func(*Config)) func(*Config, *server) {
	return func(cfg *Config, s *server) {
		if s == nil {
			alter(cfg)
		}
	}
}

// wired alters only the server.
func wired(alter func(*server)) func(*Config, *server) {
	return func(_ *Config, s *server) {
		if s != nil {
			alter(s)
		}
	}
}

// awaitReady polls until the stage is ready, as an orchestrator does.
func (r *rig) awaitReady() {
	r.t.Helper()
	r.await(func() bool { return r.health.Readiness().Ready })
}

// await polls until holds returns true.
func (r *rig) await(holds func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-r.ended:
			r.t.Fatal("the stage ended:", r.err)
		}
	}
}

// stored checks how many traces the broker holds.
func (r *rig) stored(want uint64) {
	r.t.Helper()
	state, err := r.broker.Connect().StreamState(r.t.Context(), stream.Traces)
	if err != nil || state.Messages != want {
		r.t.Errorf("%d traces stored, want %d; error %v", state.Messages, want, err)
	}
}

// letters returns exactly n dead letters.
func (r *rig) letters(n int) []wire.DeadLetter {
	r.t.Helper()
	letters := make([]wire.DeadLetter, n)
	for i, m := range r.broker.Read(stream.DeadLetters, stream.DeadLetterConsumer, n) {
		var err error
		if letters[i], err = wire.ParseDeadLetter(m.Subject, m.Header, m.Data); err != nil {
			r.t.Fatal(err)
		}
	}
	return letters
}

// reply is an answer after it was read.
type reply struct {
	code   int
	header http.Header
	text   string
}

// line is one outcome as a client decodes it.
type line struct {
	Line    int            `json:"line"`
	Through int            `json:"through"`
	TraceID string         `json:"trace_id"`
	Status  string         `json:"status"`
	Faults  []schema.Fault `json:"faults"`

	Warnings []schema.Warning `json:"warnings"`
}

func (a reply) lines(t testing.TB) (lines []line) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(a.text))
	decoder.DisallowUnknownFields()
	for decoder.More() {
		var l line
		if err := decoder.Decode(&l); err != nil {
			t.Fatalf("%v in %.200q", err, a.text)
		}
		lines = append(lines, l)
	}
	return lines
}

// problem decodes the answer as a problem.
func (a reply) problem(t testing.TB) problem.Problem {
	t.Helper()
	return requests.Problem(t, a.code, a.text)
}

// send makes a request; headers are given as "Name: value".
func (r *rig) send(method, path string, body io.Reader, headers ...string) reply {
	r.t.Helper()
	code, header, text := requests.Send(r.t, r.http, method, r.url+path, body, headers...)
	return reply{code: code, header: header, text: text}
}

const ndjson = "Content-Type: application/x-ndjson"

// post publishes NDJSON.
func (r *rig) post(body string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPost, "/v1/traces", strings.NewReader(body), append([]string{ndjson}, headers...)...)
}

// trace returns a valid trace. members are additional members.
func trace(agent, id string, members ...string) string {
	more := ""
	for _, m := range members {
		more += "," + m
	}
	return fmt.Sprintf(`{"trace_id":%q,"agent_id":%q,"card_id":"card-1","timestamp":"2026-01-31T12:30:00Z",`+
		`"action":{"type":"execute","name":"search","category":"bounded"},`+
		`"decision":{"alternatives_considered":[{"option_id":"a","description":"search"}],"selected":"a",`+
		`"selection_reasoning":"because","values_applied":["honesty"]}%s}`, id, agent, more)
}

// traces returns n different traces of one agent, one per line.
func traces(agent string, n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = trace(agent, fmt.Sprintf("t-%d", i))
	}
	return lines
}

func body(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

func packedBody(t testing.TB, text string) *bytes.Buffer {
	t.Helper()
	var buffer bytes.Buffer
	zipper := gzip.NewWriter(&buffer)
	if _, err := io.WriteString(zipper, text); err != nil {
		t.Fatal(err)
	}
	if err := zipper.Close(); err != nil {
		t.Fatal(err)
	}
	return &buffer
}

// statuses counts the statuses in the answer.
func (a reply) statuses(t testing.TB) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, l := range a.lines(t) {
		counts[l.Status]++
	}
	return counts
}

// withTokens gives the stage a token file. Each entry is "token agents scopes", with
// comma-separated lists.
func withTokens(t testing.TB, entries ...string) func(*Config, *server) {
	t.Helper()
	path := requests.TokenFile(t, entries...)
	return configured(func(cfg *Config) { cfg.TokenFile = path })
}

// card returns a valid card.
func card(agent, id string) string { return requests.Card(agent, id) }

func (r *rig) putCard(id, text string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPut, "/v1/cards/"+url.PathEscape(id), strings.NewReader(text),
		append([]string{"Content-Type: application/aap-alignment-card+json"}, headers...)...)
}

func (r *rig) revoke(id, body string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPost, "/v1/cards/"+url.PathEscape(id)+"/revoke", strings.NewReader(body),
		append([]string{"Content-Type: application/json"}, headers...)...)
}

func (r *rig) endSession(agent, session string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPost, "/v1/sessions/end", strings.NewReader(fmt.Sprintf(`{"agent_id":%q,"session_id":%q}`, agent, session)),
		append([]string{"Content-Type: application/json"}, headers...)...)
}

// onBrokerOf starts a second stage on the broker of a rig.
func onBrokerOf(t testing.TB, other *rig, change ...func(*Config, *server)) *rig {
	t.Helper()
	return start(t, append(change, configured(func(cfg *Config) {
		cfg.NATS.URL, cfg.NATS.MonitorURL = other.broker.URL(), other.broker.MonitorURL()
	}))...)
}
