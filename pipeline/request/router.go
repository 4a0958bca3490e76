// Package request admits the requests of agents and operators before a handler sees them: their
// tokens, and the type, size, speed and memory of their bodies.
//
// It owns those limits, the form of every answer, and the metric of requests. It knows no route.
// Package ingest (traces) and package api (everything else) add routes to one Router, so the same
// rules hold for both. It does not own the rights of tokens (pipeline/auth), the limit of
// connections (pipeline/admission) or the form of problem documents (pipeline/problem).
//
// Invariants: no handler with a scope runs without a token that has it; memory for bodies is
// reserved before it is allocated, and limited in all and per client; a body that stops arriving
// ends its request; every failure is answered with a problem document, and an error that concerns
// only the service is logged and not shown to the client.
package request

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/telemetry"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Router admits requests and passes them to the handlers of their routes.
type Router struct {
	Config
	Mux    *http.ServeMux
	Pace   Pace // of bodies
	memory *memory
	took   *prometheus.HistogramVec // seconds, by route and code
	routes []Route
}

// Config configures a Router.
type Config struct {
	Keeper  *auth.Keeper
	Memory  int64         // bytes for the bodies of all current requests, at least MinShare
	Timeout time.Duration // for a body
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Spans   *telemetry.Tracer // nil: requests have no spans
}

// New returns a router without routes.
func New(cfg Config) *Router {
	rt := &Router{Config: cfg, Mux: http.NewServeMux(), Pace: leastPace, memory: newMemory(cfg.Memory),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "plumbline_ingest_request_seconds", Help: "Duration of requests, by route and status code.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}, []string{"route", "code"})}
	cfg.Metrics.MustRegister(rt.took)
	return rt
}

// Route is one route of a router.
type Route struct {
	Pattern string     // as http.ServeMux takes it: "GET /v1/cards/{card_id}"
	Scope   auth.Scope // empty: no token is needed
}

// Handler answers an admitted request and returns the status code of its answer. If it returns an
// error it has not answered: the answer is the problem that Failure makes of the error.
type Handler func(w http.ResponseWriter, r *http.Request, grant auth.Grant) (code int, err error)

// Route adds a route for tokens with a scope.
func (rt *Router) Route(pattern string, scope auth.Scope, handle Handler) {
	rt.RouteAs(pattern, scope, writeProblem, handle)
}

// Refuse answers a request with a problem in the form of its protocol. It returns the status code of
// the answer, in terms of HTTP.
type Refuse func(w http.ResponseWriter, r *http.Request, p *problem.Problem) (code int)

func writeProblem(w http.ResponseWriter, _ *http.Request, p *problem.Problem) int { return p.Write(w) }

// RouteAs is Route for a protocol that has a form of its own for problems.
func (rt *Router) RouteAs(pattern string, scope auth.Scope, refuse Refuse, handle Handler) {
	rt.add(Route{pattern, scope}, rt.Admitted(pattern, scope, refuse, handle))
}

// Admitted returns the handler of a route that is not mounted here. name is its name in metrics.
func (rt *Router) Admitted(name string, scope auth.Scope, refuse Refuse, handle Handler) http.Handler {
	return rt.answered(name, refuse, func(w http.ResponseWriter, r *http.Request, _ auth.Grant) (int, error) {
		grant, err := rt.authorize(r, scope)
		if err != nil {
			return 0, err
		}
		if !rt.Keeper.LetsAnyoneIn() {
			r = r.WithContext(context.WithValue(r.Context(), tokenKey{}, grant.Name))
		}
		return handle(w, r, grant)
	})
}

// Public adds a route that needs no token. Its handler gets the zero Grant.
func (rt *Router) Public(pattern string, handle Handler) {
	rt.add(Route{Pattern: pattern}, rt.answered(pattern, writeProblem, handle))
}

// answered returns a handler that measures, and answers with a problem where handle has failed.
func (rt *Router) answered(name string, refuse Refuse, handle Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		code, err := handle(w, r, auth.Grant{})
		if err != nil {
			code = refuse(w, r, rt.Failure(name, err))
		}
		rt.took.WithLabelValues(name, strconv.Itoa(code)).Observe(time.Since(began).Seconds())
		rt.Spans.Request(name, r.Header.Get(wire.HeaderTraceparent), began, code)
		if code == http.StatusRequestEntityTooLarge {
			rt.linger(w, r, began)
		}
	})
}

