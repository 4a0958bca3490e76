package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/web/rows"
)

const (
	maxHeaderBytes = 32 << 10
	maxFormBytes   = 64 << 10
	queryMemory    = 512 << 20
	queryThreads   = 2
	connections    = 8
)

// server answers the browsers of one console.
type server struct {
	cfg       *Config
	env       *service.Env
	log       *slog.Logger
	keeper    *auth.Keeper
	rows      *rows.Reader
	letters   *rows.Reader // may read the bytes of dead letters; nil: there is none
	ingest    *http.Client // to which people's acts are sent
	operators *http.Client // for the services' operators' interfaces
	resolve   func(ctx context.Context, network, host string) ([]netip.Addr, error)
	sessions  *sessions
	everybody *session // of all requests, where no token is needed
	pages     map[string]*template.Template
	assets    map[string]asset
	viewer    bundleViewer
	mux       *http.ServeMux
	took      *prometheus.HistogramVec // seconds, by route and code
	fleets    kept[fleetFigures]
	services  kept[serviceState] // for every visitor the same
	chains    chan struct{}      // has an element for each bundle that is being verified
	tails     chan struct{}      // has an element for each browser that watches
	now       func() time.Time
	textTime  time.Duration
}

// place is an entry of the navigation.
type place struct {
	Name, Address string
	Key           string // pressed after g
}

// Serve runs the console until ctx ends.
func Serve(ctx context.Context, cfg *Config, env *service.Env) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for browsers: %w", err)
	}
	return ServeOn(ctx, listener, cfg, env)
}

// ServeOn does the same on a listener, which it closes.
func ServeOn(ctx context.Context, listener net.Listener, cfg *Config, env *service.Env) error {
	keeper, secure, faults := cfg.readFiles(listener.Addr().String(), env.Log)
	if err := faults.Err(); err != nil {
		return errors.Join(err, listener.Close())
	}
	s, err := newServer(cfg, env, keeper)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	limit := admission.New("console", admission.Operators(), env.Log, env.Metrics)
	work, stop := env.Drain(ctx)
	defer stop()
	server := &http.Server{
		Handler:           s.handler(),
		TLSConfig:         secure,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      cfg.QueryTime + 30*time.Second, // a page that streams extends it
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // a page in progress may end: it can be loaded again
	}
	counting, stopCounting := context.WithCancel(ctx)
	var counted sync.WaitGroup
	counted.Go(func() { s.keepFigures(counting) })
	env.Started()
	err = limit.Serve(ctx, work, server, listener)
	stopCounting()
	counted.Wait()
	return errors.Join(err, s.close())
}

// close ends the connections.
func (s *server) close() error {
	s.ingest.CloseIdleConnections()
	s.operators.CloseIdleConnections()
	err := s.rows.Close()
	if s.letters != nil {
		err = errors.Join(err, s.letters.Close())
	}
	return err
}

