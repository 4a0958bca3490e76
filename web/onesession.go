package web

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

const (
	decisionsOfPage = 50
	partsOfPage     = 50
)

// sessionPage is the data of session.html.
type sessionPage struct {
	AgentID, SessionID string

	rows.Extent
	State      string // open, sealed or held
	HeldReason string
	Unsealed   uint64 // stored traces that are in no bundle yet
	Parts      []rows.Part
	MayBundles bool
	MayEnd     bool
	Trace      string // that the address names
	TraceGone  bool   // and that no longer is stored
	Decisions  []decision
	First      bool   // the page begins with the first trace
	Next       string // address of the next page; empty: this is the last one
}

// decision is a trace with its verdict.
type decision struct {
	rows.Decision
	Verdict *rows.Verdict // nil: not judged yet
	Options []option
	Named   bool // by the address
	NewDay  bool // in UTC, other than that of the decision before, or of the session's first
}

// option is an alternative that the agent considered.
type option struct {
	ID, Text, Flags string
	Score           *float64
	Selected        bool
}

// problem is a violation, a finding or a warning.
type problem struct{ Type, Severity, Text, Field string }

// Problems returns the violations, then the findings.
func (d *decision) Problems() (all []problem) {
	if v := d.Verdict; v != nil {
		for i := range v.ViolationTypes {
			all = append(all, problem{v.ViolationTypes[i], v.ViolationSeverities[i], v.ViolationDescriptions[i], v.ViolationFields[i]})
		}
		for i := range v.FindingTypes {
			all = append(all, problem{v.FindingTypes[i], v.FindingSeverities[i], v.FindingDescriptions[i], v.FindingFields[i]})
		}
	}
	return all
}

// Warnings returns what is no fault of the agent.
func (d *decision) Warnings() (all []problem) {
	if v := d.Verdict; v != nil {
		for i := range v.WarningTypes {
			all = append(all, problem{Type: v.WarningTypes[i], Text: v.WarningDescriptions[i]})
		}
	}
	return all
}

// sessionAddress returns the address of a session's page. A trace, if there is one, is where it begins.
func sessionAddress(agent, session, trace string) string {
	address := "/session?" + url.Values{"agent": {agent}, "id": {session}}.Encode()
	if trace != "" {
		address += "&trace=" + url.QueryEscape(trace) + "#named"
	}
	return address
}

// named returns the session that an address names, and an error unless the token covers its agent.
func (v *visit) named() (agent, session string, err error) { return v.namedBy(v.URL.Query().Get) }

// namedBy does the same where the names are elsewhere, in a form for instance.
func (v *visit) namedBy(get func(string) string) (agent, session string, err error) {
	agent, session = get("agent"), get("id")
	if agent == "" || session == "" || max(len(agent), len(session)) > schema.MaxIDBytes || !v.Grant.SpeaksFor(agent) {
		return "", "", missing{"session of this name"}
	}
	return agent, session, nil
}

// oneSession answers with what happened in a session, and whether that is sealed.
func (s *server) oneSession(v *visit) (page, error) {
	agent, session, err := v.named()
	if err != nil {
		return page{}, err
	}
	p := sessionPage{AgentID: agent, SessionID: session, MayBundles: s.permits(v, auth.BundlesRead), MayEnd: s.mayAct(v, auth.SessionsWrite), Trace: v.URL.Query().Get("trace")}
	if len(p.Trace) > schema.MaxIDBytes {
		return page{}, longID("trace", p.Trace)
	}
	if err := s.readExtent(v.Context(), &p); err != nil {
		return page{}, err
	}
	if p.Traces > 0 {
		if err := s.readDecisions(v, &p); err != nil {
			return page{}, err
		}
	}
	return page{file: "session.html", title: session, data: &p}, nil
}

// readExtent reads how far a session reaches, and how much of it is sealed.
func (s *server) readExtent(ctx context.Context, p *sessionPage) error {
	var record rows.Record
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { p.Extent, err = s.rows.Extent(ctx, p.AgentID, p.SessionID); return err })
	group.Go(func() (err error) { record, _, err = s.rows.Record(ctx, p.AgentID, p.SessionID); return err })
	group.Go(func() (err error) { p.Parts, err = s.rows.Parts(ctx, p.AgentID, p.SessionID, partsOfPage); return err })
	if err := group.Wait(); err != nil {
		return err
	}
	if p.Traces == 0 && len(p.Parts) == 0 && record.Status == "" {
		return missing{"session of this name"}
	}
	sealed := uint64(0)
	if len(p.Parts) > 0 {
		sealed = p.Parts[0].AllTraces
	}
	p.Unsealed = max(p.Traces-min(sealed, p.Traces), p.Later) // retention may have removed traces that are sealed
	switch {
	case record.Status == store.SessionHeld:
		p.State, p.HeldReason = store.SessionHeld, record.Reason
	case sealed > 0 && p.Unsealed == 0:
		p.State = store.SessionSealed
	default:
		p.State = store.SessionOpen
	}
	return nil
}

// readDecisions reads the page of traces that the address asks for.
func (s *server) readDecisions(v *visit, p *sessionPage) error {
	after, err := parsePlace(v.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	p.First = after == rows.Place{}
	if p.Trace != "" && p.First {
		place, found, err := s.rows.PlaceOf(v.Context(), p.AgentID, p.SessionID, p.Trace)
		if err != nil {
			return err
		}
		p.TraceGone = !found
		if found && place.At > p.Extent.First.UnixNano() && p.Traces > decisionsOfPage { // else the page has them all
			after, p.First = rows.Place{At: place.At - 1, Digest: strings.Repeat("f", 64)}, false
		}
	}
	found, err := s.rows.Decisions(v.Context(), p.AgentID, p.SessionID, p.Extent, after, decisionsOfPage+1)
	if err != nil || len(found) == 0 {
		return err
	}
	if len(found) > decisionsOfPage {
		found = found[:decisionsOfPage]
		last := found[decisionsOfPage-1]
		p.Next = sessionAddress(p.AgentID, p.SessionID, "") + "&after=" + strconv.FormatInt(last.At.UnixNano(), 10) + "." + last.Digest
	}
	digests := make([]string, len(found))
	for i := range found {
		digests[i] = found[i].Digest
	}
	verdicts, err := s.rows.VerdictsOf(v.Context(), p.AgentID, p.Extent, digests)
	if err != nil {
		return err
	}
	named, day := false, when(p.Extent.First)[:len(time.DateOnly)]
	for _, d := range found {
		one := decision{Decision: d, Verdict: verdicts[d.Digest], Named: !named && p.Trace != "" && d.TraceID == p.Trace}
		named = named || one.Named
		one.NewDay = when(d.At)[:len(time.DateOnly)] != day
		day = when(d.At)[:len(time.DateOnly)]
		for i := range d.Options {
			one.Options = append(one.Options, option{d.Options[i], d.Descriptions[i], d.Flags[i], d.Scores[i], uint64(i)+1 == d.Chosen})
		}
		p.Decisions = append(p.Decisions, one)
	}
	return nil
}

// parsePlace returns the place that an address names; the zero place if it names none.
func parsePlace(text string) (rows.Place, error) {
	if text == "" {
		return rows.Place{}, nil
	}
	at, digest, _ := strings.Cut(text, ".")
	nanos, err := strconv.ParseInt(at, 10, 64)
	if err != nil || len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		return rows.Place{}, wrongPlace(text)
	}
	return rows.Place{At: nanos, Digest: digest}, nil
}
