package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

const (
	agentAlerts   = 50
	agentCards    = 50
	agentProblems = 15
	agentSessions = 12
)

// window is a time that the charts of an agent show, in steps.
type window struct {
	Name string
	Each string // the step, for people
	Step time.Duration
	For  time.Duration
}

var windows = []window{
	{"1h", "minute", time.Minute, time.Hour},
	{"6h", "5 minutes", 5 * time.Minute, 6 * time.Hour},
	{"24h", "15 minutes", 15 * time.Minute, 24 * time.Hour},
	{"7d", "2 hours", 2 * time.Hour, 7 * 24 * time.Hour},
	{"30d", "6 hours", 6 * time.Hour, 30 * 24 * time.Hour},
	{"1y", "3 days", 3 * 24 * time.Hour, 366 * 24 * time.Hour},
}

// usual is the window in which an agent's traces are looked for if the visitor chooses none.
const usual = 7 * 24 * time.Hour

// reaches returns the times of a window that ends with the step of a time.
func (w window) reaches(end time.Time) (from, to time.Time) {
	to = end.Truncate(w.Step).Add(w.Step)
	return to.Add(-w.For), to
}

// agentPage is the data of agent.html.
type agentPage struct {
	AgentID   string
	Windows   []window
	Window    window
	Chosen    bool // the visitor chose the window
	Series    []rows.Series
	Span      rows.Span
	Seen      rows.Seen
	Alerts    []rows.Alert
	Open      uint64 // alerts
	AllAlerts uint64 // of which the open ones and the newest are listed
	Baseline  *rows.Baseline
	Measures  []line
	Sampled   bool // some of the measures are those of a sample
	Late      bool // those of the sample could not be read in time
	NoTools   bool // the baseline may lack some of its own tools
	Drift     line
	Problems  []rows.Problem
	Unjudged  uint64 // traces of any card that could not be judged
	Sessions  []rows.Session
	Cards     []rows.Card
	MoreCards bool       // than are listed
	Current   *rows.Card // the card whose text is shown
	Against   *rows.Card // the one before; nil: there is none
	Diff      []diffLine
	CardCut   bool // the card is too large for the page
}

// agent answers with what is known about one agent.
func (s *server) agent(v *visit) (page, error) {
	q := v.URL.Query()
	p := &agentPage{AgentID: q.Get("id"), Windows: windows}
	if p.AgentID == "" || len(p.AgentID) > schema.MaxIDBytes || !v.Grant.SpeaksFor(p.AgentID) {
		return page{}, missing{"agent of this name"}
	}
	if err := s.chooseSpan(v.Context(), p, q.Get("card"), q.Get("for")); err != nil {
		return page{}, err
	}
	if err := s.readAgent(v.Context(), p); err != nil {
		return page{}, err
	}
	if p.Seen.Traces == 0 && len(p.Cards) == 0 && len(p.Series) == 0 && len(p.Sessions) == 0 {
		return page{}, missing{"agent of this name with traces or cards"}
	}
	if card := q.Get("card"); card != "" && !p.hasCard(card) {
		return page{}, missing{"card of this name that the agent has"}
	}
	p.compareCards(q.Get("show"))
	if p.MoreCards = len(p.Cards) > agentCards; p.MoreCards {
		p.Cards = p.Cards[:agentCards]
	}
	return page{file: "agent.html", title: p.AgentID, data: p}, nil
}

// hasCard reports whether the agent is measured under a card, or has it.
func (p *agentPage) hasCard(id string) bool {
	return slices.ContainsFunc(p.Series, func(s rows.Series) bool { return s.CardID == id }) || slices.ContainsFunc(p.Cards, func(c rows.Card) bool { return c.CardID == id })
}

// chooseSpan sets the times of the page. They end with the agent's latest trace, so an agent that was recorded long
// ago has its charts, too; without a choice they are those in which its traces of seven days fit.
func (s *server) chooseSpan(ctx context.Context, p *agentPage, card, name string) (err error) {
	if p.Series, err = s.rows.Series(ctx, p.AgentID); err != nil {
		return err
	}
	end := s.now()
	if len(p.Series) > 0 {
		if card == "" {
			card = p.Series[0].CardID
		}
		for _, series := range p.Series {
			if series.CardID == card && series.LastEvent.Before(end) {
				end = series.LastEvent
			}
		}
	}
	i := slices.IndexFunc(windows, func(w window) bool { return w.Name == name })
	if i < 0 && name != "" {
		var names []string
		for _, w := range windows {
			names = append(names, w.Name)
		}
		return wrongParameter{"for", name, oneOf(names)}
	}
	if p.Chosen = i >= 0; !p.Chosen {
		i = slices.IndexFunc(windows, func(w window) bool { return w.For >= usual })
	}
	p.Window = windows[i]
	p.Span = rows.Span{AgentID: p.AgentID, CardID: card, Step: p.Window.Step}
	p.Span.From, p.Span.To = p.Window.reaches(end)
	if p.Seen, err = s.rows.Seen(ctx, p.Span); err != nil {
		return err
	}
	for _, w := range windows[:i] {
		if from, to := w.reaches(end); !p.Chosen && p.Seen.Traces > 0 && !p.Seen.First.Before(from) && p.Seen.Last.Before(to) {
			p.Window, p.Span.From, p.Span.To, p.Span.Step = w, from, to, w.Step
			break
		}
	}
	return nil
}

