package ingest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/obs"
	problems "github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

const stageName = "ingest"

// Sessions is where requests for the end of a session are published (stream.Client).
type Sessions interface {
	StreamState(ctx context.Context, name string) (stream.State, error)
	RequestEnd(ctx context.Context, partition int, end wire.EndRequest) error
}

// Ledger is where events of the operator's ledger are published (stream.Client).
type Ledger interface {
	AppendLedger(ctx context.Context, events ...ledger.Event) error
}

// server answers publishers. The last group of members is set once the broker was reached, before
// the first publisher is admitted.
type server struct {
	env *service.Env
	cfg *Config
	files
	trust    trust
	random   io.Reader // source of keys and nonces; nil: the system's
	exposed  error     // why handshake messages may not travel over HTTP; nil: they may
	memory   *memory
	pace     pace // for bodies
	desks    desks
	stored   *stored // memory for warnings about conflicts
	metrics  *metrics
	connect  func(context.Context) (*stream.Client, error)
	commits  stream.CommitConfig
	stopping func() bool

	traces   Publisher
	cards    *cards.Registry
	sessions Sessions
	ledger   Ledger
	letters  *letters
	marks    Marks

	messages      *messages.Service
	messageBucket messages.Movable
	microKey      *keystore.Live

	handshakeKey *keystore.Live
	handshakes   *handshake.Service // nil if link reports why they cannot be served
	link         func() error       // whether the broker's connection is secure enough (stream.Client.Secure)
}

// addresses is the answer to a publisher with an unknown address.
const addresses = "publish traces to POST /v1/traces, cards to PUT /v1/cards/{card_id}; docs/PUBLISH.md lists every address"

// routes returns the routes for publishers, each with its scope.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	obs.Register(mux, s.env.Health, s.env.Gatherer) // handles the other methods of these paths
	s.route(mux, "POST /v1/traces", auth.TracesWrite, s.postTraces)
	s.route(mux, "PUT /v1/cards/{card_id}", auth.CardsWrite, s.putCard)
	s.route(mux, "POST /v1/cards/{card_id}/revoke", auth.CardsWrite, s.revokeCard)
	s.route(mux, "GET /v1/cards/{card_id}", auth.CardsRead, s.getCard)
	s.route(mux, "GET /v1/cards", auth.CardsRead, s.listCards)
	s.public(mux, "GET /.well-known/alignment-card.json", s.getCurrentCard)
	s.public(mux, "GET /.well-known/alignment-card-revocations.json", s.getRevocations)
	if len(s.agentCards) > 0 {
		s.public(mux, "GET /.well-known/agent-card.json", s.getAgentCard)
	}
	s.route(mux, "POST /v1/sessions/end", auth.SessionsWrite, s.endSession)
	s.route(mux, "POST /v1/handshake/{agent}", auth.Handshake, s.postHandshake)
	s.public(mux, "GET /v1/handshake/keys", s.getHandshakeKeys)
	s.route(mux, "POST /v1/messages", auth.MessagesWrite, s.postMessage)
	s.route(mux, "POST /v1/messages/verify", auth.Runtime, s.verifyMessage)
	s.route(mux, "POST /v1/tool-calls", auth.Runtime, s.postToolCall)
	s.route(mux, "POST /v1/tool-results", auth.Runtime, s.postToolResult)
	s.route(mux, "POST /v1/tool-results/verify", auth.Runtime, s.verifyToolResult)
	s.route(mux, "POST /v1/micro", auth.MicroWrite, s.postMicro)
	s.public(mux, "POST /v1/micro/verify", s.verifyMicro)
	s.public(mux, "GET /v1/micro/keys", s.getMicroKeys)
	s.route(mux, "POST /v1/dead-letters/marks", auth.LettersWrite, s.markLetters)
	s.public(mux, "GET /v1/schemas", listSchemas)
	s.public(mux, "GET /v1/schemas/{name}", getSchema)
	return problems.Routed(mux, addresses)
}

// handler answers an authorised request and returns the status code of its answer.
type handler func(w http.ResponseWriter, r *http.Request, grant auth.Grant) int

func (s *server) route(mux *http.ServeMux, pattern string, scope auth.Scope, handle handler) {
	s.public(mux, pattern, func(w http.ResponseWriter, r *http.Request) int {
		grant, p := s.authorize(w, r, scope)
		if p != nil {
			return p.write(w)
		}
		if !s.keeper.LetsAnyoneIn() {
			r = r.WithContext(context.WithValue(r.Context(), whoKey{}, grant.Name))
		}
		return handle(w, r, grant)
	})
}

// public adds a route that needs no token.
func (s *server) public(mux *http.ServeMux, pattern string, handle func(http.ResponseWriter, *http.Request) int) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		code := handle(w, r)
		s.metrics.requests.WithLabelValues(pattern, strconv.Itoa(code)).Observe(time.Since(began).Seconds())
	})
}

func (s *server) authorize(w http.ResponseWriter, r *http.Request, scope auth.Scope) (auth.Grant, *problem) {
	token, given := bearer(r)
	grant, err := s.keeper.Authorize(token, scope)
	switch {
	case err == nil:
		return grant, nil
	case errors.Is(err, auth.ErrScope):
		return grant, problemf(http.StatusForbidden, "scope",
			"this token does not have the scope %s: use one that has, or have the scope added to it", scope)
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	if !given {
		return grant, problemf(http.StatusUnauthorized, "token", "no token: send the header Authorization: Bearer TOKEN")
	}
	return grant, problemf(http.StatusUnauthorized, "token", "this token is not known here: its hash must be in the service's token file")
}

// bearer returns the request's token (RFC 6750, section 2.1).
func bearer(r *http.Request) (token string, given bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(token), true
}

// postTraces admits and commits traces, and answers with the outcome of each.
func (s *server) postTraces(w http.ResponseWriter, r *http.Request, grant auth.Grant) int {
	kind, p := mediaType(r, typesOfTraces...)
	if p != nil {
		return p.write(w)
	}
	gzipped, p := packed(w, r)
	if p != nil {
		return p.write(w)
	}
	held := s.memory.hold(who(r))
	defer held.release()
	if p := held.grow(r.Context(), int64(windowSizes[0])); p != nil {
		return p.write(w)
	}
	desk := s.desks.take()
	body, p := s.bodyReader(w, r, gzipped, &desk.unzip, s.cfg.MaxBodyBytes)
	if p != nil {
		return p.write(w)
	}
	u := upload{server: s, desk: desk, grant: grant}
	u.lines = lines{body: body, whole: slices.Contains(typesOfTrace, kind), window: desk.windows[0]}
	u.lines.larger = func(wait bool) ([]byte, error) { return u.larger(r.Context(), held, wait) }
	code := u.reply(w, u.run(r.Context()))
	if !u.suspect {
		s.desks.giveBack(desk)
	}
	return code
}
