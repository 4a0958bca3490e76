package web

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

// card registers a card that bounds an agent to some actions.
func (r *rig) card(s *store.Store, agent, id string, issued time.Time, actions ...string) {
	r.t.Helper()
	text := fmt.Sprintf(`{"aap_version":"0.1.0","card_id":%q,"agent_id":%q,"issued_at":%q,"principal":{"type":"human","relationship":"delegated_authority"},`+
		`"values":{"declared":["honesty"]},"autonomy_envelope":{"bounded_actions":["%s"],"escalation_triggers":[]},"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`,
		id, agent, issued.UTC().Format(time.RFC3339), strings.Join(actions, `","`))
	card, err := schema.DecodeCard([]byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := s.InsertCards(r.t.Context(), issued, []*schema.Card{card}); err != nil {
		r.t.Fatal(err)
	}
}

// drift stores the points of an agent's traces: the first baseline of them belong to the baseline, the others have
// these similarities.
func (r *rig) drift(agent string, facts []fact, similarities ...float64) {
	r.t.Helper()
	learned := len(facts) - len(similarities)
	var points []store.DriftPoint
	for i, f := range facts {
		at := time.Now().Add(-f.ago)
		p := store.DriftPoint{AgentID: agent, CardID: "ac-1", TraceID: f.trace, TraceDigest: r.digests[f.trace], EngineVersion: "plumbline-drift/10 (x)", EventTime: at, Received: at,
			RetainUntil: store.RetainUntil(time.Now().Add(time.Hour)), StreamCreated: time.Unix(1, 0), Sequence: uint64(i + 1), SessionID: f.session, Status: "baseline", Threshold: .3, Mode: "sessions"}
		if i >= learned {
			p.Status, p.Similarity = "normal", &similarities[i-learned]
		}
		points = append(points, p)
	}
	if err := r.rows.InsertDriftPoints(r.t.Context(), points); err != nil {
		r.t.Fatal(err)
	}
	last := time.Now().Add(-facts[len(facts)-1].ago)
	if err := r.rows.InsertDriftStates(r.t.Context(), []store.DriftState{{AgentID: agent, CardID: "ac-1", StreamCreated: time.Unix(1, 0), Version: 1, LastEvent: last}}); err != nil {
		r.t.Fatal(err)
	}
	formed := time.Now().Add(-facts[learned-1].ago)
	err := r.rows.InsertDriftBaselines(r.t.Context(), []store.DriftBaseline{{AgentID: agent, CardID: "ac-1", BaselineID: schema.DigestOf([]byte(agent)), Mode: "sessions", EngineVersion: "plumbline-drift/10 (x)",
		FormedAt: formed, Received: formed, Traces: uint32(learned), Features: []string{"action:execute", "action_name:search", "value:honesty", "value:greed"}, Weights: []float64{1, 1, 1, .1}}})
	if err != nil {
		r.t.Fatal(err)
	}
}

// The agent's page compares what the agent does with its baseline, and its card with the one before.
func TestAgent(t *testing.T) {
	r := start(t, nil)
	r.card(r.rows, "shop", "ac-0", time.Now().Add(-48*time.Hour), "search")
	r.card(r.rows, "shop", "ac-1", time.Now().Add(-24*time.Hour), "search", "compare")
	var facts []fact
	for i := range 40 { // the last ten act outside the card, undeclared and unescalated, for less benefit and with other words
		f := fact{agent: "shop", trace: fmt.Sprint("t-", i), session: fmt.Sprint("s-", i/10), ago: time.Duration(50-i) * time.Minute, action: "search", benefit: "0.9", text: "the cheapest of two pairs of shoes is chosen"}
		if i >= 30 {
			f.action, f.value, f.findings, f.benefit, f.text = "buy", "greed", []string{"DENIED_BUT_ACTED"}, "0.1", strings.Repeat("ZQXJ ", 20)
		}
		facts = append(facts, f)
	}
	r.put(r.rows, facts...)
	similarities := make([]float64, 20)
	for i := range similarities {
		similarities[i] = .9
	}
	similarities[19] = .1
	r.drift("shop", facts, similarities...)
	r.alert(r.rows, "shop", "it buys what it never bought")
	text := r.visitor("").page("/agent?id=shop", "<dt>traces shown</dt><dd>40</dd>", "it buys what it never bought", "0.860 on average", "threshold 0.30",
		"lowest 0.100, 1 below 0.30", "<dd>20 traces</dd>", "DENIED_BUT_ACTED", "compared with <bdi>ac-0</bdi>", "class=\"added\">&#43;       &#34;compare&#34;", ">s-3<",
		"are those of 10 traces of each minute at most, and of 200 of the baseline")
	for name, want := range map[string]string{"Denials": "<b>0 %</b> <span class=\"soft\">baseline 0 %", "Not escalated": "<b>100 %</b>", "Undeclared values": "<b>25 %</b> <span class=\"soft\">baseline 0 %",
		"New tools": "<b>25 %</b> <span class=\"soft\">baseline 0 %", "Value honesty": "<b>75 %</b> <span class=\"soft\">baseline 100 %",
		"Reasoning": "<b>58 chars</b> <span class=\"soft\">baseline 44<", "Benefit": "<b>0.70</b> <span class=\"soft\">baseline 0.90", "Wording": "baseline 1.00"} {
		if got := measureOn(text, name); !strings.Contains(got, want) {
			t.Errorf("measure %s does not say %q:\n%s", name, want, got)
		}
	}
	if got := measureOn(text, "Wording"); !strings.Contains(got, "<b>0.7") && !strings.Contains(got, "<b>0.6") { // nearly all of the last ten have nothing in common
		t.Errorf("the wording of the last ten is that of the baseline:\n%s", got)
	}
	for _, name := range []string{"Errors", "Value greed"} { // no trace says how its action went, and the card declares no greed
		if got := measureOn(text, name); got != "" {
			t.Errorf("measure %s is drawn without what it measures:\n%s", name, got)
		}
	}
	r.visitor("").page("/agent?id=shop&for=30d", `aria-current="true">30d</a>`, "from its latest hour with traces")
	r.server.textTime = 0
	r.visitor("").page("/agent?id=shop", "could not be read in time", "<h3><bdi>New tools")
	for _, path := range []string{"/agent", "/agent?id=nobody", "/agent?id=" + strings.Repeat("x", 2000), "/agent?id=shop&card=none"} {
		if code, _ := r.visitor("").get(path); code != 404 {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// measureOn returns the text of a measure on a page, without its chart; empty if it is not on it.
func measureOn(page, name string) string {
	_, text, _ := strings.Cut(page, "<h3><bdi>"+name+"</bdi>")
	text, _, _ = strings.Cut(text, "<figure")
	return text
}

// What an agent's page counts lies within its charts, an agent that is not compared yet is not said to be as before, and
// the figure of open alerts is that of all. Errors are those of the actions that say how they went.
func TestFiguresOfAnAgent(t *testing.T) {
	r := start(t, nil)
	last := time.Now().Truncate(time.Minute).Add(-2*time.Hour + 30*time.Second)
	facts := []fact{{agent: "a", trace: "t-1", session: "s", at: last.Add(-time.Hour + 10*time.Second), ago: time.Since(last) + time.Hour - 10*time.Second, execution: `{"tool_name":"x","error":"no"}`},
		{agent: "a", trace: "t-2", session: "s", at: last, ago: time.Since(last)}}
	r.put(r.rows, facts...)
	r.drift("a", facts, .9)
	v := r.visitor("")
	v.page("/agent?id=a&for=1h", "<dt>trace shown</dt><dd>1</dd>")
	text := v.page("/agent?id=a", "<dt>traces shown</dt><dd>2</dd>", `aria-current="true">6h</a>`)
	if got := measureOn(text, "Errors"); !strings.Contains(got, "<b>100 %</b>") {
		t.Errorf("of one action that failed and one that is not known:\n%s", got)
	}
	if got := measureOn(text, "Cost"); got != "" {
		t.Errorf("the cost of an execution that states none:\n%s", got)
	}
	r.put(r.rows, fact{agent: "paid", trace: "p-1", session: "s", execution: `{"tool_name":"x","cost_cents":3}`})
	if got := measureOn(v.page("/agent?id=paid"), "Cost"); !strings.Contains(got, "<b>3.0 ct</b>") {
		t.Errorf("the cost of an execution that states it:\n%s", got)
	}
	r.put(r.rows, fact{agent: "new", trace: "n-1", session: "s"})
	if text := v.page("/agent?id=new", "nothing is compared before"); strings.Contains(text, "behaves as before") {
		t.Errorf("an agent without a baseline is said to be as before:\n%s", text)
	}
	var summaries []string
	for i := range agentAlerts + 3 {
		summaries = append(summaries, fmt.Sprint("change ", i))
	}
	r.alert(r.rows, "a", summaries...)
	v.page("/agent?id=a", fmt.Sprintf("<dt>open drift alerts</dt><dd>%d</dd>", len(summaries)), fmt.Sprintf("%d of %d", agentAlerts, len(summaries)))
	for i := range agentCards + 1 {
		r.card(r.rows, "a", fmt.Sprint("ac-", i), time.Now().Add(-time.Duration(i)*time.Hour), "search")
	}
	v.page("/agent?id=a", fmt.Sprintf("the newest %d", agentCards))
}

// The end of an axis is written as it is drawn, and in the unit of the figures.
func TestAxes(t *testing.T) {
	for _, c := range []struct {
		unit string
		mean float64
		want string
	}{
		{"ct", .33, "0.37"}, {"ct", 1.8, "2.0"}, {"ct", 3.9, "4.3"}, {"ct", 230, "260"}, {"ct", 0, "1.0"}, {"ct", 12345, "14\u2009000"}, {"chars", 233, "260"},
		{"", 0, "10 %"}, {"", .123, "14 %"}, {"", .97, "100 %"}, {" ", .4, "0.44"}, {" ", .95, "1.00"}, {" ", 3.2, "3.60"},
	} {
		m := measure{unit: c.unit}
		m.add(0, false, counted{sum: c.mean * 10, of: 10})
		chart, drawn := m.chart(rows.Span{To: time.Unix(60, 0), From: time.Unix(0, 0), Step: time.Minute}, nil)
		if !drawn || chart.Top != c.want {
			t.Errorf("the axis of a mean of %v %s ends at %q, want %q", c.mean, c.unit, chart.Top, c.want)
		}
		top, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(chart.Top, " %"), "\u2009", ""), 64)
		if strings.HasSuffix(chart.Top, "%") {
			top /= 100
		}
		if want := "0," + level(c.mean, top); err != nil || !strings.HasPrefix(chart.Paths[0], want+" ") {
			t.Errorf("a mean of %v %s is drawn at %q, want %q on an axis to %s (%v)", c.mean, c.unit, chart.Paths[0], want, chart.Top, err)
		}
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"a b c", "a b c", " a b c"}, {"a b c", "a c", " a-b c"}, {"a c", "a b c", " a+b c"}, {"x", "a", "-x+a"}, {"a b", "b a", "-a b+a"},
	} {
		got := ""
		for _, line := range diff(strings.Split(c.before, " "), strings.Split(c.after, " "), true) {
			got += line.Sign + line.Text
		}
		if got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

// The search finds each kind by its name, and of the token's agents only.
func TestSearch(t *testing.T) {
	r := start(t, nil, "all-token * traces:read,bundles:read", "shop-token shop traces:read")
	r.put(r.rows, fact{agent: "shop", trace: "trace-shop", session: "sealed-1"}, fact{agent: "shop", trace: "trace-2", session: "open-1"}, fact{agent: "other", trace: "trace-other", session: "sealed-2"})
	r.card(r.rows, "shop", "ac-1", time.Now(), "search")
	r.card(r.rows, "other", "ac-1", time.Now(), "search")
	r.put(r.tenant("neighbour"), fact{agent: "shop", trace: "trace-foreign", session: "foreign"})
	for _, b := range []struct{ agent, session, trace string }{{"shop", "sealed-1", "trace-shop"}, {"other", "sealed-2", "trace-other"}} {
		digest := schema.DigestOf([]byte(b.session))
		if err := r.rows.InsertBundles(t.Context(), []store.Bundle{{AgentID: b.agent, SessionID: b.session, Part: 1, LastPart: true, SHA256: digest, Path: b.session + ".tar.gz",
			TraceCount: 1, TraceIDs: []string{b.trace}, LastSequence: 100, FirstEvent: time.Now(), LastEvent: time.Now(), ExportedAt: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		if err := r.rows.InsertSessions(t.Context(), []store.Session{{AgentID: b.agent, SessionID: b.session, Version: 1, Status: store.SessionSealed, Traces: 1, Bundles: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	all, shop := r.visitor("all-token"), r.visitor("shop-token")
	digest := schema.DigestOf([]byte("sealed-1")).String()
	for query, want := range map[string][]string{
		"sho": {">shop<"}, "sealed": {">sealed-1<", ">sealed-2<", `"state sealed"`}, "open-1": {">open-1<", `"state open"`},
		"trace-shop": {">trace-shop<", ">" + digest[:16] + "<"}, digest[:10]: {">sealed-1<"}, "": {">sealed-1<", ">sealed-2<"},
	} {
		all.page("/search?q="+query, want...)
	}
	for _, query := range []string{"", "trace-foreign", "foreign", "other", "trace-other", "sealed-2", digest[:10]} {
		text := shop.page("/search?q="+query, "does not have the scope bundles:read")
		for _, hidden := range []string{`"><bdi>other<`, `href="/agent?id=other"`, `"><bdi>trace-other<`, `"><bdi>sealed-2<`, `"><bdi>foreign<`, `"><bdi>trace-foreign<`, digest[:16] + "<"} {
			if strings.Contains(text, hidden) {
				t.Errorf("search for %q shows %q:\n%s", query, hidden, text)
			}
		}
	}
	all.page("/search?q=nothing", "Nothing that your token covers has this name")
	all.page("/search", "<h1>Search</h1>", "sealed or held sessions with the latest traces, and the newest bundles")
	if text := shop.page("/search"); strings.Contains(text, "newest bundles") {
		t.Errorf("a token without the scope is told of bundles:\n%s", text)
	}
}
