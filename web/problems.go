package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

const problemsOfPage = 100

// problemSpans are the times that the page offers, counted back from now.
var problemSpans = []struct {
	Name string
	Span time.Duration
}{{"1h", time.Hour}, {"24h", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"30d", 30 * 24 * time.Hour}}

// severities are in the order of rows.ProblemQuery.Least.
var severities = []string{"", "LOW", "MEDIUM", "HIGH", "CRITICAL"}

// problemsPage is the data of problems.html.
type problemsPage struct {
	AgentID, Type, Severity, Span string
	From, To                      string // instead of a span: RFC 3339

	Severities, Spans []string
	Types             []string // that have a meaning
	Problems          []rows.ListedProblem
	Filtered          bool
	First             bool
	FirstPage, Next   string // addresses
}

// problems answers with what is wrong, the newest first, filtered by what the address says.
func (s *server) problems(v *visit) (page, error) {
	query := v.URL.Query()
	p := &problemsPage{AgentID: query.Get("agent"), Type: query.Get("type"), Severity: query.Get("severity"), Span: query.Get("span"),
		From: query.Get("from"), To: query.Get("to"), Severities: severities[1:], First: query.Get("after") == ""}
	for kind := range readMeanings() {
		if kind == strings.ToUpper(kind) {
			p.Types = append(p.Types, kind)
		}
	}
	slices.Sort(p.Types)
	q, err := s.problemQuery(p, query.Get("after"))
	if err != nil {
		return page{}, err
	}
	if p.AgentID != "" && !v.Grant.SpeaksFor(p.AgentID) {
		return page{}, missing{"agent of this name"}
	}
	q.Agents = v.agents()
	if p.Problems, err = s.rows.ListProblems(v.Context(), q); err != nil {
		return page{}, err
	}
	p.FirstPage = p.address()
	if len(p.Problems) > problemsOfPage {
		p.Problems = p.Problems[:problemsOfPage]
		last := p.Problems[problemsOfPage-1]
		p.Next = p.address() + listedAfter(last.Time, last.Place)
	}
	return page{file: "problems.html", title: "Problems", data: p}, nil
}

// problemQuery returns the query of the filters, and completes them.
func (s *server) problemQuery(p *problemsPage, after string) (q rows.ProblemQuery, err error) {
	switch {
	case len(p.AgentID) > schema.MaxIDBytes:
		return q, longID("agent", p.AgentID)
	case len(p.Type) > schema.MaxIDBytes:
		return q, wrongParameter{"type", p.Type, "a type of problem, such as UNBOUNDED_ACTION"}
	}
	q = rows.ProblemQuery{AgentID: p.AgentID, Type: p.Type, Limit: problemsOfPage + 1, To: schema.LatestTime} // a clock may be ahead, which is a problem itself
	if q.Least = slices.Index(severities, p.Severity); q.Least < 0 {
		return q, wrongParameter{"severity", p.Severity, oneOf(p.Severities)}
	}
	if after != "" {
		if q.After, err = parseListed(after); err != nil {
			return q, wrongPlace(after)
		}
	}
	p.Filtered = p.AgentID+p.Type+p.Severity != ""
	err = s.problemTimes(p, &q)
	return q, err
}

// problemTimes sets the times of a query: a span that ends now, or those of the address.
func (s *server) problemTimes(p *problemsPage, q *rows.ProblemQuery) (err error) {
	if p.From != "" {
		p.Span = "" // the form has the one or the other
	} else if p.Span == "" {
		p.Span = problemSpans[1].Name
	}
	for _, offered := range problemSpans {
		p.Spans = append(p.Spans, offered.Name)
		if offered.Name == p.Span {
			q.From = s.now().Add(-offered.Span)
		}
	}
	if q.From.IsZero() && p.From == "" {
		return wrongParameter{"span", p.Span, oneOf(p.Spans)}
	}
	if p.From != "" {
		if q.From, err = parseTime("from", p.From); err != nil {
			return err
		}
	}
	if p.To != "" {
		if p.From == "" { // the form has a span, or both times
			p.Span, p.From = "", q.From.UTC().Format(time.RFC3339)
		}
		if q.To, err = parseTime("to", p.To); err != nil {
			return err
		}
	}
	if !q.From.Before(q.To) {
		return wrongParameter{"to", p.To, "a time after that of from, which is " + p.From}
	}
	return nil
}

// parseTime returns the time of a parameter.
func parseTime(name, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Before(schema.EarliestTime) || at.After(schema.LatestTime) {
		return at, wrongParameter{name, text, fmt.Sprintf("a time of RFC 3339 from %d to %d, such as 2026-01-31T18:00:00Z", schema.EarliestTime.Year(), schema.LatestTime.Year())}
	}
	return at, nil
}

// oneOf names what a parameter accepts.
func oneOf(names []string) string { return "one of " + strings.Join(names, ", ") }

// listedAfter returns the parameter of an address for what comes after a place in a list, and parseListed the place.
func listedAfter(at time.Time, place uint64) string {
	return "&after=" + strconv.FormatInt(at.UnixNano(), 10) + "." + strconv.FormatUint(place, 10)
}

func parseListed(after string) (*rows.ProblemPlace, error) {
	at, place, _ := strings.Cut(after, ".")
	nanos, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(place, 10, 64)
	return &rows.ProblemPlace{At: nanos, Place: number}, err
}

// address returns the address of the first page with these filters, which may be shared.
func (p *problemsPage) address() string {
	values := url.Values{}
	for name, value := range map[string]string{"agent": p.AgentID, "type": p.Type, "severity": p.Severity, "span": p.Span, "from": p.From, "to": p.To} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/problems?" + values.Encode()
}