// newServer returns a console that answers nothing yet.
func newServer(cfg *Config, env *service.Env, keeper *auth.Keeper) (*server, error) {
	s := &server{cfg: cfg, env: env, log: env.Log, keeper: keeper, sessions: newSessions(cfg.SessionTime), now: time.Now, textTime: textTime,
		resolve: net.DefaultResolver.LookupNetIP, everybody: &session{form: rand.Text()}, chains: make(chan struct{}, chainAtOnce), tails: make(chan struct{}, tailMost),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "plumbline_console_request_seconds", Help: "Duration of the console's requests, by route and status code.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}, []string{"route", "code"})}
	env.Metrics.MustRegister(s.took)
	var err error
	if s.assets, err = readAssets(); err != nil {
		return nil, err
	}
	if s.pages, err = readTemplates(s.functions()); err != nil {
		return nil, err
	}
	if s.viewer, err = readViewer(); err != nil {
		return nil, err
	}
	trust, err := transport.Trust(cfg.IngestCAFile)
	if err != nil {
		return nil, err
	}
	s.ingest = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, MaxIdleConnsPerHost: connections}, Timeout: actTime}
	s.operators = &http.Client{Transport: &http.Transport{TLSClientConfig: trust, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if s.rows, err = s.open(cfg.ClickHouse.DSN); err == nil && cfg.LettersDSN != "" {
		s.letters, err = s.open(cfg.LettersDSN)
	}
	return s, err
}

// open returns the reader of a database user.
func (s *server) open(dsn string) (*rows.Reader, error) {
	return rows.Open(database.Config{
		DSN: dsn, Cluster: s.cfg.ClickHouse.Cluster, Tenant: s.cfg.Tenant, Stage: "console",
		QueryTimeout: s.cfg.QueryTime, DialTimeout: 2 * time.Second, Connections: connections,
		Limits: database.Limits{Rows: s.cfg.QueryRows, Memory: queryMemory, Threads: queryThreads},
	})
}

// visit is one request that was admitted, and what its answer needs.
type visit struct {
	*http.Request
	Grant   auth.Grant
	session *session
}

// agents returns the agents that the visitor may see.
func (v *visit) agents() store.Agents { return agentsOf(v.Grant) }

// agentsOf returns the agents that a grant covers.
func agentsOf(grant auth.Grant) store.Agents {
	ids, prefixes := grant.Covers()
	return store.Agents{IDs: ids, Prefixes: prefixes}
}

// everything reports whether the visitor may see every agent, and so what concerns all of them.
func (v *visit) everything() bool {
	_, prefixes := v.Grant.Covers()
	return slices.Contains(prefixes, "")
}

// permits reports whether a visitor's token has another scope, too.
func (s *server) permits(v *visit, scope auth.Scope) bool {
	_, err := s.keeper.AuthorizeHash(v.session.token, scope)
	return err == nil
}

// page is an answer: a template and its data, or what serves the whole answer. The zero code is 200.
type page struct {
	serve func(http.ResponseWriter, *http.Request) error // an error means that nothing was written

	file  string
	title string
	code  int
	again bool // the browser loads it again after a second
	data  any
}

// handler answers every request of the console.
func (s *server) handler() http.Handler {
	s.mux = http.NewServeMux()
	for _, a := range s.assets {
		s.mux.HandleFunc("GET "+a.address, a.serve)
	}
	s.mux.HandleFunc("GET /login", s.askToken)
	s.mux.HandleFunc("POST /login", s.login)
	s.mux.HandleFunc("POST /logout", s.logout)
	s.routes()
	s.page("GET /", auth.TracesRead, func(*visit) (page, error) { return page{}, errNoPage })
	return s.guard(http.NewCrossOriginProtection().Handler(s.mux))
}

// navigation is above every page.
var navigation = []place{{"Fleet", "/", "f"}, {"Live", "/tail", "l"}, {"Problems", "/problems", "p"}, {"Search", "/search", "s"}, {"Dead letters", "/deadletters", "d"}, {"Verify", "/verify", "v"}}

// routes adds the pages.
func (s *server) routes() {
	s.page("GET /{$}", auth.TracesRead, s.fleet)
	s.page("GET /agent", auth.TracesRead, s.agent)
	s.page("GET /tail", auth.TracesRead, s.tail)
	s.page("GET /tail/events", auth.TracesRead, s.tailEvents)
	s.page("GET /search", auth.TracesRead, s.search)
	s.page("GET /problems", auth.TracesRead, s.problems)
	s.page("GET /session", auth.TracesRead, s.oneSession)
	s.page("POST /session/end", auth.SessionsWrite, s.endSession)
	s.page("GET /deadletters", auth.TracesRead, s.deadLetters)
	s.page("GET /deadletter", auth.TracesRead, s.deadLetter)
	s.page("POST /deadletters", auth.LettersWrite, s.handleLetters)
	s.page("GET /chain", auth.BundlesRead, s.chain)
	s.page("GET /bundle/{sha256}", auth.BundlesRead, s.bundle)
	s.page("GET /verify", auth.TracesRead, s.verify)
}

// guard sets the headers of every answer, and refuses requests that come by another name of this machine.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "private, no-store")
		if s.keeper.LetsAnyoneIn() && !transport.Loopback(r.Host) {
			// A page of another site whose name was pointed at this machine could read everything otherwise.
			http.Error(w, "This console needs no token, so it answers on 127.0.0.1 and localhost only: open it under one of these names, or give it a token file.", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		next.ServeHTTP(w, r)
	})
}

// page adds a route that answers with a page, for tokens with a scope. A POST must come from a form of the
// session.
func (s *server) page(pattern string, scope auth.Scope, answer func(*visit) (page, error)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		began := s.now()
		v, err := s.admit(r, scope)
		if errors.Is(err, errLogin) {
			s.toLogin(w, r)
			return
		}
		var p page
		if err == nil {
			p, err = answer(v)
		}
		if err == nil && p.serve != nil {
			err = p.serve(w, r)
			if err == nil {
				return
			}
		}
		if to, ok := errors.AsType[redirect](err); ok {
			http.Redirect(w, r, to.to, http.StatusSeeOther)
			return
		}
		if err != nil {
			p = s.failure(r.Context(), pattern, err)
		}
		s.write(w, r, v, p)
		s.took.WithLabelValues(pattern, strconv.Itoa(max(p.code, http.StatusOK))).Observe(s.now().Sub(began).Seconds())
	})
}

// redirect is what a handler returns to send the browser to another page, after a POST for instance.
type redirect struct{ to string }

