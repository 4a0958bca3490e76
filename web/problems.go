package web

import (
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
	wrong := missing{"list of problems for these filters"}
	if max(len(p.AgentID), len(p.Type)) > schema.MaxIDBytes {
		return q, wrong
	}
	q = rows.ProblemQuery{AgentID: p.AgentID, Type: p.Type, Limit: problemsOfPage + 1, To: schema.LatestTime} // a clock may be ahead, which is a problem itself
	if q.Least = slices.Index(severities, p.Severity); q.Least < 0 {
		return q, wrong
	}
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
	if p.From != "" {
		if q.From, err = time.Parse(time.RFC3339, p.From); err != nil {
			return q, wrong
		}
	}
	if p.To != "" {
		if p.From == "" { // the form has a span, or both times
			p.Span, p.From = "", q.From.UTC().Format(time.RFC3339)
		}
		if q.To, err = time.Parse(time.RFC3339, p.To); err != nil {
			return q, wrong
		}
	}
	if q.From.Before(schema.EarliestTime) || q.To.After(schema.LatestTime) || !q.From.Before(q.To) {
		return q, wrong
	}
	p.Filtered = p.AgentID+p.Type+p.Severity != ""
	if after != "" {
		if q.After, err = parseListed(after); err != nil {
			return q, wrong
		}
	}
	return q, nil
}

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
