package bench

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/child"
	_ "github.com/plumbline/plumbline/engine/serve" // the engine runs in the test binary itself
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) {
	child.Dispatch()
	os.Exit(m.Run())
}

// A measurement ends without an error only if every trace was counted, by the floor and by the stages.
func TestScenariosMeasureEverything(t *testing.T) {
	cfg := Config{Traces: 400, Agents: 20, Instances: 1, Rounds: 1, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Progress: func(m string) { t.Log(m) }}
	drain, err := Drain(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.WithoutFloor = true
	agents, err := Agents(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Rows = 600 // 300 pass through the stages, and are copied once
	rows, err := Rows(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Publishers, cfg.Lines, cfg.Rate = 3, 50, 2000
	cfg.Stages = []string{machine.Ingest, machine.Verifier, machine.Exporter}
	steady, err := Steady(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got  *Result
		used string // the processes whose CPU is known
	}{
		"drain":  {drain, "broker engine verifier"},
		"agents": {agents, "broker drift engine verifier"},
		"rows":   {rows, "broker engine verifier"},
		"steady": {steady, "broker engine exporter ingest verifier"},
	} {
		r := c.got
		if r.Scenario != name || r.Traces != 400 || r.Rate <= 0 || r.CPUSum <= 0 || len(r.Warnings) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if used := strings.Join(slices.Sorted(maps.Keys(r.CPU)), " "); used != c.used || len(r.RSS) != len(r.CPU) {
			t.Errorf("%s: CPU of %s, memory of %v, want of %s", name, used, r.RSS, c.used)
		}
		var text strings.Builder
		if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), name) {
			t.Errorf("error %v, text:\n%s", err, &text)
		}
		checkMembers(t, r)
	}
	if drain.FloorRate <= 0 || drain.Ratio != drain.Rate/drain.FloorRate || drain.P50 != nil || !drain.Held {
		t.Errorf("drain: %+v", drain)
	}
	if agents.Other["cards"] < 20 || agents.Other["cards_settled_s"] <= 0 || agents.Other["first_s"] <= 0 || agents.Other["of_few"] <= 0 || agents.Rates["watched"] <= 0 {
		t.Errorf("agents: %+v", agents)
	}
	if len(rows.Asked) != len(questions) || *rows.P99 != slices.Max(slices.Collect(maps.Values(rows.Asked))) || rows.Row["traces"] < 100 || rows.Row["bundles"] < 10 {
		t.Errorf("rows: %+v", rows)
	}
	if steady.P50 == nil || *steady.P50 > *steady.P99 || steady.Queryable["p50"] <= *steady.P50 || steady.Seconds["sealed"] < steady.Seconds["answered"] ||
		steady.Seconds["answered"] < 0.19 {
		t.Errorf("steady: %+v", steady)
	}
}

// checkMembers requires the members that scripts read, in every result.
func checkMembers(t *testing.T, r *Result) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scenario", "traces", "rate", "floor_rate", "ratio", "cpu_us", "rss_mib", "p50_ms", "p99_ms", "held"} {
		if _, there := object[name]; !there {
			t.Errorf("%s: no member %s in %s", r.Scenario, name, text)
		}
	}
}

// Posted traces are dated when they become due, or within the last minute. A few planted ones have a wrong time.
func TestPostedTracesAreDatedNow(t *testing.T) {
	const traces = 4000
	old := newLoad(fleet.Config{Agents: 50, Traces: traces}, time.Now())
	for name, c := range map[string]struct {
		cfg           Config
		began, lasted time.Duration // of the dates, after now
	}{
		"steady": {Config{Agents: 50, Rate: 200}, startsWithin, 20 * time.Second},
		"all":    {Config{Agents: 50}, -datedWithin, datedWithin},
		"old":    {Config{Agents: 50, Rate: 200, Old: true}, -time.Hour, time.Hour},
	} {
		now := time.Now()
		l := c.cfg.postedLoad(old)
		inside, onTime := 0, 0
		for i, r := range l.records {
			trace, err := schema.Admit(r.Agent, r.Data)
			if err != nil {
				t.Fatal(err)
			}
			if at := trace.Timestamp.Sub(now); at >= c.began-time.Second && at <= c.began+c.lasted+time.Second {
				inside++
			}
			if late := l.begins.Add(l.due[i]).Sub(trace.Timestamp); late > -time.Millisecond && late < time.Millisecond {
				onTime++
			}
		}
		if len(l.records) != traces || inside < traces*98/100 || onTime < traces*98/100 {
			t.Errorf("%s: of %d traces, %d are dated in time, and %d when they are due", name, len(l.records), inside, onTime)
		}
		p := posting{load: l, rate: c.cfg.Rate}
		if lasts := time.Duration(float64(l.due[traces-1]) * p.pace()); c.cfg.Rate > 0 && (lasts < 19*time.Second || lasts > 20*time.Second) {
			t.Errorf("%s: the last trace is due after %s, want 20 s", name, lasts)
		}
	}
}

