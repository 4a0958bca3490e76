package trial

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/drift/inject"
	"github.com/plumbline/plumbline/schema"
)

// Rule is a detector under trial.
type Rule struct {
	Name   string
	Params drift.Params
}

// Published returns the rule of AAP section 8.2 with the constants of section 8.3, as the published
// SDKs have them: the first ten traces are the baseline, and the third trace in a row below 0.30 raises
// an alert.
func Published() Rule { return Rule{"published", drift.PublishedParams()} }

// Default returns the default of the stream.
func Default() Rule { return Rule{"default", drift.DefaultParams()} }

// Options say what is tried.
type Options struct {
	Rules       []Rule
	Changes     []inject.Change
	Orders      int    // permuted orders, in addition to the natural one
	Seed        uint64 // of the permutations and of the choice of altered traces
	Split       Half   // the agents that are tried
	LeastTraces int    // a series with fewer is left out
	MarkEnds    bool   // the last trace of each session ends it, as if the agent had marked it

	Progress func() // called after each order of a series, by several goroutines; nil for none
}

// leastAltered is the number of altered traces below which a change is not tried.
const leastAltered = 5

// wide reports whether a change that alters so many of the traces after its place is among those of
// which 95 % must be found.
func wide(altered, of int) bool { return altered >= 10 && 20*altered >= of }

