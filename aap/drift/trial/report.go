package trial

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/aap/drift/inject"
	"github.com/plumbline/plumbline/schema"
)

// Report is the result of Run. Rates are over traces that a rule judges, which are those after its
// baseline.
type Report struct {
	Orders  int      `json:"permuted_orders"`
	Seed    uint64   `json:"seed"`
	Marked  bool     `json:"ends_marked"` // the last trace of each session counted as its end mark
	Series  []Series `json:"series"`
	Results []Result `json:"results"` // for each rule, for each half, and for both halves if both are tried
}

// Series is one recording and what became of it.
type Series struct {
	AgentID  string  `json:"agent_id"`
	CardID   string  `json:"card_id"`
	Half     Half    `json:"half"`
	Traces   int     `json:"traces"`
	Sessions int     `json:"sessions"`
	LeftOut  string  `json:"left_out,omitempty"` // why
	Alarms   []Alarm `json:"false_alarms"`       // by rule
}

// Alarm counts the false alarms of one rule on one recording.
type Alarm struct {
	Rule     string `json:"rule"`
	Natural  Rate   `json:"natural"`
	Permuted Rate   `json:"permuted"`

	RaisedBy map[string]int `json:"raised_by"` // alarms by the measure that raised them; by direction where an alert names no measure
}

// Rate counts alarms in judged traces of recordings that did not change.
type Rate struct {
	Alarms int `json:"alarms"`
	Traces int `json:"traces"`
}

// PerTenThousand returns the alarms per 10,000 traces, 0 without traces.
func (r Rate) PerTenThousand() float64 { return 1e4 * float64(r.Alarms) / float64(max(1, r.Traces)) }

func (r *Rate) add(o Rate) { r.Alarms, r.Traces = r.Alarms+o.Alarms, r.Traces+o.Traces }

// Result is what one rule did on one half of the agents.
type Result struct {
	Rule     string         `json:"rule"`
	Half     Half           `json:"half"`
	Agents   int            `json:"agents"`
	Natural  Rate           `json:"natural"`
	Permuted Rate           `json:"permuted"`
	Changes  []ChangeResult `json:"changes"`
	Required Found          `json:"required"` // over the changes of the required families
}

// ChangeResult is what a rule found of one change.
type ChangeResult struct {
	Name   string        `json:"change"`
	Family inject.Family `json:"family"`
	Found
	Missed map[string]int `json:"missed_by_agent,omitempty"` // trials in which the change was not found, by agent_id
}

// Found counts the trials of changes. A change that alters fewer than five traces is not tried.
type Found struct {
	All    Share `json:"all"`
	Wide   Share `json:"wide"`         // of changes that alter at least 5 % of the traces after their place, and at least 10
	Median *int  `json:"median_delay"` // the greater of two; nil where nothing is found
	Delays []int `json:"delays"`       // of all that were found, in traces, in order of size
}

// Share counts trials.
type Share struct {
	Found int `json:"found"`
	Tried int `json:"tried"`
}

// Percent returns the share found, 0 without trials.
func (s Share) Percent() float64 { return 100 * float64(s.Found) / float64(max(1, s.Tried)) }