func (rt *Router) add(route Route, handler http.Handler) {
	rt.Handle(route.Pattern, handler)
	rt.routes[len(rt.routes)-1].Scope = route.Scope
}

// Handle adds a route that needs no token and answers by itself, such as those of package obs.
func (rt *Router) Handle(pattern string, handler http.Handler) {
	rt.Mux.Handle(pattern, handler)
	rt.routes = append(rt.routes, Route{Pattern: pattern})
}

// Routes returns the routes, in the order in which they were added.
func (rt *Router) Routes() []Route { return slices.Clone(rt.routes) }

// tokenKey is the context key for the name of the request's token.
type tokenKey struct{}

// authorize reads the request's token (RFC 6750, section 2.1).
func (rt *Router) authorize(r *http.Request, scope auth.Scope) (auth.Grant, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := strings.EqualFold(scheme, "Bearer")
	if !given {
		token = ""
	}
	grant, err := rt.Keeper.Authorize(strings.TrimSpace(token), scope)
	switch {
	case err == nil:
		return grant, nil
	case errors.Is(err, auth.ErrScope):
		return grant, problem.New(http.StatusForbidden, "scope",
			"this token does not have the scope %s: use one that has it, or have the scope added to it", scope)
	case errors.Is(err, auth.ErrExpired):
		err = problem.New(http.StatusUnauthorized, "token",
			"this token has expired: ask the operator for a new one (plumbline token rotate)").With("WWW-Authenticate", "Bearer")
	case !given:
		err = problem.New(http.StatusUnauthorized, "token", "no token: send the header Authorization: Bearer TOKEN").With("WWW-Authenticate", "Bearer")
	default:
		err = problem.New(http.StatusUnauthorized, "token",
			"this token is unknown, or it was revoked: its hash must be in the service's token file (plumbline token ls lists what is)").With("WWW-Authenticate", "Bearer")
	}
	return grant, err
}

// Recheck returns a problem if the token of a request that began earlier is not valid any more: it was
// revoked or has expired, or lost the scope. For bodies that may take minutes.
func (rt *Router) Recheck(r *http.Request, scope auth.Scope) error {
	_, err := rt.authorize(r, scope)
	return err
}

// Foreign returns the fault of a record whose agent the token does not cover.
func Foreign(agent string) schema.Fault {
	return schema.Fault{Pointer: "/agent_id",
		Message: fmt.Sprintf("this token may not speak for agent %q: use that agent's token, or have the agent added to this one", agent)}
}

// MaySpeakFor returns a problem if the grant does not cover the agent.
func MaySpeakFor(grant auth.Grant, agent string) error {
	if grant.SpeaksFor(agent) {
		return nil
	}
	return problem.New(http.StatusForbidden, "forbidden", "%s", Foreign(agent).Message)
}

// Failure returns the problem for the client in an error of a handler, of the registry or of the
// broker. It logs an error that concerns only the service. operation is what failed.
func (rt *Router) Failure(operation string, err error) *problem.Problem {
	if known, ok := errors.AsType[*problem.Problem](err); ok {
		return known
	}
	var refusal *schema.Refusal
	switch {
	case errors.Is(err, cards.ErrChanged):
		return problem.New(http.StatusConflict, "changed", "%v", err)
	case errors.As(err, &refusal):
		return problem.Invalid(refusal.Reason, refusal.Faults...)
	case errors.Is(err, keyring.ErrEarly), errors.Is(err, keyring.ErrLate):
		rt.Log.Error("nothing is signed: the newest key is not valid yet, or not any more; see plumbline keys show", "operation", operation, "error", err)
		return problem.Unavailable(time.Minute, "nothing is signed here for now: %v; repeat the request then", err)
	case errors.Is(err, stream.ErrUnavailable):
		return problem.Unavailable(stream.RetryAfter(err), "%v, %s: repeat the request later", stream.ErrUnavailable, stream.Reason(err))
	case errors.Is(err, stream.ErrClosed):
		return problem.Unavailable(0, "the service is stopping: send the request to another instance, or later")
	}
	rt.Log.Error("request failed", "operation", operation, "error", err)
	return problem.New(http.StatusInternalServerError, "internal", "internal error; see the service log")
}