func (r redirect) Error() string { return "redirect to " + r.to }

// errLogin means that the visitor has to log in first.
var errLogin = errors.New("log in first")

// admit returns the visit of a request whose session permits a scope. Also with another error than errLogin
// there is a visit, for the frame of the page that says what is wrong.
func (s *server) admit(r *http.Request, scope auth.Scope) (*visit, error) {
	v := &visit{Request: r, session: s.everybody}
	var err error
	if s.keeper.LetsAnyoneIn() {
		v.Grant, err = s.keeper.Authorize("", scope)
	} else {
		cookie, missing := r.Cookie(cookieName(r))
		if missing != nil {
			return v, errLogin
		}
		if v.session = s.sessions.of(cookie.Value); v.session == nil {
			return v, errLogin
		}
		v.Grant, err = s.keeper.AuthorizeHash(v.session.token, scope)
		if errors.Is(err, auth.ErrUnknownToken) {
			s.sessions.end(cookie.Value)
			return v, errLogin
		}
	}
	if err == nil && r.Method == http.MethodPost && !v.session.genuine(r.PostFormValue("form")) {
		err = errForged
	}
	return v, err
}

// frame is the data of frame.html.
type frame struct {
	Title    string
	Nav      []place
	Address  string // of the page
	User     string // name of the token; empty where none is needed
	Form     string // value of the hidden input "form" of every form
	LoggedIn bool
	Query    string // of the search
	Version  string
	Data     any
}

// write renders a page into memory first, so a fault of a template is an answer of its own.
func (s *server) write(w http.ResponseWriter, r *http.Request, v *visit, p page) {
	f := frame{Title: p.title, Nav: navigation, Address: r.URL.Path, Query: r.URL.Query().Get("q"), Version: s.env.Version, Data: p.data}
	if v != nil && v.session != nil {
		f.Form, f.LoggedIn = v.session.form, true
		if !s.keeper.LetsAnyoneIn() {
			f.User = v.Grant.Name
		}
	}
	var text bytes.Buffer
	if err := s.pages[p.file].Execute(&text, f); err != nil {
		s.log.Error("a page of the console could not be made", "page", p.file, "error", err)
		http.Error(w, "This page could not be made; the log of the console says why.", http.StatusInternalServerError)
		return
	}
	if p.again {
		w.Header().Set("Refresh", "1")
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(max(p.code, http.StatusOK))
	_, _ = text.WriteTo(w) // an error means that the browser is gone
}

// askToken answers with the login page.
func (s *server) askToken(w http.ResponseWriter, r *http.Request) {
	if s.keeper.LetsAnyoneIn() {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	s.write(w, r, nil, page{file: "login.html", title: "Log in", data: loginPage{Next: local(r.URL.Query().Get("next"))}})
}

// loginPage is the data of login.html.
type loginPage struct{ Next, Fault string }

// login begins a session for a token that may read.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	next := local(r.PostFormValue("next"))
	token := r.PostFormValue("token")
	_, err := s.keeper.Authorize(token, auth.TracesRead)
	if err != nil {
		fault := "This token is unknown, has expired or was revoked. plumbline token ls lists the tokens."
		if errors.Is(err, auth.ErrScope) {
			fault = "This token does not have the scope traces:read. Make one with: plumbline token new --name NAME --scope traces:read,bundles:read --agent '*'"
		}
		s.write(w, r, nil, page{file: "login.html", title: "Log in", code: http.StatusForbidden, data: loginPage{next, fault}})
		return
	}
	http.SetCookie(w, s.sessions.cookie(r, s.sessions.begin(token)))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// logout ends the session. A form of another session ends nothing.
func (s *server) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		if one := s.sessions.of(cookie.Value); one != nil && one.genuine(r.PostFormValue("form")) {
			s.sessions.end(cookie.Value)
			http.SetCookie(w, s.sessions.cookie(r, ""))
		}
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// toLogin sends a visitor without a session to the login page. A browser that follows a link of another site
// does not send the cookie, although it has one: it is asked to load the page again, which counts as this
// site's own request.
func (s *server) toLogin(w http.ResponseWriter, r *http.Request) {
	if site := r.Header.Get("Sec-Fetch-Site"); r.Method == http.MethodGet && (site == "cross-site" || site == "same-site") {
		w.Header().Set("Refresh", "0; url="+local(r.URL.RequestURI()))
		s.write(w, r, nil, page{file: "error.html", title: "One moment", data: errorPage{What: "Opening the page…"}})
		return
	}
	to := "/login"
	if r.Method == http.MethodGet && r.URL.RequestURI() != "/" {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// only returns one agent as a selection.
func only(agent string) store.Agents { return store.Agents{IDs: []string{agent}} }
