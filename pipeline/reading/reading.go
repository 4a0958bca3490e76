package reading

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

const (
	// atOnce is how many requests read at a time. Each holds at most a page of maxPageBytes twice.
	atOnce = 4
	// patience is how long a request waits until another one has finished.
	patience = 2 * time.Second

	queryMemory  = 256 << 20 // less than the embedded engine allows at its smallest
	queryThreads = 2
)

// Service answers readers. Without a database its routes say what to configure.
type Service struct {
	cfg     Config
	log     *slog.Logger
	rows    *store.Store // nil: none is configured
	lookup  *store.Store // the same database, with connections of its own
	readers chan struct{}
	local   bool // requests need no token, so only those to a loopback name are answered

	stored  func(context.Context, []time.Time, []schema.Digest) (map[schema.Digest]uint64, error) // of lookup; nil: no database
	lookups chan struct{}
	paused  atomic.Int64 // Unix nanoseconds until which nothing is looked up
	joining sync.Mutex   // guards waiting
	waiting *lookup      // that others may join; nil: none
}

// Open prepares the service for the rows of a tenant. It does not wait for the database: a request
// that needs it while it is away is answered with 503.
func Open(ctx context.Context, cfg Config, tenant string, log *slog.Logger) (s *Service, err error) {
	s = &Service{cfg: cfg, log: log, readers: make(chan struct{}, atOnce), lookups: make(chan struct{}, lookupsAtOnce)}
	if cfg.ClickHouse.DSN == "" {
		return s, nil
	}
	settings := store.Config{
		DSN: cfg.ClickHouse.DSN, Cluster: cfg.ClickHouse.Cluster, Tenant: tenant, Stage: "reading",
		QueryTimeout: cfg.QueryTime, DialTimeout: patience, Connections: 2 * atOnce,
		Limits: database.Limits{Rows: cfg.QueryRows, Memory: queryMemory, Threads: queryThreads},
	}
	if s.rows, err = store.Open(ctx, settings); err != nil {
		return nil, err
	}
	settings.Stage, settings.Connections, settings.Limits.Threads = "duplicates", lookupsAtOnce, 1
	settings.DialTimeout = cfg.DuplicateLookup
	if s.lookup, err = store.Open(ctx, settings); err != nil {
		return nil, errors.Join(err, s.rows.Close())
	}
	s.stored = s.lookup.StoredSequences
	return s, nil
}

// Close ends the connections to the database.
func (s *Service) Close() error {
	var faults []error
	for _, opened := range []*store.Store{s.rows, s.lookup} {
		if opened != nil {
			faults = append(faults, opened.Close())
		}
	}
	return errors.Join(faults...)
}

// handler answers a request that was admitted. leave lets another reader in before it returns.
type handler func(w http.ResponseWriter, r *http.Request, grant auth.Grant, leave func()) (code int, err error)

// AddRoutes adds the routes to a router, each with its scope.
func (s *Service) AddRoutes(router *request.Router) {
	s.local = router.Keeper.LetsAnyoneIn()
	route := func(pattern string, scope auth.Scope, handle handler) {
		router.Route(pattern, scope, func(w http.ResponseWriter, r *http.Request, grant auth.Grant) (int, error) {
			leave, err := s.enter(r)
			if err != nil {
				return 0, err
			}
			defer leave()
			code, err := handle(w, r, grant, leave)
			return code, s.failure(r.Context(), err)
		})
	}
	route("GET /v1/traces", auth.TracesRead, s.listTraces)
	route("GET /v1/traces/{trace_id}", auth.TracesRead, s.getTrace)
	route("GET /v1/bundles", auth.BundlesRead, s.listBundles)
	route("GET /v1/bundles/{sha256}", auth.BundlesRead, s.getBundle)
}

// enter admits a request, or returns why not. Without tokens a request must name this machine: a web
// page whose name was pointed at a loopback address could read everything otherwise.
func (s *Service) enter(r *http.Request) (leave func(), err error) {
	if s.local && !transport.Loopback(r.Host) {
		return nil, problem.New(http.StatusForbidden, "forbidden",
			"this service needs no token, so it answers readers on 127.0.0.1 or localhost only, and this request is to %q: give it a token file", clip(r.Host))
	}
	if s.rows == nil {
		return nil, problem.New(http.StatusNotFound, "no_database",
			"this ingest has no database, so it stores traces and cannot read them: set clickhouse_dsn (--clickhouse-dsn) of ingest")
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case s.readers <- struct{}{}:
		return sync.OnceFunc(func() { <-s.readers }), nil
	case <-r.Context().Done():
	case <-wait.C:
	}
	return nil, problem.Unavailable(patience, "%d requests read at this time, the most that may: repeat the request later", atOnce)
}

// failure converts an error of the database to a problem for the reader.
func (s *Service) failure(ctx context.Context, err error) error {
	known, answered := errors.AsType[*problem.Problem](err)
	switch {
	case err == nil:
		return nil
	case answered:
		return known
	case database.TooBroad(err):
		return problem.New(http.StatusBadRequest, "too_broad",
			"the database would read more than %d rows or use too much memory for this: give agent_id, or a shorter time from…to", s.cfg.QueryRows)
	case ctx.Err() != nil:
		return problem.Unavailable(0, "the request ended before the database answered")
	case database.TimedOut(err):
		return problem.Unavailable(patience, "the database did not answer within %s: repeat the request later, or give agent_id or a shorter time from…to", s.cfg.QueryTime)
	case errors.Is(err, fs.ErrPermission):
		s.log.Error("a bundle cannot be read", "error", err)
	default:
		s.log.Error("the database did not answer a reader", "error", err)
	}
	return problem.Unavailable(patience, "the database cannot be read now, which does not affect publishing: repeat the request later; the service log says why")
}

// clip shortens text from a client for use in an answer.
func clip(text string) string { return schema.Clip(text, schema.MaxIDBytes) }
