package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

// large is a trace that is as large as a trace may be, with text in every member that takes any.
func large(t *testing.T, id string) string {
	t.Helper()
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, item func(i int) any) (all []any) {
		for i := range n {
			all = append(all, item(i))
		}
		return all
	}
	trace := map[string]any{
		"trace_id": id, "agent_id": "a", "card_id": "ac-1", "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"action": map[string]any{"type": "execute", "name": long(500), "category": "bounded", "target": map[string]any{"type": long(10_000), "identifier": long(10_000)}, "parameters": map[string]any{"p": long(50_000)}},
		"decision": map[string]any{"selected": "0", "selection_reasoning": long(50_000), "values_applied": many(5_000, func(i int) any { return fmt.Sprint("value-", i, long(90)) }),
			"alternatives_considered": many(200, func(i int) any {
				return map[string]any{"option_id": fmt.Sprint(i), "description": long(100), "flags": many(20, func(int) any { return long(10) })}
			})},
		"escalation": map[string]any{"evaluated": true, "required": true, "reason": long(10_000), "escalation_status": "pending", "triggers_checked": many(200, func(i int) any {
			return map[string]any{"trigger": long(100), "matched": true}
		}), "principal_response": map[string]any{"decision": long(10_000)}},
		"context": map[string]any{"session_id": "s", "metadata": map[string]any{"execution": map[string]any{"tool_name": long(500), "error": long(10_000)}}},
	}
	text, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > schema.MaxTraceBytes {
		t.Fatalf("the trace has %d bytes", len(text))
	}
	return string(text)
}

// However much agents write, a page stays one that a browser shows; it says what it leaves out.
func TestLargeTexts(t *testing.T) {
	r := start(t, nil)
	var facts []fact
	for i := range decisionsOfPage {
		facts = append(facts, fact{agent: "a", trace: fmt.Sprint("t-", i), record: large(t, fmt.Sprint("t-", i)), text: strings.Repeat("y", 300),
			violations: slices.Repeat([]string{"UNBOUNDED_ACTION"}, 200), findings: slices.Repeat([]string{"OWN_VERDICT_DIFFERS"}, 200)})
	}
	r.put(r.rows, facts...)
	v := r.visitor("")
	const most = 6 << 20 // of a page of 50 traces, each with lists of 30
	if text := v.page(sessionAddress("a", "s", ""), "and more, 5\u2009000 in all", "The first 30 of 200 alternatives", "and more, 400 in all", "and more, 200 in all"); len(text) > most {
		t.Errorf("the session's page has %d bytes", len(text))
	}
	for _, path := range []string{"/search?q=t-1", "/problems", "/agent?id=a", "/"} {
		if text := v.page(path); len(text) > 1<<20 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
	}
}

// A card whose text would fill the page is cut, and is not said to be compared.
func TestLargeCard(t *testing.T) {
	raw := `{"a":` + strings.Repeat("[", 60) + "1" + strings.Repeat(",1", 50_000) + strings.Repeat("]", 60) + "}"
	p := agentPage{}
	p.Cards = append(p.Cards, rows.Card{CardID: "ac-2", Raw: raw}, rows.Card{CardID: "ac-1", Raw: "{}"})
	p.compareCards("")
	size := 0
	for _, line := range p.Diff {
		size += len(line.Text) + 1
	}
	if !p.CardCut || p.Against != nil || size > mostShown+1 {
		t.Errorf("cut %t, compared %t, %d bytes", p.CardCut, p.Against != nil, size)
	}
	p.compareCards("ac-1")
	if p.CardCut {
		t.Error("a small card is cut")
	}
	p.Cards[0].Raw = `[` + strings.Repeat("1,", mostDiff+1) + `1]`
	if p.compareCards(""); !p.CardCut || p.Against != nil {
		t.Error("a card of many lines is said to be compared")
	}
}

