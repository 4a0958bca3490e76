package web

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

const hostile = `</title><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "\u202e"

func TestEmptyFleet(t *testing.T) {
	r := start(t, nil)
	r.visitor("").page("/", "No trace within 24 hours", "No alert is open", "No problem was found")
}

// The fleet's page counts what was received within its times, by type and by agent, and not what came before.
func TestFleet(t *testing.T) {
	r := start(t, nil)
	var facts []fact
	for i := range 1200 {
		facts = append(facts, fact{agent: "calm", trace: fmt.Sprint("c-", i), session: "s", ago: time.Duration(i) * time.Second})
	}
	facts = append(facts,
		fact{agent: "wild", trace: "w-1", session: "s", ago: 2 * time.Hour, violations: []string{"FORBIDDEN_ACTION", "FORBIDDEN_ACTION"}, findings: []string{"DENIED_BUT_ACTED"}},
		fact{agent: "past", trace: "p-1", session: "s", ago: 25 * time.Hour, violations: []string{"CARD_EXPIRED"}})
	r.put(r.rows, facts...)
	r.alert(r.rows, "wild", "it buys what it never bought")
	if err := r.rows.InsertSessions(t.Context(), []store.Session{{AgentID: "calm", SessionID: "held", Version: 1, Status: store.SessionHeld, Reason: "rows differ"}}); err != nil {
		t.Fatal(err)
	}
	err := r.rows.InsertDeadLetters(t.Context(), []store.DeadLetter{{Stage: "verifier", Received: time.Now(), Reason: "invalid_json", Raw: []byte("{")}})
	if err != nil {
		t.Fatal(err)
	}
	text := r.visitor("").page("/", "1\u2009201", "FORBIDDEN_ACTION", "DENIED_BUT_ACTED", "it buys what it never bought", "value drift", "after <b>200 ms</b>",
		"<dt>active agents</dt><dd>2</dd>", "<dt>open drift alert</dt><dd>1</dd>", "<dt>problems in 24 hours, 3 critical</dt><dd>3</dd>",
		"<dt>session held</dt><dd>1</dd>", "<dt>open dead letter, 24 hours</dt><dd>1</dd>")
	if strings.Contains(text, "past") || strings.Contains(text, "CARD_EXPIRED") {
		t.Errorf("a trace of yesterday is on the page:\n%s", text)
	}
}

// A problem counts if the current verdict has it, and once.
func TestFleetOfReplacedVerdicts(t *testing.T) {
	r := start(t, nil)
	at := time.Now().Add(-time.Minute)
	problem := []string{"FORBIDDEN_ACTION"}
	r.put(r.rows,
		fact{agent: "cleared", trace: "t-1", session: "s", at: at, violations: problem},
		fact{agent: "cleared", trace: "t-1", session: "s", at: at, engine: "2", judged: time.Second},
		fact{agent: "accused", trace: "t-2", session: "s", at: at},
		fact{agent: "accused", trace: "t-2", session: "s", at: at, engine: "2", judged: time.Second, violations: []string{"CARD_EXPIRED"}},
		fact{agent: "same", trace: "t-3", session: "s", at: at, violations: problem, findings: []string{"DENIED_BUT_ACTED"}})
	r.put(r.rows, fact{agent: "same", trace: "t-3", session: "s", at: at, violations: problem, findings: []string{"DENIED_BUT_ACTED"}}) // a copy
	_, of, err := r.server.rows.Problems(t.Context(), store.Agents{Prefixes: []string{""}}, at.Add(-time.Hour), 10)
	counts := map[string]uint64{}
	for _, one := range of {
		counts[one.AgentID] = one.Problems
	}
	if want := map[string]uint64{"accused": 1, "same": 2}; err != nil || !maps.Equal(counts, want) {
		t.Errorf("problems of %v, want %v; error %v", counts, want, err)
	}
}

// Where traces could not be judged, no page says that they have no problem.
func TestUnjudgedTraces(t *testing.T) {
	r := start(t, nil)
	r.put(r.rows, fact{agent: "a", trace: "t-1", session: "s", unknown: true}, fact{agent: "a", trace: "t-2", session: "s", unknown: true})
	v := r.visitor("")
	v.page("/", "2 traces of 1 agent within 24 hours could not be judged, because nobody has registered their cards: <a class=\"id\" href=\"/agent?id=a\"><bdi>a</bdi></a>. ", "No problem was found in the traces that were judged.", "No agent drifts, and no problem was found in the traces that were judged.")
	v.page("/agent?id=a", "2 traces of this time could not be judged", "No problem was found in the traces of this time that were judged.")
	r.card(r.rows, "a", "ac-1", time.Now(), "search")
	for _, path := range []string{"/", "/agent?id=a"} {
		if text := v.page(path, "No problem was found"); strings.Contains(text, "judged, because") || strings.Contains(text, "that were judged.") {
			t.Errorf("%s: the card is registered:\n%s", path, text)
		}
	}
}

// The first visitor with each token finds figures that were counted before: the database is away by then.
func TestFirstVisitor(t *testing.T) {
	r := start(t, nil, "all-token * traces:read", "shop-token shop.* traces:read", "publisher-token b traces:write")
	r.put(r.rows, fact{agent: "shop.a", trace: "t-1", session: "s"}, fact{agent: "b", trace: "t-2", session: "s"})
	r.server.fleets.fresh = false
	now := time.Now()
	r.server.now = func() time.Time { return now }
	if sets := r.server.covered(); len(sets) != 2 {
		t.Errorf("the sets of agents of tokens that may read: %q", sets)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var counting sync.WaitGroup
	counting.Go(func() { r.server.keepFigures(ctx) })
	for r.server.fleets.answers() < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	counting.Wait()
	if err := r.server.rows.Close(); err != nil {
		t.Fatal(err)
	}
	r.visitor("all-token").page("/", "<dt>active agents</dt><dd>2</dd>")
	r.visitor("shop-token").page("/", "<dt>active agent</dt><dd>1</dd>")
	now = now.Add(3 * time.Minute) // by now they are old, and an answer that does not come keeps nobody waiting
	r.server.fleets.all[keyOf(store.Agents{Prefixes: []string{""}})].asking = &answer[fleetFigures]{done: make(chan struct{})}
	r.visitor("all-token").page("/", "<dt>active agents</dt><dd>2</dd>", "3 min ago; newer figures are being counted")
}

// More alerts are open than the page lists: the figure is that of all.
func TestFleetOfManyAlerts(t *testing.T) {
	r := start(t, nil)
	for i := range fleetAgent + 3 {
		r.alert(r.rows, fmt.Sprint("agent-", i), "it buys what it never bought")
	}
	r.visitor("").page("/", "<dt>open drift alerts</dt><dd>23</dd>", "the newest 20")
}

// A visitor sees the agents of the token, of this tenant, and no others.
func TestFleetOfAToken(t *testing.T) {
	r := start(t, nil, "all-token * traces:read", "shop-token shop.* traces:read", "one-token other traces:read")
	for _, agent := range []string{"shop.a", "other"} {
		r.put(r.rows, fact{agent: agent, trace: "t-" + agent, session: "s", violations: []string{"UNBOUNDED_ACTION"}})
		r.alert(r.rows, agent, "drift of "+agent)
	}
	foreign := r.tenant("neighbour")
	r.put(foreign, fact{agent: "shop.foreign", trace: "t", session: "s", violations: []string{"CARD_MISMATCH"}})
	r.alert(foreign, "shop.foreign", "drift of shop.foreign")
	for token, sees := range map[string]string{"all-token": "shop.a other", "shop-token": "shop.a", "one-token": "other"} {
		visitor := r.visitor(token)
		text := visitor.page("/")
		for _, agent := range []string{"shop.a", "other", "shop.foreign"} {
			want := strings.Contains(sees, agent)
			if strings.Contains(text, ">"+agent+"<") != want || strings.Contains(text, "drift of "+agent+"<") != want {
				t.Errorf("%s: agent %s on the page is not %v:\n%s", token, agent, want, text)
			}
			code, page := visitor.get("/agent?id=" + agent)
			if (code == 200 && strings.Contains(page, "drift of "+agent)) != want {
				t.Errorf("%s: the page of agent %s: %d, want %v", token, agent, code, want)
			}
		}
		if says := strings.Contains(text, "of the agents that your token covers</span>"); says == (token == "all-token") {
			t.Errorf("%s: that the token does not cover every agent is said: %v", token, says)
		}
		if strings.Contains(text, "CARD_MISMATCH") {
			t.Errorf("%s: a problem of another tenant is counted:\n%s", token, text)
		}
	}
}

// Whatever an agent writes is text on every page.
func TestHostileTextIsText(t *testing.T) {
	r := start(t, nil)
	r.put(r.rows, fact{agent: hostile, trace: hostile, session: hostile, text: hostile, violations: []string{hostile}, findings: []string{hostile}})
	r.alert(r.rows, hostile, hostile)
	for _, path := range []string{"/", "/agent?id=" + escaped(hostile), "/search?q=" + escaped(hostile), "/problems", "/problems?agent=" + escaped(hostile) + "&type=" + escaped(hostile), sessionAddress(hostile, hostile, ""), sessionAddress(hostile, hostile, hostile)} {
		text := r.visitor("").page(path, "&lt;script&gt;alert(1)&lt;/script&gt;")
		if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") || strings.Contains(text, `"'`) {
			t.Errorf("%s: text of an agent is markup:\n%s", path, text)
		}
	}
}
