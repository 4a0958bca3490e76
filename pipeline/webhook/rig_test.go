package webhook

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/locked"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// asService makes the test's program the service, to be killed.
const asService = "PLUMBLINE_TEST_WEBHOOKS"

func TestMain(m *testing.M) {
	if path := os.Getenv(asService); path != "" {
		cfg := Default()
		cfg.AdminListen, cfg.WebhooksFile = "", path
		os.Exit(service.Main(config.Command{Name: "webhooks", Version: "test"}, &cfg, func(ctx context.Context, env *service.Env) error { return Serve(ctx, &cfg, env) }))
	}
	os.Exit(m.Run())
}

// site is a broker with the service.
type site struct {
	t      *testing.T
	broker *brokertest.Server
	client *stream.Client
	log    locked.Text
	env    *service.Env
	dir    string
}

func newSite(t *testing.T) *site {
	s := &site{t: t, broker: brokertest.New(t), dir: t.TempDir()}
	s.client = s.broker.Connect()
	pipelinetest.EnsureTopology(t, s.client)
	return s
}

// endpoint returns an endpoint with a secret file of one secret.
func (s *site) endpoint(name, url string) Endpoint {
	e := Endpoint{Name: name, URL: url, SecretFile: filepath.Join(s.dir, name+".secret")}
	e.complete()
	s.write(e.SecretFile, NewSecret().Text())
	return e
}

func (s *site) write(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// run starts the service and waits until it reads. Its waits begin with some milliseconds.
func (s *site) run(endpoints ...Endpoint) *pipelinetest.Stage {
	s.t.Helper()
	cfg := Default()
	cfg.AdminListen, cfg.NATS.URL, cfg.NATS.MonitorURL = "", s.broker.URL(), s.broker.MonitorURL()
	log := slog.New(slog.NewTextHandler(io.MultiWriter(&s.log, s.t.Output()), nil))
	s.env = service.NewEnv("webhooks", "test", log, obs.NewRegistry("test"), new(obs.Health))
	env := s.env
	stage := pipelinetest.Go(s.t, func(ctx context.Context) error { return serve(ctx, &cfg, env, endpoints, 20*time.Millisecond) })
	pipelinetest.Await(s.t, "the service", func() bool { return env.Health.Reported().Ready })
	return stage
}

// raise publishes an alert of a kind with the id "<kind>.<n>".
func (s *site) raise(kind subject.AlertKind, n int, data string) (webhookID string) {
	s.t.Helper()
	id := fmt.Sprintf("%s.%d", kind, n)
	if err := s.client.PublishAlerts(s.t.Context(), []wire.Alert{{Kind: kind, Agent: "did:web:a.example", ID: id, Data: []byte(data)}}); err != nil {
		s.t.Fatal(err)
	}
	return strings.ReplaceAll(id, ".", "_")
}

// metric returns the value of a counter or gauge of the endpoint.
func (s *site) metric(name, endpoint, label string) (value float64) {
	s.t.Helper()
	families, err := s.env.Gatherer.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if slices.Contains(values, endpoint) && (label == "" || slices.Contains(values, label)) {
				value += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return value
}

// receiver is an HTTP server that answers as a test says, and keeps what it received.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []message
	answer func(n int, w http.ResponseWriter, r *http.Request) // n counts requests from 0; nil: 200
}

type message struct {
	id     string
	body   []byte
	header http.Header
	at     time.Time
}

func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	n := len(r.got)
	r.got = append(r.got, message{request.Header.Get(HeaderID), body, request.Header.Clone(), time.Now()})
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(n, w, request)
	}
}

func (r *receiver) messages() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) ids() (ids []string) {
	for _, m := range r.messages() {
		ids = append(ids, m.id)
	}
	return ids
}

// await waits for n requests.
func (r *receiver) await(t *testing.T, n int) {
	t.Helper()
	pipelinetest.Await(t, fmt.Sprintf("%d requests", n), func() bool { return len(r.messages()) >= n })
}
