package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/reading"
	"github.com/plumbline/plumbline/schema"
)

var (
	errForged = errors.New("the form is not of this session")
	errNoPage = errors.New("there is no such page")
)

// missing is the error for a thing that does not exist, or that the token does not cover: an answer never
// says which of the two.
type missing struct{ what string }

func (m missing) Error() string { return "there is no " + m.what }

// wrongParameter is the error for a parameter of an address or a form that has no meaning, with what is accepted.
type wrongParameter struct{ name, value, accepted string }

func (w wrongParameter) Error() string { return w.name + " is not " + w.accepted }

// longID is the error for an id that is longer than any.
func longID(name, value string) wrongParameter {
	return wrongParameter{name, value, fmt.Sprintf("an id of %d bytes at most", schema.MaxIDBytes)}
}

// wrongPlace is the error for a page of a list that none of its links leads to.
func wrongPlace(value string) wrongParameter {
	return wrongParameter{"after", value, "a place in the list, as the link to the next page has it"}
}

// errorPage is the data of error.html: what happened, and what to do.
type errorPage struct{ What, Do string }

// failure returns the page for an error. It logs what concerns only the operator.
func (s *server) failure(ctx context.Context, route string, err error) page {
	said := func(code int, title, what, do string) page {
		return page{file: "error.html", title: title, code: code, data: errorPage{what, do}}
	}
	absent, isAbsent := errors.AsType[missing](err)
	wrong, isWrong := errors.AsType[wrongParameter](err)
	refusal, isRefused := errors.AsType[refused](err)
	_, isFile := errors.AsType[*fs.PathError](err)
	altered, isAltered := errors.AsType[*reading.Altered](err)
	switch {
	case errors.Is(err, errNoPage):
		return said(http.StatusNotFound, "No such page", "There is no page at this address.", "Choose one of the pages above.")
	case isAbsent:
		return said(http.StatusNotFound, "Not found", s.absence(absent), "Check the address, or search for it.")
	case isWrong:
		return said(http.StatusBadRequest, "Wrong parameter", fmt.Sprintf("The parameter %s is %q.", wrong.name, schema.Clip(wrong.value, 100)), "It takes "+wrong.accepted+".")
	case errors.Is(err, fs.ErrNotExist):
		return said(http.StatusNotFound, "Not here", "This console cannot read the file.", "Set bundle_dir of the console to a directory that has it, or fetch it from the exporter's bundle directory.")
	case isFile:
		s.log.Error("a file of the console could not be read", "route", route, "error", err)
		return said(http.StatusInternalServerError, "The file cannot be read", "This console cannot read the file; its log says why.", "The operator makes the file readable for the console, or fetches it from the exporter's bundle directory.")
	case isAltered:
		return said(http.StatusConflict, "Changed", "The bundle is not served: "+altered.Error()+".", "plumbline check --deep says more.")
	case errors.Is(err, errBusy):
		return said(http.StatusServiceUnavailable, "Too many watch", fmt.Sprintf("%d browsers watch already.", tailMost), "Close one of them, and load the page again.")
	case errors.Is(err, errLooksOnly):
		return said(http.StatusForbidden, "Not done", "This console only looks.", "The operator sets ingest_url of the console, or use plumbline on the command line.")
	case isRefused:
		return failedAct(refusal.error)
	case errors.Is(err, errForged):
		return said(http.StatusForbidden, "Not done", "This form was not sent from a page of your session, so nothing was changed.", "Go back, load the page again, and repeat it.")
	case errors.Is(err, auth.ErrScope):
		return said(http.StatusForbidden, "Not permitted", "This page is not for your token: "+err.Error()+".", "Log in with a token that has the scope, or have it added to yours.")
	case database.TooBroad(err):
		return said(http.StatusServiceUnavailable, "Too much to read", "The database would read too many rows, or use too much memory, for this page.", "Choose a shorter time or a single agent. The operator can raise query_rows of the console.")
	case ctx.Err() != nil:
		return said(http.StatusServiceUnavailable, "Interrupted", "The request ended before the database answered.", "Load the page again.")
	case database.TimedOut(err):
		return said(http.StatusServiceUnavailable, "The database is slow", fmt.Sprintf("The database did not answer within %s.", s.cfg.QueryTime.Round(time.Second)), "Load the page again later, or choose a shorter time.")
	}
	s.log.Error("a page of the console could not be read", "route", route, "error", err)
	return said(http.StatusServiceUnavailable, "The database cannot be read",
		"The console cannot read the database now. Publishing is not affected: traces wait in the broker until they are stored.",
		"Load the page again in a moment. If it stays so, the log of the console says why, and plumbline check examines the database.")
}

// absence says that a thing does not exist, or that a token, where one is needed, does not cover it.
func (s *server) absence(m missing) string {
	if s.keeper.LetsAnyoneIn() {
		return "There is no " + m.what + "."
	}
	return "There is no " + m.what + ", or your token does not cover it."
}
