package web

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/web/rows"
)

const (
	fleetAgent = 20 // agents in each list
	fleetTypes = 40
	rateFor    = time.Hour
	countedFor = 24 * time.Hour
	delayFor   = 5 * time.Minute
)

// fleetFigures is the answer of the database for the fleet's page.
type fleetFigures struct {
	AsOf      time.Time
	Rates     []rows.Minute
	Active    []rows.Active
	Types     []rows.ProblemCount
	ByAgent   []rows.ProblemCount
	Drifting  []rows.Alert
	Delay     rows.Delay
	Unsettled rows.Unsettled
	Unjudged  rows.Unjudged
}

// fleetPage is the data of fleet.html.
type fleetPage struct {
	fleetFigures
	Old        bool // newer ones are being counted
	Chart      bars
	Agents     uint64 // that were active within a day
	Traces     uint64 // of a day
	PerMin     string
	Open       uint64 // alerts of drift
	Problems   uint64
	Critical   uint64
	Troubled   []troubled
	Services   serviceState // for those who see every agent
	Asking     bool         // the services that the configuration names have not answered yet
	NoServices bool         // it names none, and this process has none
	Partial    bool         // the token does not cover every agent
}

// troubled is an agent that someone should look at, with the reasons.
type troubled struct {
	rows.ProblemCount
	Drifts bool
}

// fleet answers with the state of the whole fleet.
func (s *server) fleet(v *visit) (page, error) {
	figures, found, again, err := s.fleets.get(v.Context(), v.agents(), s.now(), s.fleetOf(v.agents()))
	switch {
	case err != nil:
		return page{}, err
	case !found:
		return page{file: "error.html", title: "Fleet", again: true, data: errorPage{What: "Counting the traces of a day. The page loads itself again."}}, nil
	}
	p := fleetPage{fleetFigures: figures, Old: again, Troubled: trouble(figures), Partial: !v.everything()}
	if !p.Partial { // a reason may name any agent
		if p.Services, p.Asking, err = s.serviceStates(v.Context()); err != nil {
			return page{}, err
		}
		p.NoServices = len(s.cfg.ServiceURLs)+len(p.Services.Backlogs) == 0
	}
	minutes := map[time.Time]uint64{}
	for _, m := range figures.Rates {
		minutes[m.At.UTC()] = m.Traces
	}
	to := figures.AsOf.UTC()
	p.Chart = newBars("Traces received in each minute of the last hour", "trace", minutes, to.Add(-rateFor).Truncate(time.Minute).Add(time.Minute), to, time.Minute)
	if len(figures.Active) > 0 {
		p.Agents, p.Traces = figures.Active[0].AllAgents, figures.Active[0].AllTraces
	}
	if len(figures.Drifting) > 0 {
		p.Open = figures.Drifting[0].AllOpen
	}
	for _, t := range figures.Types {
		p.Problems += t.Problems
		p.Critical += t.Critical
	}
	p.PerMin = number(minutes[to.Truncate(time.Minute).Add(-time.Minute)])
	return page{file: "fleet.html", title: "Fleet", again: again || p.Asking, data: p}, nil
}

// keepFigures counts for visitors who may come: for each set of agents that tokens cover when the console starts, and
// then now and again, until ctx ends. So the first visitor finds figures, too.
func (s *server) keepFigures(ctx context.Context) {
	for {
		for _, agents := range s.covered() {
			if !waited(ctx, s.fleets.renew(ctx, agents, s.now(), s.fleetOf(agents))) {
				return
			}
		}
		if !waited(ctx, keptFor) {
			return
		}
	}
}

// waited reports whether a time has passed before ctx ended.
func waited(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// covered returns the sets of agents that tokens cover which may read. There are keptTokens/2 at most, because what is
// counted for visitors with other tokens is kept, too.
func (s *server) covered() (all []store.Agents) {
	for _, grant := range s.keeper.Grants(auth.TracesRead) {
		agents := agentsOf(grant)
		same := func(other store.Agents) bool { return keyOf(other) == keyOf(agents) }
		if len(all) < keptTokens/2 && !slices.ContainsFunc(all, same) {
			all = append(all, agents)
		}
	}
	return all
}

// fleetOf returns the question for the figures of agents.
func (s *server) fleetOf(agents store.Agents) func(context.Context) (fleetFigures, error) {
	return func(ctx context.Context) (fleetFigures, error) { return s.readFleet(ctx, agents) }
}

// readFleet asks the database everything at once.
func (s *server) readFleet(ctx context.Context, agents store.Agents) (f fleetFigures, err error) {
	f.AsOf = s.now()
	day := f.AsOf.Add(-countedFor)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { f.Rates, err = s.rows.Rates(ctx, agents, f.AsOf.Add(-rateFor)); return err })
	group.Go(func() (err error) { f.Active, err = s.rows.Active(ctx, agents, day, fleetAgent); return err })
	group.Go(func() (err error) {
		f.Types, f.ByAgent, err = s.rows.Problems(ctx, agents, day, fleetTypes)
		return err
	})
	group.Go(func() (err error) { f.Drifting, err = s.rows.Drifting(ctx, agents, fleetAgent); return err })
	group.Go(func() (err error) { f.Delay, err = s.rows.Delays(ctx, agents, f.AsOf.Add(-delayFor)); return err })
	group.Go(func() (err error) { f.Unsettled, err = s.rows.Unsettled(ctx, agents, day); return err })
	group.Go(func() (err error) { f.Unjudged, err = s.rows.Unjudged(ctx, agents, day); return err })
	return f, group.Wait()
}

// trouble returns the agents that drift or have problems: those that drift first, then by the weight of their
// problems.
func trouble(f fleetFigures) []troubled {
	of := map[string]*troubled{}
	get := func(agent string) *troubled {
		if of[agent] == nil {
			of[agent] = &troubled{ProblemCount: rows.ProblemCount{AgentID: agent}}
		}
		return of[agent]
	}
	for _, c := range f.ByAgent {
		get(c.AgentID).ProblemCount = c
	}
	for _, a := range f.Drifting {
		get(a.AgentID).Drifts = true
	}
	list := make([]troubled, 0, len(of))
	for _, agent := range slices.Sorted(maps.Keys(of)) {
		list = append(list, *of[agent])
	}
	weight := func(t troubled) (w [4]uint64) {
		if t.Drifts {
			w[0] = 1
		}
		w[1], w[2], w[3] = t.Critical, t.High, t.Problems
		return w
	}
	slices.SortStableFunc(list, func(a, b troubled) int { x, y := weight(a), weight(b); return slices.Compare(y[:], x[:]) })
	return list[:min(len(list), fleetAgent)]
}