// A bundle's file that cannot be read is not said to be a fault of the database.
func TestUnreadableBundle(t *testing.T) {
	dir := t.TempDir()
	r := start(t, func(cfg *Config) { cfg.BundleDir = dir })
	sha256, file := r.bundle(r.rows, dir, "a", "s")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, filepath.Base(file)), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{chainAddress(sha256), "/bundle/" + sha256} {
		if code, text := r.visitor("").get(path); code != http.StatusInternalServerError || strings.Contains(text, "database") || !strings.Contains(text, "cannot read the file") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// What concerns all agents, such as the reason why a service does not work, is for those who may see all of them.
func TestHealthIsForThoseWhoSeeEverything(t *testing.T) {
	r := start(t, nil, "all-token * traces:read", "shop-token shop.* traces:read")
	r.server.env.Health = new(obs.Health)
	r.server.env.Health.Component("exporter", "exporter").Down("session of agent other is held")
	r.visitor("all-token").page("/", "session of agent other is held")
	if text := r.visitor("shop-token").page("/"); strings.Contains(text, "agent other") {
		t.Errorf("a reason that names another agent:\n%s", text)
	}
}

// Many logins with one token end logins with that token, and no others.
func TestLoginsOfOneToken(t *testing.T) {
	s := newSessions(time.Hour)
	other, first := s.begin("other"), s.begin("one")
	second := s.begin("one")
	for range mostOfAToken - 1 {
		s.begin("one")
	}
	if s.of(other) == nil || s.of(first) != nil || s.of(second) == nil || len(s.open) != mostOfAToken+1 {
		t.Errorf("other %t, first %t, second %t, %d logins", s.of(other) != nil, s.of(first) != nil, s.of(second) != nil, len(s.open))
	}
}

// A page for which the token lacks the scope has the visitor's name, and the button to log out.
func TestPageWithoutTheScope(t *testing.T) {
	r := start(t, nil, "plain-token * traces:read")
	code, text := r.visitor("plain-token").get(chainAddress(strings.Repeat("a", 64)))
	if code != http.StatusForbidden || !strings.Contains(text, "Log out") || !strings.Contains(text, "entry-0") {
		t.Errorf("%d %s", code, text)
	}
}

// The delay of a trace is that of its first verdict; one that is judged again later counts once.
func TestDelayOfATraceThatIsJudgedAgain(t *testing.T) {
	r := start(t, nil)
	r.put(r.rows, fact{agent: "a", trace: "t", session: "s", ago: 2 * time.Minute})
	r.put(r.rows, fact{agent: "a", trace: "t", session: "s", ago: 2 * time.Minute, engine: "2", judged: time.Minute, record: r.records["t"]})
	r.visitor("").page("/", "Of 1 trace that arrived", "after <b>200 ms</b>")
}

// Words for times are true, for short ones and for clocks that are ahead, too.
func TestWordsForTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Second: "just now", -time.Second: "just now", -5 * time.Second: "in 5 s", -3 * time.Minute: "in 3 min", 90 * time.Second: "90 s ago"} {
		if got := ago(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	r := start(t, nil)
	r.put(r.rows, fact{agent: "a", trace: "t-1", session: "s", ago: 3500 * time.Millisecond}, fact{agent: "a", trace: "t-2", session: "s", ago: 2 * time.Second})
	if text := r.visitor("").page(sessionAddress("a", "s", "")); strings.Contains(text, "<dd>just now</dd>") || !strings.Contains(text, "<dd>1.5 s</dd>") {
		t.Errorf("the session's time:\n%s", text)
	}
}

// A list that ends at a time keeps its beginning and its end in the form.
func TestProblemsUntilATime(t *testing.T) {
	r := start(t, nil)
	r.put(r.rows, fact{agent: "a", trace: "old", session: "s", ago: 2 * time.Hour, text: "old", violations: []string{"CARD_EXPIRED"}}, fact{agent: "a", trace: "new", session: "s", text: "new", violations: []string{"FORBIDDEN_ACTION"}})
	until := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	text := r.visitor("").page("/problems?span=24h&to="+escaped(until), `name="from" value="`, `name="to" value="`+until+`"`, "<code title=")
	if strings.Contains(text, "<bdi>new</bdi>") || !strings.Contains(text, "<bdi>old</bdi>") {
		t.Errorf("the wrong problems:\n%s", text)
	}
}
