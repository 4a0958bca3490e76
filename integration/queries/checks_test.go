package queries_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// parametersOf returns the parameters of the queries: they ask about one trace of the fleet.
func parametersOf(trace *schema.Trace) map[string]string {
	return map[string]string{
		"from": "1970-01-01", "agent": trace.AgentID, "session": schema.SessionID(trace), "trace": trace.TraceID,
		"at": trace.Timestamp.UTC().Format("2006-01-02 15:04:05.999999999"),
	}
}

// answers are the answers to all questions, by their numbers.
type answers map[int][]row

// checkWhoAndWhat compares the answers to questions 1 to 13.
func (all *truth) checkWhoAndWhat(t *testing.T, got answers) {
	t.Helper()
	agents := all.counted(func(trace *schema.Trace) []string { return []string{trace.AgentID} })
	for _, window := range []string{"traces_5m", "traces_1h", "traces_24h"} {
		same(t, "1. "+window, sums(t, got[1], window, "agent_id"), agents)
	}
	all.checkDays(t, got[3])

	want := map[string]int{}
	for kind, ids := range all.violations {
		for _, trace := range all.traces {
			if ids[trace.TraceID] {
				want[trace.TraceID+" "+kind+" "+trace.Action.Name+" "+trace.AgentID]++
			}
		}
	}
	listed := map[string]int{}
	for _, r := range got[4] {
		listed[r.key("trace_id", "type", "action_name", "agent_id")]++
	}
	same(t, "4. violations", listed, want)

	byType := sums(t, got[6], "problems", "source", "type")
	for kind := range all.violations {
		if n := byType["violation "+kind]; n != len(all.violations[kind]) {
			t.Errorf("6. %s: the answer is %d, computed %d", kind, n, len(all.violations[kind]))
		}
	}
	total := 0
	for _, n := range byType {
		total += n
	}
	counted := sums(t, got[5], "problems")
	if counted[""] != total || total == 0 {
		t.Errorf("5. counts %d problems, 6. counts %d", counted[""], total)
	}

	if days := sums(t, got[3], "problems"); days[""] != total {
		t.Errorf("3. counts %d problems, 6. counts %d", days[""], total)
	}

	denied := all.deniedByTrigger()
	found := slices.DeleteFunc(slices.Clone(got[7]), func(r row) bool { return r["source"] != "finding" })
	sameIDs(t, "7. denied, and done", column(found, "trace_id"), denied)
	for _, r := range got[7] {
		if r["severity"] != "CRITICAL" || r["action_name"] == "" {
			t.Errorf("7. %v: want severity CRITICAL and the action", r)
		}
	}
	waiting := append(column(got[8], "trace_id"), column(got[9], "trace_id")...)
	slices.Sort(waiting)
	sameIDs(t, "8. and 9. without an answer", waiting, all.unanswered())

	forbidden, executed := map[string]int{}, map[string]int{}
	for _, trace := range all.traces {
		if all.violations[schema.ForbiddenAction][trace.TraceID] {
			forbidden[trace.AgentID+" "+trace.Action.Name]++
			if trace.Action.Type == schema.ActionExecute {
				executed[trace.AgentID+" "+trace.Action.Name]++
			}
		}
	}
	same(t, "10. forbidden", sums(t, got[10], "traces", "agent_id", "action_name"), forbidden)
	same(t, "10. executed", sums(t, got[10], "executed", "agent_id", "action_name"), executed)
	same(t, "11. outside the bounded actions", sums(t, got[11], "traces", "agent_id", "action_name"), all.counted(all.outside))
	same(t, "12. values", sums(t, got[12], "traces", "agent_id", "value", "declared"), all.counted(all.values))
}

// checkDays compares the answer to question 3.
func (all *truth) checkDays(t *testing.T, got []row) {
	t.Helper()
	want := map[string]map[string]int{"traces": {}, "executed": {}, "failed": {}, "escalated": {}, "cost_cents": {}, "sessions": {}}
	seen := map[string]bool{}
	for _, trace := range all.traces {
		key := day(trace.Timestamp) + " " + trace.AgentID
		want["traces"][key]++
		want["cost_cents"][key] += int(trace.Context.Execution.CostCents)
		for name, holds := range map[string]bool{
			"executed": trace.Action.Type == schema.ActionExecute, "failed": trace.Context.Execution.Error != "",
			"escalated": trace.Escalation.Required, "sessions": !seen[key+schema.SessionID(trace)],
		} {
			if holds {
				want[name][key]++
			}
		}
		seen[key+schema.SessionID(trace)] = true
	}
	for name, values := range want {
		same(t, "3. "+name, sums(t, got, name, "day", "agent_id"), values)
	}
}

