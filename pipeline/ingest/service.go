package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/api"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/otel"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

const stageName = "ingest"

// server answers publishers. The last group of members is set once the broker was reached, before
// the first publisher is admitted.
type server struct {
	env *service.Env
	cfg *Config
	files
	router    *request.Router
	grpc      net.Listener // for OTLP/gRPC; nil: none
	insecure  error        // why handshake messages may not travel over HTTP; nil: they may
	pool      bufferPool
	conflicts *conflicts
	metrics   *metrics
	connect   func(context.Context) (*stream.Client, error)
	commits   stream.CommitConfig
	stopping  func() bool

	reader      Reader // nil: there is no database
	holder      Holder
	traces      Publisher
	cards       *cards.Registry
	deadLetters *deadLetters
}

// Serve runs the stage until ctx ends and the requests in progress are answered. An unusable
// token file, certificate or address ends it at once. An unavailable broker does not. reader may be
// nil.
func Serve(ctx context.Context, cfg *Config, env *service.Env, reader Reader) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for publishers: %w", err)
	}
	return ServeOn(ctx, listener, cfg, env, reader)
}

// ServeOn does the same on a listener, which it closes.
func ServeOn(ctx context.Context, listener net.Listener, cfg *Config, env *service.Env, reader Reader) error {
	grpc, err := ListenGRPC(ctx, cfg)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return ServeBoth(ctx, listener, grpc, cfg, env, reader)
}

// ListenGRPC listens for OTLP/gRPC. It returns nil if no address is configured.
func ListenGRPC(ctx context.Context, cfg *Config) (net.Listener, error) {
	if cfg.OTLPGRPCListen == "" {
		return nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.OTLPGRPCListen)
	if err != nil {
		return nil, fmt.Errorf("listen for OTLP/gRPC: %w", err)
	}
	return listener, nil
}

// ServeBoth is ServeOn with the listener for OTLP/gRPC, which it closes, too. grpc may be nil.
func ServeBoth(ctx context.Context, listener, grpc net.Listener, cfg *Config, env *service.Env, reader Reader) error {
	s, err := newServer(listener.Addr(), cfg, env)
	if err != nil {
		if grpc != nil {
			err = errors.Join(err, grpc.Close())
		}
		return errors.Join(err, listener.Close())
	}
	if reader != nil {
		s.read(reader)
	}
	s.grpc = grpc
	return s.serve(ctx, listener)
}

func newServer(address net.Addr, cfg *Config, env *service.Env) (*server, error) {
	read, faults := cfg.readFiles(address.String(), env.Log)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	err := errors.Join(env.ShowCertificate("tls_cert_file", cfg.TLSCertFile), env.ShowCertificate("tls_client_ca_file", cfg.TLSClientCAFile))
	if err != nil {
		return nil, err
	}
	s := &server{
		env: env, cfg: cfg, files: read,
		router: request.New(request.Config{
			Keeper: read.keeper, Memory: cfg.MaxInFlightBytes, Timeout: cfg.RequestTimeout, Log: env.Log, Metrics: env.Metrics, Spans: env.Spans,
		}),
		insecure:  cfg.secure(address),
		conflicts: &conflicts{seed: maphash.MakeSeed()},
		metrics:   newMetrics(env.Metrics),
		connect:   func(ctx context.Context) (*stream.Client, error) { return service.Broker(ctx, &cfg.Common, env) },
	}
	obs.Register(s.router, env.Health, env.Gatherer) // here they get answers to other methods, too
	s.router.Route("POST /v1/traces", auth.TracesWrite, s.postTraces)
	s.router.RouteAs("POST "+pathSpans, auth.TracesWrite, refuseSpans, s.postSpans)
	return s, nil
}

// read adds what a database adds.
func (s *server) read(reader Reader) {
	s.reader = reader
	reader.AddRoutes(s.router)
}

// handler answers the requests of publishers.
func (s *server) handler() http.Handler {
	return problem.Routed(s.router.Mux, "publish traces to POST /v1/traces, spans of OpenTelemetry to POST /otlp/v1/traces, cards to PUT /v1/cards/{card_id}; GET /v1/openapi.json describes every address, and docs/PUBLISH.md explains them")
}

// serve answers operators while it connects to the broker, and publishers from then on.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	work, stop := s.env.Drain(ctx)
	defer stop()
	gate, closed := newGate(work, s), make(chan struct{})
	s.stopping = func() bool { return ctx.Err() != nil }
	return service.Group(ctx,
		func(ctx context.Context) error {
			defer close(closed)
			return service.Group(ctx,
				func(ctx context.Context) error { return gate.limit.Serve(ctx, work, &gate.server, listener) },
				func(ctx context.Context) error { return s.serveGRPC(ctx, work, gate) })
		},
		func(ctx context.Context) error { return s.attend(ctx, work, gate, closed) })
}

// attend connects to the broker, works with it, and returns after the gate is closed, when nobody
// waits for the committer any more.
func (s *server) attend(ctx, work context.Context, gate *gate, closed <-chan struct{}) (err error) {
	broker, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	return service.Group(work,
		func(context.Context) error {
			defer cut()
			return broker.Closed(ctx)
		},
		func(work context.Context) error {
			defer cut()
			return s.work(ctx, work, broker, gate, closed)
		})
}