// Run tries the rules on recordings, each with at least one trace, and each of another agent or card.
func Run(ctx context.Context, recordings []inject.Recording, o Options) (*Report, error) {
	halves, settings := Halves(recordings), inject.Settings(recordings, o.Seed)
	report := newReport(recordings, halves, o)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	outcomes := make([][]outcome, len(recordings))
	for _, i := range longestFirst(recordings) {
		if report.Series[i].LeftOut != "" {
			continue
		}
		group.Go(func() (err error) {
			s := series{Options: &o, traces: recordings[i].Traces, facts: drift.FactsOf(recordings[i].Card), in: &settings[i]}
			if outcomes[i], err = s.run(ctx); err != nil {
				err = fmt.Errorf("agent %q: %w", s.traces[0].AgentID, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	report.sum(outcomes)
	return report, nil
}

// longestFirst returns the places of the recordings, so that no worker begins the longest one last.
func longestFirst(recordings []inject.Recording) []int {
	places := make([]int, len(recordings))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(len(recordings[b].Traces), len(recordings[a].Traces)) })
	return places
}

// series is one recording under trial.
type series struct {
	*Options
	traces []*schema.Trace
	facts  drift.CardFacts
	in     *inject.Setting
}

// outcome is what one rule did in one order.
type outcome struct {
	order  int // 0 is the natural one
	rule   int
	judged int      // traces
	opened []string // what each alarm of the unchanged recording was raised by
	tries  []try
}

// try is what one rule made of one change in one order.
type try struct {
	change  int
	altered int // traces
	of      int // traces after the place of the change
	delay   int // traces from that place to the alarm; -1 where the change is not found
}

// run tries all rules and changes in all orders.
func (s *series) run(ctx context.Context) (all []outcome, err error) {
	plain := s.samples(nil)
	prepared := map[int][]drift.Sample{}
	changed := make([]*altered, len(s.Changes))
	for i := range s.Changes {
		c := &s.Changes[i]
		if c.Lacks(s.in) != "" {
			continue
		}
		changed[i] = &altered{series: s, change: c, unchanged: s.traces, from: plain, made: make([]*drift.Sample, len(s.traces))}
		if !c.Prepares(s.in) {
			continue
		}
		if changed[i].unchanged, err = s.prepare(c); err != nil {
			return nil, err
		}
		prepared[i] = s.samples(changed[i].unchanged)
		changed[i].from = prepared[i]
	}
	for number := 0; number <= s.Orders; number++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		order := natural(s.traces)
		if number > 0 {
			order = permuted(s.traces, s.Seed, number)
		}
		if s.MarkEnds {
			markEnds(s.traces, order)
		}
		outcomes, err := s.inOrder(order, plain, changed, prepared)
		if err != nil {
			return nil, err
		}
		for i := range outcomes {
			outcomes[i].order = number
		}
		all = append(all, outcomes...)
		if s.Progress != nil {
			s.Progress()
		}
	}
	return all, nil
}

// samples returns the samples of traces; of the recorded ones for nil.
func (s *series) samples(traces []*schema.Trace) []drift.Sample {
	if traces == nil {
		traces = s.traces
	}
	samples := make([]drift.Sample, len(traces))
	for i, t := range traces {
		samples[i] = drift.SampleOf(t, s.facts)
	}
	return samples
}

// prepare returns the traces as a change needs them.
func (s *series) prepare(c *inject.Change) (traces []*schema.Trace, err error) {
	traces = make([]*schema.Trace, len(s.traces))
	for i, t := range s.traces {
		if traces[i], err = c.Prepare(s.in, t); err != nil {
			return nil, err
		}
	}
	return traces, nil
}

// altered is a recording with one change. A trace is altered when an order first needs it.
type altered struct {
	*series
	change    *inject.Change
	unchanged []*schema.Trace
	from      []drift.Sample  // of the unchanged traces
	made      []*drift.Sample // nil: not made yet
}

// sample returns the sample of a trace with the change. It is &from[row] if the change leaves the
// trace as it is.
func (a *altered) sample(row int) (*drift.Sample, error) {
	if a.made[row] != nil {
		return a.made[row], nil
	}
	t, err := a.change.Apply(a.in, a.unchanged[row], row)
	if err != nil {
		return nil, err
	}
	a.made[row] = &a.from[row]
	if t != a.unchanged[row] {
		sample := drift.SampleOf(t, a.facts)
		a.made[row] = &sample
	}
	return a.made[row], nil
}

// inOrder tries all rules and changes in one order.
func (s *series) inOrder(order []placed, plain []drift.Sample, changed []*altered, prepared map[int][]drift.Sample) ([]outcome, error) {
	outcomes := make([]outcome, len(s.Rules))
	twins, place, err := s.twins(order, plain)
	if err != nil {
		return nil, err
	}
	for r := range s.Rules {
		outcomes[r] = outcome{rule: r, judged: len(order) - twins[r].start, opened: twins[r].opened}
	}
	for i, a := range changed {
		if a == nil {
			continue
		}
		of, at := twins, place
		if samples := prepared[i]; samples != nil {
			if of, at, err = s.twins(order, samples); err != nil {
				return nil, err
			}
		}
		samples, n, err := a.after(order, at)
		if err != nil {
			return nil, err
		}
		if n < leastAltered {
			continue
		}
		for r := range s.Rules {
			delay, err := of[r].finds(samples, s.Rules[r].Params, at)
			if err != nil {
				return nil, err
			}
			outcomes[r].tries = append(outcomes[r].tries, try{change: i, altered: n, of: len(samples), delay: delay})
		}
	}
	return outcomes, nil
}

// after returns the samples from a place of the order on, with the change, and how many of them it alters.
func (a *altered) after(order []placed, place int) (samples []drift.Sample, n int, err error) {
	samples = make([]drift.Sample, 0, len(order)-place)
	for _, p := range order[place:] {
		x, err := a.sample(p.row)
		if err != nil {
			return nil, 0, err
		}
		if x != &a.from[p.row] {
			n++
		}
		samples = append(samples, moved(x, p))
	}
	return samples, n, nil
}

// moved returns a sample at its place in an order.
func moved(x *drift.Sample, p placed) drift.Sample {
	y := *x
	y.EventTime, y.Order = p.at, p.at
	y.SessionEnd = y.SessionEnd || p.end
	return y
}

// twin is the unchanged recording under one rule in one order.
type twin struct {
	start  int          // the first trace that is judged; the number of traces where none is
	alarms map[int]bool // the traces, by their place in the order, that raise an alarm
	opened []string     // what opened each condition: the first measure, or the direction
	before []byte       // the encoded state before the place of the change
	open   follower     // at that place
}

// follower tells the alarms among the events about a condition: it opens, or a measure joins it. Closing and
// counts are no alarms.
type follower struct{ measures int }

func (f *follower) alarm(a *schema.DriftAlert) bool {
	if a == nil {
		return false
	}
	before := f.measures
	f.measures = len(a.Measures)
	switch a.State {
	case schema.AlertUpdated:
		return f.measures > before
	case schema.AlertClosed:
		f.measures = 0
		return false
	}
	return true
}

// opening returns what opened a condition, or "" for another event.
func opening(a *schema.DriftAlert) string {
	switch {
	case a == nil || a.State == schema.AlertUpdated || a.State == schema.AlertClosed:
		return ""
	case len(a.Measures) > 0:
		return a.Measures[0]
	}
	return string(a.Analysis.DriftDirection)
}

// twins runs the unchanged recording under every rule. place is where a change begins: at half of the
// traces that every rule judges.
func (s *series) twins(order []placed, samples []drift.Sample) (all []twin, place int, err error) {
	last := 0 // the start of the rule that learns longest
	for r := range s.Rules {
		t := twin{start: len(order), alarms: map[int]bool{}}
		var state drift.State
		var open follower
		for i, p := range order {
			out := state.Step(moved(&samples[p.row], p), s.Rules[r].Params)
			if out.Status != drift.StatusBaseline {
				t.start = min(t.start, i)
			}
			if open.alarm(out.Alert) {
				t.alarms[i] = true
			}
			if by := opening(out.Alert); by != "" {
				t.opened = append(t.opened, by)
			}
		}
		last = max(last, t.start)
		all = append(all, t)
	}
	place = last + (len(order)-last)/2
	for r := range all {
		var state drift.State
		for _, p := range order[:place] {
			all[r].open.alarm(state.Step(moved(&samples[p.row], p), s.Rules[r].Params).Alert)
		}
		if all[r].before, err = state.Marshal(); err != nil {
			return nil, 0, err
		}
	}
	return all, place, nil
}

// finds returns the number of traces until an alarm that the twin does not raise, or -1. The samples are
// those from the place of the change on.
func (t *twin) finds(samples []drift.Sample, p drift.Params, place int) (delay int, err error) {
	state, err := drift.UnmarshalState(t.before)
	if err != nil {
		return 0, err
	}
	open := t.open
	for i, x := range samples {
		if out := state.Step(x, p); open.alarm(out.Alert) && !t.alarms[place+i] {
			return i, nil
		}
	}
	return -1, nil
}