// readAgent asks the database everything but the baseline at once.
func (s *server) readAgent(ctx context.Context, p *agentPage) error {
	var points []rows.Point
	var measured []rows.Measured
	var expected rows.Measured
	var said texts
	var err error
	if p.Baseline, err = s.rows.Baseline(ctx, p.AgentID, p.Span.CardID); err != nil {
		return err
	}
	with, tools := comparedWith(p.Baseline)
	group, asking := errgroup.WithContext(ctx)
	group.Go(func() (err error) { p.Alerts, err = s.rows.Alerts(asking, p.AgentID, agentAlerts); return err })
	group.Go(func() (err error) { points, err = s.rows.Points(asking, p.Span); return err })
	group.Go(func() (err error) { measured, err = s.rows.Measures(asking, p.Span, with); return err })
	group.Go(func() (err error) { said, err = s.readTexts(asking, p); return err })
	group.Go(func() (err error) {
		p.Problems, err = s.rows.AgentProblems(asking, p.Span, agentProblems)
		return err
	})
	group.Go(func() (err error) { p.Unjudged, err = s.rows.AgentUnjudged(asking, p.Span); return err })
	group.Go(func() (err error) { p.Cards, err = s.rows.Cards(asking, p.AgentID, agentCards+1); return err })
	group.Go(func() (err error) {
		if p.Baseline != nil {
			expected, err = s.rows.MeasuresOf(asking, p.AgentID, p.Span.CardID, p.Baseline, with)
		}
		return err
	})
	group.Go(func() (err error) {
		p.Sessions, err = s.rows.Sessions(asking, rows.Find{Agents: only(p.AgentID), From: p.Span.From, To: p.Span.To, Limit: agentSessions})
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	var spans []span
	if len(p.Alerts) > 0 {
		p.Open, p.AllAlerts = p.Alerts[0].AllOpen, p.Alerts[0].AllAlerts
	}
	for _, a := range p.Alerts {
		if one, within := p.alertSpan(a); within {
			spans = append(spans, one)
		}
	}
	p.Drift = similarityChart(p.Span, points, spans)
	sampled := said.measures()
	p.Measures = measureCharts(p.Span, append(measuresOf(measured, expected, with, tools), sampled...), spans)
	p.Sampled, p.Late, p.NoTools = len(said.now) > 0, said.late, p.Baseline != nil && !tools
	return nil
}

// alertSpan returns the time of an alert within the charts.
func (p *agentPage) alertSpan(a rows.Alert) (span, bool) {
	closed := p.Span.To
	if a.ClosedAt != nil {
		closed = *a.ClosedAt
	}
	if a.CardID != p.Span.CardID || !closed.After(p.Span.From) || !a.OpenedAt.Before(p.Span.To) {
		return span{}, false
	}
	at := func(t time.Time) float64 {
		steps := p.Span.To.Sub(p.Span.From).Seconds() / p.Span.Step.Seconds()
		return min(steps, max(0, t.Sub(p.Span.From).Seconds()/p.Span.Step.Seconds()))
	}
	return span{Class: "alert", X: unit(at(a.OpenedAt)), Width: unit(max(.3, at(closed)-at(a.OpenedAt))), Title: a.Summary}, true
}

// compareCards sets the card whose text is shown, and what changed since the one before.
func (p *agentPage) compareCards(show string) {
	if len(p.Cards) == 0 {
		return
	}
	i := max(0, slices.IndexFunc(p.Cards, func(c rows.Card) bool { return c.CardID == show }))
	p.Current = &p.Cards[i]
	before := ""
	if i+1 < len(p.Cards) {
		p.Against = &p.Cards[i+1]
		before = readable(p.Against.Raw)
	}
	after := readable(p.Current.Raw)
	if p.CardCut = tooLarge(before) || tooLarge(after); p.CardCut {
		p.Against, after = nil, strings.ToValidUTF8(after[:min(len(after), mostShown)], "")
	}
	p.Diff = diff(strings.Split(before, "\n"), strings.Split(after, "\n"), p.Against != nil)
}

// OfStep and OfBaseline are how many traces the samples have at most. HourOf reports whether those of a step are of one
// hour of it.
func (p *agentPage) OfStep() int     { return rows.SampleOfStep }
func (p *agentPage) OfBaseline() int { return rows.SampleOfBaseline }
func (p *agentPage) HourOf() bool    { return p.Window.Step > time.Hour }