// work opens the gate once every card is known.
func (s *server) work(ctx, work context.Context, broker *stream.Client, gate *gate, closed <-chan struct{}) error {
	parts := api.Parts{Env: s.env, Config: &s.cfg.Config, Files: s.files.api, Broker: broker, Insecure: s.insecure, Random: rand.Reader}
	err := s.env.Open(ctx, broker, func() (err error) {
		if parts.Cards, err = cards.Open(ctx, broker, s.cfg.Cards.CacheBytes); err != nil {
			return err
		}
		if parts.HandshakeBucket, err = broker.Bucket(ctx, stream.Handshakes); err != nil {
			return err
		}
		parts.MessageBucket, err = broker.Bucket(ctx, stream.Messages)
		return err
	})
	if err != nil {
		return err
	}
	parts.Cards.Expose(s.env.Metrics)
	committer := broker.NewCommitter(s.commits)
	defer committer.Close()
	s.holder, s.traces, s.cards, s.deadLetters = broker, committer, parts.Cards, newDeadLetters(s.env, broker, s.metrics)
	others, err := api.Open(ctx, parts)
	if err != nil {
		return err
	}
	others.AddRoutes(s.router)
	known := make(chan struct{})
	open := func() {
		gate.open(s.handler())
		close(known)
		s.env.Started()
	}
	return service.Group(work,
		func(context.Context) error { return service.TryBroker(ctx, s.env, broker) },
		func(context.Context) error {
			return s.cards.Follow(ctx, s.env.Retry, s.env.Log, "it is not served", cards.Observer{Ready: open})
		},
		func(work context.Context) error { return others.Run(ctx, work, known) },
		func(work context.Context) error { return s.deadLetters.run(work, closed) })
}

// gate is the stage's HTTP interface. It answers operators from the start. It answers publishers
// once it is open. Before that, until the broker is reached, it asks them to retry.
type gate struct {
	server  http.Server
	limit   *admission.Limit
	handler atomic.Pointer[http.Handler]
}

const (
	maxHeaderBytes = 32 << 10 // more than enough for a token
	maxStreams     = 100      // concurrent requests of an HTTP/2 connection: the minimum that RFC 9113 recommends
)

// newGate returns a closed gate. Requests end with the context work.
func newGate(work context.Context, s *server) *gate {
	g := &gate{limit: admission.New("publishers", s.cfg.Connections, s.env.Log, s.env.Metrics)}
	mux := http.NewServeMux()
	obs.Register(mux, s.env.Health, s.env.Gatherer)
	mux.HandleFunc("/", g.publishers)
	g.server = http.Server{
		Handler:           s.router.Pace.Begin(s.env.Routes.Before(mux)),
		TLSConfig:         s.tls.Clone(), // net/http changes what it serves with
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       s.cfg.RequestTimeout,
		WriteTimeout:      s.cfg.RequestTimeout + 30*time.Second, // time to answer after the last read
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		BaseContext:       func(net.Listener) context.Context { return work },
	}
	return g
}

func (g *gate) open(handler http.Handler) { g.handler.Store(&handler) }

func (g *gate) publishers(w http.ResponseWriter, r *http.Request) {
	if refusal := admission.Refusal(r.Context()); refusal != "" {
		problem.Unavailable(0, "%s: repeat the request later, and send several requests over one connection", refusal).Write(w)
		return
	}
	if handler := g.handler.Load(); handler != nil {
		(*handler).ServeHTTP(w, r)
		return
	}
	problem.Unavailable(0, "the service is starting and has not reached the broker yet: repeat the request later").Write(w)
}

// metrics are the stage's counters.
type metrics struct {
	lines       [statuses]prometheus.Counter // by outcome; none for pending
	spans       *prometheus.CounterVec       // by outcome
	unmapped    *prometheus.CounterVec       // by reason
	commitRows  prometheus.Histogram
	commitTime  prometheus.Histogram
	deadLetters *prometheus.CounterVec // by reason
	dropped     prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	lines := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_ingest_lines_total", Help: "Lines received, by outcome."}, []string{"outcome"})
	m := &metrics{
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_ingest_otlp_spans_total", Help: "Spans of OpenTelemetry received, by outcome: that of their trace, or no_decision."}, []string{"outcome"}),
		unmapped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_ingest_otlp_unmapped_total", Help: "Spans of OpenTelemetry that gave no trace, by reason."}, []string{"reason"}),
		commitRows: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plumbline_ingest_commit_rows", Help: "Traces that ingest published together for one request.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 6)}),
		commitTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plumbline_ingest_commit_seconds", Help: "Time until the broker had stored the traces that ingest published together for one request.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}),
		deadLetters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_ingest_dead_letters_total", Help: "Refused lines stored as dead letters, by reason."}, []string{"reason"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_ingest_dead_letters_dropped_total", Help: "Refused lines not stored as dead letters, because too many arrived at once; their publishers got the refusal in the answer."}),
	}
	for s := accepted; s < statuses; s++ {
		m.lines[s] = lines.WithLabelValues(s.String())
		m.spans.WithLabelValues(s.String())
	}
	m.spans.WithLabelValues(noDecision)
	for _, reason := range otel.Reasons() {
		m.unmapped.WithLabelValues(reason)
	}
	registerer.MustRegister(lines, m.spans, m.unmapped, m.commitRows, m.commitTime, m.deadLetters, m.dropped)
	return m
}
