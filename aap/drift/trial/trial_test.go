package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap/drift/inject"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// card returns the card of an agent of these tests.
func card(t testing.TB, agent string) *schema.Card {
	t.Helper()
	c, err := schema.DecodeCard(fmt.Appendf(nil, `{"aap_version":"0.1.0","card_id":"ac-%[1]s","agent_id":%[1]q,"issued_at":"2026-01-01T00:00:00Z",
		"principal":{"type":"organization","relationship":"delegated_authority"},"values":{"declared":["honesty","fairness"]},
		"autonomy_envelope":{"bounded_actions":["look"],"escalation_triggers":[]},
		"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`, agent))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// recording returns a trace for each letter, in sessions of ten: g is a usual trace, b one that has
// nothing in common with it. Sessions of even and odd number overlap.
func recording(t testing.TB, agent, pattern string) inject.Recording {
	t.Helper()
	own := inject.Recording{Card: card(t, agent)}
	for n, letter := range pattern {
		action, value := `{"type":"execute","name":"look","category":"bounded"}`, "honesty"
		if letter == 'b' {
			action, value = `{"type":"recommend","name":"wire","category":"forbidden"}`, "profit"
		}
		at := epoch.Add(time.Duration(n/10)*15*time.Minute + time.Duration(n%10)*2*time.Minute)
		trace, err := schema.Admit("", fmt.Appendf(nil, `{"trace_id":"%[1]s-%04[2]d","agent_id":%[1]q,"card_id":"ac-%[1]s","timestamp":%[3]q,"action":%[4]s,
			"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"r","values_applied":[%[5]q]},
			"context":{"session_id":"s%[6]d","metadata":{"execution":{"cost_cents":3}}}}`,
			agent, n, at.Format(time.RFC3339), action, value, n/10))
		if err != nil {
			t.Fatal(err)
		}
		own.Traces = append(own.Traces, trace)
	}
	return own
}

var epoch = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// changes returns those of the library whose names contain a word.
func changes(words ...string) (chosen []inject.Change) {
	for _, c := range inject.Library() {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(c.Name, word) }) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

func tried(t *testing.T, recordings []inject.Recording, o Options) *Report {
	t.Helper()
	report, err := Run(t.Context(), recordings, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// result returns what a report says of one half.
func (r *Report) result(half Half) *Result {
	return &r.Results[slices.IndexFunc(r.Results, func(result Result) bool { return result.Half == half })]
}

// A change that the rule sees is found, with the delay from half of the judged traces on; one that
// it does not see is tried and not found.
func TestChangesAreFound(t *testing.T) {
	report := tried(t, []inject.Recording{recording(t, "a", strings.Repeat("g", 110))},
		Options{Rules: []Rule{Published()}, Changes: changes("half the actions become transfers", "cost"), Orders: 3, Seed: 1, Split: All})
	all := report.result(All)
	if all.Natural != (Rate{0, 100}) || all.Permuted != (Rate{0, 300}) || all.Agents != 1 {
		t.Fatalf("false alarms %+v and %+v of %d agents", all.Natural, all.Permuted, all.Agents)
	}
	transfers, cost := all.Changes[0], all.Changes[1]
	if transfers.All != (Share{4, 4}) || transfers.Wide != (Share{4, 4}) || len(transfers.Delays) != 4 || transfers.Median == nil || *transfers.Median < 2 || *transfers.Median > 40 {
		t.Errorf("transfers: %+v", transfers)
	}
	if cost.All != (Share{0, 4}) || len(cost.Delays) != 0 {
		t.Errorf("cost: %+v", cost)
	}
	if text, err := json.Marshal(cost); err != nil || !bytes.Contains(text, []byte(`"median_delay":null,"delays":[]`)) {
		t.Errorf("cost in JSON: %s, %v", text, err)
	}
	if all.Required.All != (Share{4, 8}) || all.Required.Within(transfers.Delays[3]) != 50 || all.Required.Within(1) != 0 {
		t.Errorf("required: %+v", all.Required)
	}
}

// The alarm of a recording that drifts by itself is false in every order, and finds no change that was put into it.
func TestAlarmOfTheTwinFindsNothing(t *testing.T) {
	own := recording(t, "a", strings.Repeat("g", 80)+"bbbbbbbbbb"+strings.Repeat("g", 30))
	report := tried(t, []inject.Recording{own}, Options{Rules: []Rule{Published()}, Changes: changes("cost"), Split: All})
	all := report.result(All)
	if all.Natural != (Rate{1, 110}) || all.Changes[0].All != (Share{0, 1}) {
		t.Errorf("false alarms %+v, found %+v", all.Natural, all.Changes[0])
	}
}

// A change of fewer than five traces is not tried, and one of fewer than ten is not wide.
func TestNarrowChanges(t *testing.T) {
	for _, c := range []struct {
		after, tried, wide int
	}{{4, 0, 0}, {6, 1, 0}, {10, 1, 1}} {
		report := tried(t, []inject.Recording{recording(t, "a", strings.Repeat("g", 10+2*c.after))},
			Options{Rules: []Rule{Published()}, Changes: changes("cost"), Split: All})
		if got := report.result(All).Changes[0]; got.All.Tried != c.tried || got.Wide.Tried != c.wide {
			t.Errorf("%d altered traces: %+v", c.after, got)
		}
	}
}

// In a permuted order whole sessions have exchanged their starting times. The order follows from agent,
// seed and number.
func TestPermutedOrders(t *testing.T) {
	own := recording(t, "a", strings.Repeat("g", 100)).Traces
	order := permuted(own, 1, 1)
	starts, rows := map[int]time.Time{}, map[int]bool{}
	for i, p := range order {
		if i > 0 && p.at.Before(order[i-1].at) {
			t.Fatalf("trace %d comes before its predecessor", i)
		}
		rows[p.row] = true
		session, start := p.row/10, p.at.Add(-time.Duration(p.row%10)*2*time.Minute)
		if known, ok := starts[session]; ok && !known.Equal(start) {
			t.Fatalf("session %d is torn", session)
		}
		starts[session] = start
	}
	moved, at := 0, map[int64]bool{}
	for session, start := range starts {
		at[start.Unix()] = true
		if !start.Equal(own[10*session].Timestamp) {
			moved++
		}
		if start.Sub(epoch)%(15*time.Minute) != 0 {
			t.Errorf("session %d starts at %s, when none did", session, start)
		}
	}
	if len(rows) != 100 || len(at) != 10 || moved < 5 {
		t.Errorf("%d traces, %d starts, %d sessions moved", len(rows), len(at), moved)
	}
	if !reflect.DeepEqual(order, permuted(own, 1, 1)) || reflect.DeepEqual(order, permuted(own, 1, 2)) || reflect.DeepEqual(order, permuted(own, 2, 1)) {
		t.Error("the order does not follow from seed and number")
	}
	for i, p := range natural(own) {
		if i > 0 && p.at.Before(natural(own)[i-1].at) || !p.at.Equal(own[p.row].Timestamp) {
			t.Fatal("the natural order is not that of the traces' times")
		}
	}
}

// Small series and those of the other half are left out, and the report says why. Both halves together
// are All.
func TestHalvesAndSeriesLeftOut(t *testing.T) {
	recordings := []inject.Recording{recording(t, "x:a", strings.Repeat("g", 60)), recording(t, "y:b", strings.Repeat("g", 50)), recording(t, "c", strings.Repeat("g", 20))}
	o := Options{Rules: []Rule{Published()}, Split: All, LeastTraces: 30}
	report := tried(t, recordings, o)
	if report.Series[2].LeftOut != "20 traces are fewer than 30" || report.Series[0].Sessions != 6 || report.Series[0].Alarms[0].Natural.Traces != 50 {
		t.Errorf("%+v", report.Series)
	}
	if tune, aside, all := report.result(Tune), report.result(Aside), report.result(All); tune.Agents+aside.Agents != 2 || all.Agents != 2 ||
		tune.Natural.Traces+aside.Natural.Traces != 90 || all.Natural.Traces != 90 {
		t.Errorf("%+v, %+v, %+v", tune, aside, all)
	}
	o.Split = report.Series[0].Half
	half := tried(t, recordings, o)
	if len(half.Results) != 1 || half.Series[0].LeftOut != "" || half.Series[1].Half == half.Series[0].Half != (half.Series[1].LeftOut == "") {
		t.Errorf("%+v", half.Series)
	}
}

// The split of the recorded agents is the one with which the detector was tuned.
func TestHalvesOfTheCorpusAgents(t *testing.T) {
	var recordings []inject.Recording
	tune := []string{"tau1-gpt-4o-airline", "tau2-gpt-4.1-retail", "tau2-gpt-4.1-sft-airline", "tau2-gpt-4.1-airline", "tau2-gpt-4.1-sft-telecom"}
	for _, name := range append([]string{"tau2-gpt-4.1-sft-retail", "tau2-gpt-4.1-telecom", "tau2-gpt-4.1-telecom-solo", "tau2-qwen2.5-7b-airline", "tau2-gpt-4.1-sft-telecom-solo"}, tune...) {
		recordings = append(recordings, inject.Recording{Traces: []*schema.Trace{{AgentID: "did:web:agents.example:taubench:" + name}}})
	}
	for agent, half := range Halves(recordings) {
		if want := slices.Contains(tune, agent[strings.LastIndexByte(agent, ':')+1:]); want != (half == Tune) {
			t.Errorf("%s belongs to half %s", agent, half)
		}
	}
}

// On 8,039 recorded traces of real agents, of which none changed, the published rule raises 81 alerts and
// the default none. The default finds the required share of the changes, soon enough, in both halves.
func TestRulesOnTheCorpus(t *testing.T) {
	if raceEnabled {
		t.Skip("takes half a minute with the race detector: make test runs it without; the other tests have several series at once, too")
	}
	report := tried(t, corpus(t), Options{Rules: []Rule{Published(), Default()}, Changes: inject.Library(), Seed: 1, Split: All, LeastTraces: 250, MarkEnds: true})
	for _, want := range []struct {
		half   Half
		alarms Rate // of the published rule
	}{{Tune, Rate{36, 4491}}, {Aside, Rate{45, 3448}}, {All, Rate{81, 7939}}} {
		published, ours := report.result(want.half), report.ofDefault(want.half)
		if published.Natural != want.alarms {
			t.Errorf("%s: false alarms of the published rule %+v, want %+v", want.half, published.Natural, want.alarms)
		}
		if ours.Natural.Alarms != 0 || ours.Natural.Traces < 2500 {
			t.Errorf("%s: false alarms of the default %+v, want none", want.half, ours.Natural)
		}
		if wide := ours.Required.Wide; wide.Percent() < 95 || wide.Tried < 40 || *ours.Required.Median > 40 {
			t.Errorf("%s: the default finds %+v, median delay %d", want.half, wide, *ours.Required.Median)
		}
	}
}

// In the recorded and in 40 permuted orders the default raises at most one false alarm in 10,000 traces, and
// finds 95 % of the changes of the required families, of which the easiest is not counted, with a median delay of at most 40 traces, in both halves.
func TestDefaultReachesTheAim(t *testing.T) {
	if raceEnabled {
		t.Skip("takes minutes with the race detector: make test runs it without")
	}
	library := slices.DeleteFunc(inject.Library(), func(c inject.Change) bool { return strings.HasPrefix(c.Name, "hand-overs") }) // the published rule finds it, too
	report := tried(t, corpus(t), Options{Rules: []Rule{Default()}, Changes: library, Orders: 40, Seed: 1, Split: All, LeastTraces: 250, MarkEnds: true})
	for _, half := range []Half{Tune, Aside} {
		ours := report.ofDefault(half)
		t.Logf("%s: %d false alarms in %d traces; %.1f %% of %d changes found, %.1f %% of %d wide ones, median delay %d", half, ours.Permuted.Alarms, ours.Permuted.Traces,
			ours.Required.All.Percent(), ours.Required.All.Tried, ours.Required.Wide.Percent(), ours.Required.Wide.Tried, *ours.Required.Median)
		if ours.Permuted.PerTenThousand() > 1 || ours.Permuted.Traces < 100_000 {
			t.Errorf("%s: %+v false alarms", half, ours.Permuted)
		}
		if all := ours.Required.All; all.Percent() < 95 || all.Tried < 1800 || *ours.Required.Median > 40 {
			t.Errorf("%s: the default finds %+v, median delay %d", half, all, *ours.Required.Median)
		}
	}
}

// ofDefault returns what the report says of the default rule on one half.
func (r *Report) ofDefault(half Half) *Result {
	return &r.Results[slices.IndexFunc(r.Results, func(result Result) bool { return result.Half == half && result.Rule == "default" })]
}

// A condition counts as an alarm when it opens and when a measure joins it; its counts and its end do not.
func TestEventsThatAreAlarms(t *testing.T) {
	event := func(state schema.AlertState, measures ...string) *schema.DriftAlert {
		return &schema.DriftAlert{State: state, Measures: measures}
	}
	var f follower
	for i, c := range []struct {
		event  *schema.DriftAlert
		alarm  bool
		opened string
	}{
		{nil, false, ""},
		{event(schema.AlertOpened, "denials"), true, "denials"},
		{event(schema.AlertUpdated, "denials"), false, ""},
		{event(schema.AlertUpdated, "denials", "errors"), true, ""},
		{event(schema.AlertUpdated, "denials", "errors"), false, ""},
		{event(schema.AlertClosed, "denials", "errors"), false, ""},
		{nil, false, ""},
		{event(schema.AlertOpened, "errors"), true, "errors"},
	} {
		if alarm, opened := f.alarm(c.event), opening(c.event); alarm != c.alarm || opened != c.opened {
			t.Errorf("event %d: alarm %t, opened by %q", i, alarm, opened)
		}
	}
}

// With MarkEnds the last trace of each session ends it, wherever the order puts it.
func TestMarkedEnds(t *testing.T) {
	own := recording(t, "a", strings.Repeat("g", 60)).Traces
	for _, order := range [][]placed{natural(own), permuted(own, 1, 1)} {
		markEnds(own, order)
		for _, p := range order {
			if p.end != (p.row%10 == 9) {
				t.Errorf("trace %d ends its session: %t", p.row, p.end)
			}
		}
	}
}

// Two runs over recorded agents, in several orders and with all changes, give the same report.
func TestReportsAreTheSame(t *testing.T) {
	recordings := []inject.Recording{recording(t, "a", strings.Repeat("gggggbg", 30)), recording(t, "b", strings.Repeat("g", 100)), recording(t, "c", strings.Repeat("gb", 80))}
	o := Options{Rules: []Rule{Published()}, Changes: inject.Library(), Orders: 2, Seed: 7, Split: All}
	if first, second := tried(t, recordings, o), tried(t, recordings, o); !reflect.DeepEqual(first, second) {
		t.Errorf("%+v\nand\n%+v", first, second)
	}
}

// corpus reads the recorded sessions.
func corpus(t testing.TB) []inject.Recording {
	t.Helper()
	cards, places, all := map[string]*schema.Card{}, map[string]int{}, []inject.Recording(nil)
	for _, line := range published.Lines(t, "corpus/cards.jsonl") {
		c, err := schema.DecodeCard(line)
		if err != nil {
			t.Fatal(err)
		}
		cards[c.CardID] = c
	}
	for _, line := range published.Lines(t, "corpus/traces.jsonl.gz") {
		trace, err := schema.Admit("", line)
		if err != nil {
			t.Fatal(err)
		}
		at, known := places[trace.CardID]
		if !known {
			at, places[trace.CardID] = len(all), len(all)
			all = append(all, inject.Recording{Card: cards[trace.CardID]})
		}
		all[at].Traces = append(all[at].Traces, trace)
	}
	return all
}