// newReport lists the recordings, and says which are left out.
func newReport(recordings []inject.Recording, halves map[string]Half, o Options) *Report {
	r := &Report{Orders: o.Orders, Seed: o.Seed, Marked: o.MarkEnds, Results: []Result{}}
	for i := range recordings {
		first, sessions := recordings[i].Traces[0], map[string]bool{}
		for _, t := range recordings[i].Traces {
			sessions[schema.SessionID(t)] = true
		}
		s := Series{AgentID: first.AgentID, CardID: first.CardID, Half: halves[first.AgentID],
			Traces: len(recordings[i].Traces), Sessions: len(sessions), Alarms: []Alarm{}}
		switch {
		case s.Traces < o.LeastTraces:
			s.LeftOut = fmt.Sprintf("%d traces are fewer than %d", s.Traces, o.LeastTraces)
		case o.Split != All && o.Split != s.Half:
			s.LeftOut = fmt.Sprintf("its agent belongs to half %s", s.Half)
		}
		r.Series = append(r.Series, s)
	}
	halvesTried := []Half{o.Split}
	if o.Split == All {
		halvesTried = []Half{Tune, Aside, All}
	}
	for _, half := range halvesTried {
		for _, rule := range o.Rules {
			result := Result{Rule: rule.Name, Half: half, Changes: []ChangeResult{}}
			for _, c := range o.Changes {
				result.Changes = append(result.Changes, ChangeResult{Name: c.Name, Family: c.Family})
			}
			r.Results = append(r.Results, result)
		}
	}
	for i := range r.Series {
		for _, rule := range o.Rules {
			r.Series[i].Alarms = append(r.Series[i].Alarms, Alarm{Rule: rule.Name, RaisedBy: map[string]int{}})
		}
	}
	return r
}

// sum adds the outcomes of each series to the report.
func (r *Report) sum(outcomes [][]outcome) {
	for i := range outcomes {
		s := &r.Series[i]
		for _, o := range outcomes[i] {
			rate := Rate{len(o.opened), o.judged}
			for _, by := range o.opened {
				s.Alarms[o.rule].RaisedBy[by]++
			}
			if o.order == 0 {
				s.Alarms[o.rule].Natural.add(rate)
			} else {
				s.Alarms[o.rule].Permuted.add(rate)
			}
		}
		for j := range r.Results {
			result := &r.Results[j]
			if s.LeftOut == "" && (result.Half == All || result.Half == s.Half) {
				result.Agents++
				result.add(s, outcomes[i])
			}
		}
	}
	for j := range r.Results {
		result := &r.Results[j]
		for k := range result.Changes {
			result.Changes[k].settle()
			if result.Changes[k].Family.Required() {
				result.Required.merge(&result.Changes[k].Found)
			}
		}
		result.Required.settle()
	}
}

// add adds what the result's rule did on one series.
func (result *Result) add(s *Series, outcomes []outcome) {
	for _, o := range outcomes {
		if s.Alarms[o.rule].Rule != result.Rule {
			continue
		}
		for _, t := range o.tries {
			c := &result.Changes[t.change]
			c.count(t)
			if t.delay < 0 {
				if c.Missed == nil {
					c.Missed = map[string]int{}
				}
				c.Missed[s.AgentID]++
			}
		}
	}
	for _, a := range s.Alarms {
		if a.Rule == result.Rule {
			result.Natural.add(a.Natural)
			result.Permuted.add(a.Permuted)
		}
	}
}

func (f *Found) count(t try) {
	shares := []*Share{&f.All}
	if wide(t.altered, t.of) {
		shares = append(shares, &f.Wide)
	}
	for _, share := range shares {
		share.Tried++
		if t.delay >= 0 {
			share.Found++
		}
	}
	if t.delay >= 0 {
		f.Delays = append(f.Delays, t.delay)
	}
}

func (f *Found) merge(o *Found) {
	f.All = Share{f.All.Found + o.All.Found, f.All.Tried + o.All.Tried}
	f.Wide = Share{f.Wide.Found + o.Wide.Found, f.Wide.Tried + o.Wide.Tried}
	f.Delays = append(f.Delays, o.Delays...)
}

// settle sorts the delays and takes their median.
func (f *Found) settle() {
	if f.Delays == nil {
		f.Delays = []int{}
		return
	}
	slices.SortFunc(f.Delays, cmp.Compare)
	f.Median = &f.Delays[len(f.Delays)/2]
}

// Within returns which percentage of the trials was found within a number of traces.
func (f *Found) Within(traces int) float64 {
	n, _ := slices.BinarySearch(f.Delays, traces+1)
	return Share{n, f.All.Tried}.Percent()
}