// measurementOf returns a measurement of 100 traces that took so many seconds.
func measurementOf(l *load, seconds float64) *measured {
	d := time.Duration(seconds * float64(time.Second))
	return &measured{load: l, took: d, until: map[string]time.Duration{"sealed": 2 * d}, used: map[string]usage{"verifier": {cpu: d, peak: int64(seconds) << 20}}}
}

// A ratio is of one round, and the median of the rounds' ratios is not that of the rates.
func TestRatiosAreOfOneRound(t *testing.T) {
	l := newLoad(fleet.Config{Agents: 10, Traces: 200}, time.Unix(1_800_000_000, 0)).only(100)
	r := combine([]*Result{
		measurementOf(l, 2).result("drain", measurementOf(l, 1)),
		measurementOf(l, 12).result("drain", measurementOf(l, 10)),
		measurementOf(l, 5).result("drain", measurementOf(l, 2)),
	})
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9 }
	if !near(r.Rate, 20) || !near(r.FloorRate, 50) || !near(r.Ratio, 0.5) || !near(r.Ratios["sealed"], 0.25) || !near(r.CPU["verifier"], 50_000) || r.RSS["verifier"] != 12 {
		t.Errorf("combined: %+v", r)
	}
}

func TestQuantilesAreMeasuredValues(t *testing.T) {
	all := make([]time.Duration, 1000)
	for i := range all {
		all[len(all)-1-i] = time.Duration(i+1) * time.Millisecond
	}
	for q, want := range map[float64]float64{0.5: 500, 0.99: 990, 0.999: 999, 1: 1000} {
		if got := *quantile(all, q); got != want {
			t.Errorf("quantile %v is %v ms, want %v", q, got, want)
		}
	}
}

func TestLowerRatiosAreReported(t *testing.T) {
	const options = `"options":{"traces":9,"agents":9,"rounds":1,"instances":1,"publishers":1,"lines":25`
	recorded, err := ReadRatios([]byte(`{"scenario":"drain","ratio":0.6,` + options + "}}\n\n" + `{"scenario":"all","ratio":0.3,"ratios":{"sealed":0.2,"watched":0.1},` + options + "}}\n" +
		`{"scenario":"steady","ratio":0.1,"held":true,` + options + `,"rate":5000}}` + "\n"))
	if err != nil || len(recorded) != 3 {
		t.Fatalf("%d results, %v", len(recorded), err)
	}
	drain, all, steady := recorded[0], recorded[1], recorded[2]
	for want, d := range map[string][]Difference{
		"drain: the recorded ratio is 0.600, the measured one 0.515: good":                                                          Compare(drain, &Result{Ratio: 0.515}),
		"drain: the recorded ratio is 0.600, the measured one 0.505: FAIL: lower by more than 15 %":                                 Compare(drain, &Result{Ratio: 0.505}),
		"drain: the recorded ratio is 0.600, the measured one 0.700: higher by more than 15 %: record the new result":               Compare(drain, &Result{Ratio: 0.7}),
		"all, sealed: the recorded ratio is 0.200, the measured one 0.160: FAIL: lower by more than 15 %":                           Compare(all, &Result{Ratio: 0.3, Ratios: figures{"sealed": 0.16, "watched": 0.1}}),
		"all, watched: the recorded ratio is 0.100, the measured one 0.000: FAIL: lower by more than 15 %":                          Compare(all, &Result{Ratio: 0.3, Ratios: figures{"sealed": 0.2}}),
		"steady at 5000/s in posts of 25, held: the recorded ratio is 1.000, the measured one 0.000: FAIL: lower by more than 15 %": Compare(steady, &Result{Ratio: 0.1}),
	} {
		fails, said := 0, ""
		for i := range d {
			said += d[i].String() + "\n"
			if d[i].Slower() {
				fails++
			}
		}
		if !strings.Contains(said, want+"\n") || fails != strings.Count(want, "FAIL") {
			t.Errorf("%d fail:\n%swant %s", fails, said, want)
		}
	}
}

