package api

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup is what a test can change before the routes are served.
type setup struct {
	Config
	TokenFile string
	broker    *brokertest.Server // nil: a new one
	log       *slog.Logger
	random    io.Reader
}

// rig serves the routes with a real broker, as ingest does.
type rig struct {
	t      testing.TB
	broker *brokertest.Server
	api    *API
	url    string
	http   *http.Client
	stop   func() error // drains
}

// start serves the routes until the test ends. change alters the setup first.
func start(t testing.TB, change ...func(*setup)) *rig {
	t.Helper()
	s := setup{Config: Default(), log: slog.New(slog.DiscardHandler), random: rand.Reader}
	s.HandshakeKeyFile, s.MicroKeyFile = filepath.Join(t.TempDir(), "handshake.key"), filepath.Join(t.TempDir(), "micro.key")
	for _, alter := range change {
		alter(&s)
	}
	if s.broker == nil {
		s.broker = brokertest.New(t)
	}
	keeper, err := auth.Open(s.TokenFile, "127.0.0.1:0", s.log)
	if err != nil {
		t.Fatal(err)
	}
	files, faults := s.ReadFiles(s.TokenFile == "", s.log)
	if faults = append(faults, s.Validate()...); len(faults) > 0 {
		t.Fatal(faults)
	}
	common := config.DefaultCommon("")
	common.NATS.URL, common.NATS.MonitorURL = s.broker.URL(), s.broker.MonitorURL()
	env := service.NewEnv("ingest", "1", s.log, obs.NewRegistry("1"), new(obs.Health))
	ctx, cancel := context.WithCancel(context.Background())
	broker, err := service.Broker(ctx, &common, env)
	if err != nil {
		t.Fatal(err)
	}
	parts := Parts{Env: env, Config: &s.Config, Files: files, Broker: broker, Random: s.random}
	if parts.Cards, err = cards.Open(ctx, broker, config.DefaultCardCacheBytes); err != nil {
		t.Fatal(err)
	}
	if parts.HandshakeBucket, err = broker.Bucket(ctx, stream.Handshakes); err != nil {
		t.Fatal(err)
	}
	if parts.MessageBucket, err = broker.Bucket(ctx, stream.Messages); err != nil {
		t.Fatal(err)
	}
	a, err := Open(ctx, parts)
	if err != nil {
		t.Fatal(err)
	}
	router := request.New(request.Config{Keeper: keeper, Memory: 64 << 20, Timeout: time.Minute, Log: s.log, Metrics: env.Metrics})
	obs.Register(router.Mux, env.Health, env.Gatherer)
	a.AddRoutes(router)
	work, end := env.Drain(ctx)
	known, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Group(work,
			func(context.Context) error {
				return service.UnlessEnded(ctx, parts.Cards.Watch(ctx, cards.Observer{Ready: func() { close(known) }}))
			},
			func(work context.Context) error { return a.Run(ctx, work, known) })
	}()
	<-known
	server := httptest.NewServer(problem.Routed(router.Mux, "docs/PUBLISH.md"))
	r := &rig{t: t, broker: s.broker, api: a, url: server.URL, http: &http.Client{Transport: &http.Transport{}}}
	r.stop = sync.OnceValue(func() error {
		server.Close()
		cancel()
		err := <-ended
		end()
		return errors.Join(err, broker.Close())
	})
	t.Cleanup(func() {
		r.http.CloseIdleConnections()
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// onBrokerOf starts a second service on the broker of a rig.
func onBrokerOf(t testing.TB, other *rig, change ...func(*setup)) *rig {
	t.Helper()
	return start(t, append(change, func(s *setup) { s.broker = other.broker })...)
}

// await polls until holds returns true.
func (r *rig) await(holds func() bool) {
	r.t.Helper()
	for tick := time.NewTicker(5 * time.Millisecond); !holds(); <-tick.C {
		if r.t.Context().Err() != nil {
			r.t.Fatal("the test ended first")
		}
	}
}

// reply is an answer after it was read.
type reply struct {
	code   int
	header http.Header
	text   string
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

func bearing(token string) string { return "Authorization: Bearer " + token }

// withTokens gives the service a token file. Each entry is "token agents scopes", with
// comma-separated lists.
func withTokens(t testing.TB, entries ...string) func(*setup) {
	t.Helper()
	path := requests.TokenFile(t, entries...)
	return func(s *setup) { s.TokenFile = path }
}