// checkDrift compares the answers to questions 14 and 15 with the measurement of each trace.
func (all *truth) checkDrift(t *testing.T, got answers, points []row) {
	t.Helper()
	newest := map[string]row{} // by agent
	for _, p := range points {
		if p["status"] == "late" || p["status"] == "conflict" {
			continue
		}
		if last, found := newest[p["agent_id"]]; !found || later(t, p, last) {
			newest[p["agent_id"]] = p
		}
	}
	var drifting []string
	for agent, p := range newest {
		if p["status"] == "drift" {
			drifting = append(drifting, agent+" "+p["similarity"]+" "+p["card_id"])
		}
	}
	var answered []string
	for _, r := range got[14] {
		answered = append(answered, r.key("agent_id", "similarity", "drift_card_id"))
		if r["drift_kind"] == "" || r["drifting_since"] == "NULL" {
			t.Errorf("14. %v lacks the kind or the begin", r)
		}
	}
	slices.Sort(answered)
	sameIDs(t, "14. drifting now", answered, drifting)

	measured, low := map[string]int{}, map[string]int{}
	for _, p := range points {
		if p["status"] == "late" || p["status"] == "conflict" || p["similarity"] == "NULL" {
			continue
		}
		key := p["event_time"][:10] + " " + p["agent_id"]
		measured[key]++
		if p["streak"] != "0" {
			low[key]++
		}
	}
	same(t, "15. measured", sums(t, got[15], "measured", "day", "agent_id"), measured)
	same(t, "15. low", sums(t, got[15], "low", "day", "agent_id"), low)
}

// later reports whether a point comes after another in the order of drift.
func later(t *testing.T, p, than row) bool {
	if p["event_time"] != than["event_time"] {
		return p["event_time"] > than["event_time"]
	}
	return p.number(t, "stream_sequence") > than.number(t, "stream_sequence")
}

// checkCase compares the answers to questions 16 to 18 and 25, which are about one trace.
func (all *truth) checkCase(t *testing.T, got answers, trace *schema.Trace, bundles string, sealed bool) {
	t.Helper()
	var order, reported []string
	for _, other := range all.traces {
		if other.AgentID == trace.AgentID && schema.SessionID(other) == schema.SessionID(trace) {
			order = append(order, other.TraceID)
		}
	}
	for _, r := range got[16] {
		reported = append(reported, r["trace_id"])
	}
	if !slices.Equal(reported, order) {
		t.Errorf("16. the order is %v, published was %v", reported, order)
	}
	if len(got[17]) != 1 || got[17][0].key("action_name", "selected", "selection_reasoning") !=
		fmt.Sprintf("%s %s %s", trace.Action.Name, trace.Decision.Selected, trace.Decision.Reasoning) {
		t.Errorf("17. the answer is %v, want the decision of %s", got[17], trace.TraceID)
	}
	if len(got[25]) != 1 || got[25][0]["card_id"] != trace.CardID {
		t.Errorf("25. the answer is %v, want card %s", got[25], trace.CardID)
	}
	if !sealed {
		return
	}
	if len(got[18]) != 1 {
		t.Fatalf("18. trace %s is in bundles %v", trace.TraceID, got[18])
	}
	file, err := os.ReadFile(filepath.Join(bundles, got[18][0]["path"]))
	if err != nil || fmt.Sprintf("%x", sha256.Sum256(file)) != got[18][0]["sha256"] {
		t.Errorf("18. the file of the answer has another digest, or %v", err)
	}
}

// checkSessions compares the answers to questions 20 to 23 and 27.
func (all *truth) checkSessions(t *testing.T, got answers, denied []string) {
	t.Helper()
	sameIDs(t, "20. verdict deny", column(got[20], "session_id"), denied)

	cost, costs, executed := map[string]int{}, map[string]int{}, map[string]int{}
	runs, failed := map[string]int{}, map[string]int{}
	for _, trace := range all.traces {
		e := &trace.Context.Execution
		cost[trace.AgentID] += int(e.CostCents)
		costs[trace.AgentID+" "+schema.SessionID(trace)] += int(e.CostCents)
		if trace.Action.Type == schema.ActionExecute {
			executed[trace.AgentID]++
		}
		if e.Present {
			runs[e.ToolName]++
		}
		if e.Present && e.Error != "" {
			failed[e.ToolName]++
		}
	}
	same(t, "21. cents", sums(t, got[21], "cents", "agent_id"), cost)
	same(t, "21. executed", sums(t, got[21], "executed", "agent_id"), executed)
	for i, r := range got[22] {
		cents := r.number(t, "cost_cents")
		if costs[r.key("agent_id", "session_id")] != cents || i > 0 && cents > got[22][i-1].number(t, "cost_cents") {
			t.Errorf("22. row %d: %v, computed %d", i, r, costs[r.key("agent_id", "session_id")])
		}
	}
	above := 0
	for _, cents := range costs {
		if len(got[22]) > 0 && cents > got[22][len(got[22])-1].number(t, "cost_cents") {
			above++
		}
	}
	if above >= 20 || len(got[22]) == 0 {
		t.Errorf("22. %d sessions cost more than the last one of the answer", above)
	}
	same(t, "23. failed", sums(t, got[23], "failed", "tool_name"), failed)
	for _, r := range got[23] {
		if strconv.Itoa(runs[r["tool_name"]]) != r["executions"] {
			t.Errorf("23. %v, computed %d", r, runs[r["tool_name"]])
		}
	}
	same(t, "27. traces", sums(t, got[27], "traces", "agent_id"), all.counted(func(trace *schema.Trace) []string { return []string{trace.AgentID} }))
}