// What cannot be measured again is an error of its line. It is never passed over: the check would succeed.
func TestFaultyRatiosAreRefused(t *testing.T) {
	good := func(scenario, more string) string {
		return `{"scenario":"` + scenario + `","options":{"traces":9,"agents":9,"rounds":1,"instances":1` + more + `}}` + "\n"
	}
	drain := good("drain", "")
	for text, want := range map[string]string{
		"":                            "no recorded result",
		drain + "\nnothing\n":         "line 3: invalid character",
		`{"scenario":"drain"}`:        `line 1, scenario "drain": traces: 0, want at least 1`,
		drain + good("drian", ""):     `line 2, scenario "drian": unknown, want one of agents, all, drain`,
		good("rows", ""):              "rows: 0, want at least 1",
		good("all", `,"lines":5`):     "publishers: 0, want at least 1",
		good("ingest", postOptions):   "",
		good("steady", postOptions):   "rate: 0, want more than 0",
		good("drain", `,"rounds":-1`): "rounds: -1, want at least 1",
	} {
		if _, err := ReadRatios([]byte(text)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	recorded, err := ReadRatios([]byte(drain + good("seal", "") + drain))
	if err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]int{"": 3, "drain": 2, "seal,drain": 3, "rows": 0, "drain,rows": 0} {
		chosen, err := Choose(recorded, strings.FieldsFunc(names, func(r rune) bool { return r == ',' }))
		if len(chosen) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d results, error %v, want %d", names, len(chosen), err, want)
		}
	}
}

const postOptions = `,"publishers":1,"lines":1`

func TestStagesThatCannotWork(t *testing.T) {
	for stages, want := range map[string]string{
		"ingest":                         "",
		"ingest,drift":                   "",
		"exporter,verifier,ingest,drift": "",
		"":                               "ingest must be one of them",
		"verifier":                       "ingest must be one of them",
		"ingest,ingest":                  "ingest is there twice",
		"ingest,exporter":                "exporter needs verifier",
		"ingest,webhooks":                `"webhooks" is none: want some of ingest, verifier, drift, exporter`,
	} {
		cfg := Config{Traces: 1, Agents: 1, Rounds: 1, Instances: 1, Publishers: 1, Lines: 1, Stages: strings.FieldsFunc(stages, func(r rune) bool { return r == ',' })}
		if err := cfg.Validate("all"); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", stages, err, want)
		}
	}
}

// Agents beyond those at work have cards of their own, which can be read.
func TestCopiesOfCards(t *testing.T) {
	l := newLoad(fleet.Config{Agents: 3, Traces: 10}, time.Now())
	l.copies = 2*len(l.cards) + 1
	keys, agents := map[string]bool{}, map[string]bool{}
	for write := range l.registered() {
		card, err := schema.DecodeCard(write.Value)
		if err != nil {
			t.Fatalf("key %s: %v", write.Key, err)
		}
		keys[write.Key], agents[card.AgentID] = true, true
		if write.Key != subject.Token(card.CardID) {
			t.Errorf("card %s is at key %s", card.CardID, write.Key)
		}
	}
	if want := 3*len(l.cards) + 1; len(keys) != want || len(agents) < 3*3+1 {
		t.Errorf("%d keys and %d agents, want %d keys", len(keys), len(agents), want)
	}
}

func TestLoadKeepsEachAgentsOrder(t *testing.T) {
	const publishers = 4
	l := newLoad(fleet.Config{Agents: 50, Traces: 2000}, time.Now())
	if len(l.records) != 2000 {
		t.Errorf("%d records, want those that are stored", len(l.records))
	}
	of, total := map[string]int{}, 0
	for p, mine := range l.byAgent(publishers) {
		if len(mine) == 0 || !slices.IsSorted(mine) {
			t.Errorf("publisher %d has %d traces, in another order than the load", p, len(mine))
		}
		for _, i := range mine {
			agent := l.records[i].Agent
			if before, seen := of[agent]; seen && before != p {
				t.Fatalf("agent %s is with two publishers", agent)
			}
			of[agent] = p
		}
		total += len(mine)
	}
	if total != len(l.records) {
		t.Errorf("%d traces are with publishers, want %d", total, len(l.records))
	}
}

// The option leaves out the signatures of agents, and nothing else.
func TestUnsignedLoadHasNoSignature(t *testing.T) {
	signed := func(l *load) (n int) {
		for _, r := range l.records {
			if bytes.Contains(r.Data, []byte(`"signature":`)) {
				n++
			}
		}
		return n
	}
	usual, bare := newLoad(fleet.Config{Agents: 50, Traces: 2000}, time.Now()), newLoad(fleet.Config{Agents: 50, Traces: 2000, Unsigned: true}, time.Now())
	if n := signed(usual); n < len(usual.records)/20 {
		t.Errorf("%d of %d usual traces are signed", n, len(usual.records))
	}
	if n := signed(bare); n > 0 || len(bare.records) != len(usual.records) {
		t.Errorf("%d of %d traces without signatures are signed; %d are usual", n, len(bare.records), len(usual.records))
	}
}
