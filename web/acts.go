package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/events"
)

const (
	actTime  = 10 * time.Second // of one request to ingest
	patience = 3 * time.Second  // how long a request is repeated
)

// errLooksOnly means that the console has no ingest.
var errLooksOnly = errors.New("this console only looks")

// publisher returns the client of ingest with the visitor's own token: ingest decides what it permits, and writes the
// operator's ledger. The visitor may also read, since an act is about something that is shown.
func (s *server) publisher(v *visit) (*client.Publisher, error) {
	if s.cfg.IngestURL == "" {
		return nil, errLooksOnly
	}
	p := &client.Publisher{URL: s.cfg.IngestURL, HTTP: s.ingest, Patience: patience, From: events.FromConsole}
	if s.keeper.LetsAnyoneIn() {
		return p, nil
	}
	if _, err := s.keeper.AuthorizeHash(v.session.token, auth.TracesRead); err != nil {
		return nil, err
	}
	cookie, err := v.Cookie(cookieName(v.Request))
	if err != nil {
		return nil, errLogin
	}
	p.Token, err = v.session.tokenOf(cookie.Value)
	return p, err
}

// mayAct reports whether a visitor's token has the scope of an act, and the console an ingest for it.
func (s *server) mayAct(v *visit, scope auth.Scope) bool {
	return s.cfg.IngestURL != "" && s.permits(v, scope)
}

// refused is the error of an act that ingest refused, or that did not reach it.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// failedAct returns the page for an act that was not done.
func failedAct(err error) page {
	p := page{file: "error.html", title: "Not done", code: http.StatusServiceUnavailable,
		data: errorPage{fmt.Sprintf("Ingest gave no answer: %v. It may have done it, or not.", err), "Look at the page again before you repeat it. Repeating it is safe."}}
	problem, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return p
	}
	p.data = errorPage{"Ingest refused it: " + problem.Message + ".", ""}
	if problem.Code == http.StatusUnauthorized || problem.Code == http.StatusForbidden {
		p.code = http.StatusForbidden
	}
	return p
}

// donePage is the data of done.html: what was asked for, and where to look.
type donePage struct {
	Said    string
	Results []result
	Back    string // address
	Where   string // its name
}

// result is what became of one of several things.
type result struct {
	Address, Name string
	Done          bool
	Said          string
}

// endSession asks ingest to seal a session.
func (s *server) endSession(v *visit) (page, error) {
	agent, session, err := v.namedBy(v.PostFormValue)
	if err != nil {
		return page{}, err
	}
	if err := s.readExtent(v.Context(), &sessionPage{AgentID: agent, SessionID: session}); err != nil {
		return page{}, err // there is no such session
	}
	ingest, err := s.publisher(v)
	if err != nil {
		return page{}, err
	}
	ctx, cancel := context.WithTimeout(v.Context(), actTime)
	defer cancel()
	if err := ingest.EndSession(ctx, agent, session); err != nil {
		return page{}, refused{err}
	}
	return page{file: "done.html", title: "End of a session", data: donePage{
		Said: "The end of session " + session + " was asked for, and is in the operator's ledger. The exporter seals the traces that ingest had accepted by now as soon as they are stored, within seconds if nothing waits.",
		Back: sessionAddress(agent, session, ""), Where: "The session"}}, nil
}
