package trial

import (
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/aap/drift/inject"
	"github.com/plumbline/plumbline/schema"
)

// A change of temporary traces, after which at least room more follow.
const temporary, room = 80, 60

// life is what became of the alerts of one change.
type life struct {
	opened int
	close  int  // traces from the change's end to the last closing
	open   bool // an alert is open when the recording ends
}

// On recorded traces a lasting change is one alert, and so is a change of 80 traces, which closes after
// its end. ADR 23 has the figures that this test logs.
func TestOneChangeIsOneAlertOnTheCorpus(t *testing.T) {
	if raceEnabled {
		t.Skip("starts no goroutine, and takes half a minute with the race detector: make test runs it without")
	}
	library := changes("half the actions become transfers", "70 % denials", "undeclared value in 60 %", "a declared value vanishes", "half the actions escalated", "new tool in 30 %")
	var lasting, passing []life
	afterEachChange(t, library, 2, func(_ string, c changed) {
		lasting = append(lasting, lifeOf(t, c.before, c.samples, len(c.samples)))
		if len(c.samples) < temporary+room {
			return
		}
		copy(c.samples[temporary:], c.unchanged[temporary:])
		if l := lifeOf(t, c.before, c.samples, temporary); l.opened > 0 {
			passing = append(passing, l)
		}
	})
	var closed []int
	open, twice := 0, 0
	for _, l := range passing {
		if l.opened > 1 {
			twice++
		}
		if l.open {
			open++
		} else {
			closed = append(closed, l.close)
		}
	}
	slices.Sort(closed)
	one := len(slices.DeleteFunc(slices.Clone(lasting), func(l life) bool { return l.opened != 1 }))
	for _, l := range lasting {
		if l.opened > 1 {
			twice++
		}
	}
	t.Logf("of %d lasting changes %d are one alert; of %d changes of %d traces that are found %d are open at the end; closed %d traces after the change (median; third quartile %d); %d changes are two alerts",
		len(lasting), one, len(passing), temporary, open, closed[len(closed)/2], closed[len(closed)*3/4], twice)
	if len(lasting) != 120 || one < 112 || len(passing) < 85 || twice > 0 || open > 22 || closed[len(closed)/2] > 50 {
		t.Errorf("lasting %+v\npassing %+v", lasting, passing)
	}
}

// changed is a recording in one order, from the place of a change on.
type changed struct {
	before             []byte // the state at that place
	samples, unchanged []drift.Sample
}

// afterEachChange calls do with each change in each recording of the corpus, in so many orders: the recorded one and
// permuted ones.
func afterEachChange(t *testing.T, library []inject.Change, orders int, do func(name string, c changed)) {
	t.Helper()
	recordings := corpus(t)
	settings := inject.Settings(recordings, 1)
	for i := range recordings {
		s := series{Options: &Options{Rules: []Rule{Default()}}, traces: recordings[i].Traces, facts: drift.FactsOf(recordings[i].Card), in: &settings[i]}
		plain := s.samples(nil)
		for number := range orders {
			order := natural(s.traces)
			if number > 0 {
				order = permuted(s.traces, 1, number)
			}
			markEnds(s.traces, order)
			twins, place, err := s.twins(order, plain)
			if err != nil {
				t.Fatal(err)
			}
			var unchanged []drift.Sample
			for _, p := range order[place:] {
				unchanged = append(unchanged, moved(&plain[p.row], p))
			}
			for k := range library {
				a := &altered{series: &s, change: &library[k], unchanged: s.traces, from: plain, made: make([]*drift.Sample, len(plain))}
				samples, _, err := a.after(order, place)
				if err != nil {
					t.Fatal(err)
				}
				do(library[k].Name, changed{twins[0].before, samples, unchanged})
			}
		}
	}
}

// lifeOf steps through the samples after the place of a change.
func lifeOf(t *testing.T, before []byte, samples []drift.Sample, end int) (l life) {
	t.Helper()
	state, err := drift.UnmarshalState(before)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range samples {
		out := state.Step(x, drift.DefaultParams())
		switch {
		case out.Alert == nil:
		case out.Alert.State == schema.AlertOpened:
			l.opened, l.open = l.opened+1, true
		case out.Alert.State == schema.AlertClosed:
			l.close, l.open = i-end, false
		}
	}
	return l
}
