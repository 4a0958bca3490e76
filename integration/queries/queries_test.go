package queries_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

var (
	update = flag.Bool("update", false, "measure each query on the whole corpus and write the times into docs/QUERIES.md")
	nth    = flag.Int("nth", 3, "TestQueriesOnCorpus uses every n-th recorded session; 1: the whole corpus, see make corpus")
)

// askAll asks every question of the page.
func (s *site) askAll(t *testing.T, parameters map[string]string) answers {
	t.Helper()
	got := answers{}
	for _, q := range questions(t) {
		got[q.number], _ = s.ask(t, q.query, parameters)
	}
	return got
}

const pointsQuery = "SELECT agent_id, card_id, status, similarity, streak, event_time, stream_sequence FROM drift_points FINAL"

// Recorded sessions of all agents go through all stages: they are judged and sealed as expected, and every question
// has the answer that follows from their traces and cards.
func TestQueriesOnCorpus(t *testing.T) {
	corpus := pipelinetest.ReadCorpus(t)
	if !*update {
		corpus = corpus.Part(t, *nth)
	}
	all := newTruth(t, corpus.Cards, corpus.Records, corpus.Violations)
	s := newSite(t, corpus.Cards, nil, corpus.Records, len(corpus.Records), all.sessions())
	if *update {
		s.measure(t, parametersOf(all.traces[0]))
	}
	s.checkCorpusIsJudged(t, corpus)
	s.checkCorpusIsSealed(t, all)
	s.checkDisk(t)
	got := s.check(t, all, all.traces[0], nil, 0)
	if want := len(all.deniedByTrigger()); len(got[7]) != want {
		t.Errorf("7. %d actions were denied and done, want %d", len(got[7]), want)
	}
	for _, number := range []int{2, 9, 13, 19, 24, 26, 28, 30, 31, 32} {
		if len(got[number]) != 0 {
			t.Errorf("%d. the answer is %v, want none: nothing of this kind was recorded", number, got[number])
		}
	}
}

// check asks all questions, about one trace where that is asked for, and compares the answers with what
// all says.
func (s *site) check(t *testing.T, all *truth, trace *schema.Trace, unsealed []store.SessionKey, copies int) answers {
	t.Helper()
	got := s.askAll(t, parametersOf(trace))
	points, _ := s.ask(t, pointsQuery, nil)
	all.checkWhoAndWhat(t, got)
	all.checkDrift(t, got, points)
	all.checkCase(t, got, trace, s.dir+"/bundles", true)
	all.checkSessions(t, got, all.denied(unsealed))
	checkCopies(t, got[29], len(all.traces), copies)
	return got
}

// denied returns the sessions with a trace that leads to deny, without those of unsealed.
func (all *truth) denied(unsealed []store.SessionKey) (sessions []string) {
	bad := map[string]bool{}
	for _, id := range all.deniedByTrigger() {
		bad[id] = true
	}
	for _, ids := range all.violations {
		maps.Copy(bad, ids)
	}
	for _, trace := range all.traces {
		key := store.SessionKey{AgentID: trace.AgentID, SessionID: schema.SessionID(trace)}
		if bad[trace.TraceID] && !slices.Contains(sessions, key.SessionID) && !slices.Contains(unsealed, key) {
			sessions = append(sessions, key.SessionID)
		}
	}
	return sessions
}

// checkCopies compares the answer to question 29.
func checkCopies(t *testing.T, got []row, traces, copies int) {
	t.Helper()
	if len(got) != 1 || got[0].number(t, "traces") != traces || got[0].number(t, "copies") != copies {
		t.Errorf("29. the answer is %v, want %d traces and %d copies", got, traces, copies)
	}
}

// The small fleet: every question has an answer that is not empty. The answers are the same after
// every row was stored twice, with the settings of plumbline sql.
func TestQueriesOnSmallFleet(t *testing.T) {
	f := newSmall()
	all := newTruth(t, f.cards, f.records, f.violations)
	s := newSite(t, f.cards, []string{"ac-desk-1"}, f.records, len(all.traces), f.sealed)
	var unsealed []store.SessionKey
	for _, key := range all.sessions() {
		if !slices.Contains(f.sealed, key) {
			unsealed = append(unsealed, key)
		}
	}
	for _, copies := range []int{0, len(all.traces)} {
		if copies > 0 {
			s.copyRows(t)
			s.settings = sqlSettings
		}
		trace := all.traces[2]
		f.checkRest(t, s.check(t, all, trace, unsealed, copies), unsealed)
		earlier := parametersOf(trace)
		earlier["at"] = f.began.AddDate(0, 0, -40).Format(time.DateTime)
		for session, want := range map[string]string{"s-9": "m-1 m-2 m-3", "s-10": "n-1 n-2"} {
			in, _ := s.ask(t, questions(t)[15].query, map[string]string{"agent": "shop", "session": session})
			var order []string
			for _, r := range in {
				order = append(order, r["trace_id"])
			}
			if strings.Join(order, " ") != want {
				t.Errorf("16. the order of %s is %v, want %s", session, order, want)
			}
		}
		if in, _ := s.ask(t, questions(t)[24].query, earlier); len(in) != 1 || in[0]["card_id"] != "ac-shop-0" {
			t.Errorf("25. 40 days before, card %v was in force", in)
		}
	}
}

// checkRest compares the answers that have no row on the corpus, by what newSmall says.
func (f *small) checkRest(t *testing.T, got answers, unsealed []store.SessionKey) {
	t.Helper()
	only := func(number int, columns string, want ...string) {
		t.Helper()
		var answered []string
		for _, r := range got[number] {
			answered = append(answered, r.key(strings.Fields(columns)...))
		}
		if !slices.Equal(answered, want) {
			t.Errorf("%d. the answer is %q, want %q", number, answered, want)
		}
	}
	only(2, "agent_id last_seen card_id", "desk NULL ac-desk")
	only(7, "trace_id source severity action_name", "t-refund finding CRITICAL refund", "t-do session_finding CRITICAL transfer")
	only(8, "trace_id severity session_id", "t-over MEDIUM s-3")
	only(9, "trace_id escalation_id session_id", "t-plain  s-8", "t-wait esc-3 s-4")
	only(13, "session_id part trace_id", "s-1 1 t-4")
	only(14, "agent_id drifting_since baseline_mode", "drifter "+all14(f)+" first")
	var open []string
	for _, r := range got[19] {
		open = append(open, r.key("agent_id", "session_id", "state"))
		if r["traces"] != r["unsealed_traces"] {
			t.Errorf("19. %v", r)
		}
	}
	var want []string
	for _, key := range unsealed {
		want = append(want, key.AgentID+" "+key.SessionID+" open")
	}
	slices.Sort(open)
	sameIDs(t, "19. not sealed", open, want)
	only(24, "card_id", "ac-shop")
	only(26, "agent_id card_id traces", "guest ac-none 1")
	only(28, "stage agent_id reason", "verifier shop invalid_json")
	only(30, "agent_id trace_id", "shop t-x")
	only(32, "agent_id cards measured compared", "guest 1 1 0")
	only(31, "agent_id session_id trace_id", "shop s-11 r-3")
	for number, rows := range got {
		if len(rows) == 0 {
			t.Errorf("%d. has no answer on the small fleet", number)
		}
	}
}

// all14 returns the time of the trace that opened the alert, as ClickHouse prints it.
func all14(f *small) string {
	for i, record := range f.records {
		if bytes.Contains(record.Data, []byte(`"d-12"`)) {
			return f.began.Add(time.Duration(i) * time.Second).Format("2006-01-02 15:04:05.000000000")
		}
	}
	return ""
}

// measure writes the median time of each query into the page.
func (s *site) measure(t *testing.T, parameters map[string]string) {
	t.Helper()
	const runs = 7
	var table strings.Builder
	table.WriteString("| question | rows | ms |\n|---|---|---|\n")
	for _, q := range questions(t) {
		var times []time.Duration
		rows := 0
		for range runs {
			answer, took := s.ask(t, q.query, parameters)
			times, rows = append(times, took), len(answer)
		}
		slices.Sort(times)
		fmt.Fprintf(&table, "| %d. %s | %d | %.0f |\n", q.number, q.title, rows, float64(times[runs/2].Microseconds())/1000)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(text), "| question | rows | ms |\n")
	if !found {
		t.Fatal("the page has no table of times")
	}
	if err := os.WriteFile(page, []byte(head+table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
