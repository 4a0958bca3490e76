package queries_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// truth is what a fleet did, from its traces and cards alone.
type truth struct {
	traces     []*schema.Trace // those that are stored, in the order of publishing
	cards      map[string]*schema.Card
	violations map[string]map[string]bool // ids of traces by the type of their violation
}

func newTruth(t *testing.T, cards [][]byte, records []stream.Record, violations map[string]map[string]bool) *truth {
	t.Helper()
	all := &truth{cards: map[string]*schema.Card{}, violations: violations}
	for _, raw := range cards {
		card, err := schema.DecodeCard(raw)
		if err != nil {
			t.Fatal(err)
		}
		all.cards[card.CardID] = card
	}
	for _, record := range records {
		if trace, err := schema.Admit(record.Agent, record.Data); err == nil {
			all.traces = append(all.traces, trace)
		}
	}
	return all
}

// sessions returns all sessions in the order of their first trace.
func (all *truth) sessions() (keys []store.SessionKey) {
	seen := map[store.SessionKey]bool{}
	for _, trace := range all.traces {
		if key := (store.SessionKey{AgentID: trace.AgentID, SessionID: schema.SessionID(trace)}); !seen[key] {
			keys, seen[key] = append(keys, key), true
		}
	}
	return keys
}

// counted returns how often each text occurs among the traces.
func (all *truth) counted(of func(*schema.Trace) []string) map[string]int {
	counts := map[string]int{}
	for _, trace := range all.traces {
		for _, text := range of(trace) {
			counts[text]++
		}
	}
	return counts
}

// deniedByTrigger returns the ids of executed traces for which a trigger with action deny of one of the
// two forms of the corpus and the small fleet matches: "name", and "name > number".
func (all *truth) deniedByTrigger() (ids []string) {
	for _, trace := range all.traces {
		card := all.cards[trace.CardID]
		if card == nil || trace.Action.Type != schema.ActionExecute {
			continue
		}
		if slices.ContainsFunc(card.Autonomy.EscalationTriggers, func(trigger schema.Trigger) bool {
			return trigger.Action == schema.TriggerDeny && holds(trace, trigger.Condition)
		}) {
			ids = append(ids, trace.TraceID)
		}
	}
	return ids
}

// holds reports whether a condition "name" or "name > number" holds for a trace.
func holds(trace *schema.Trace, condition string) bool {
	name, limit, compared := strings.Cut(condition, " > ")
	for _, members := range []schema.Members{trace.Action.Parameters, trace.Context.Metadata, trace.Context.Members} {
		value, found := members.Get(name)
		if !found {
			continue
		}
		if !compared {
			return bytes.Equal(value, []byte("true"))
		}
		observed, err := strconv.ParseFloat(string(value), 64)
		wanted, err2 := strconv.ParseFloat(limit, 64)
		return err == nil && err2 == nil && observed > wanted
	}
	return false
}

// unanswered returns the ids of traces that ask for an answer which no later trace of their session
// gives, by the id of the escalation or the name of the action.
func (all *truth) unanswered() (ids []string) {
	for i, trace := range all.traces {
		if !trace.Escalation.Required || reportsAnswer(trace) {
			continue
		}
		if !slices.ContainsFunc(all.traces[i+1:], func(later *schema.Trace) bool {
			return later.AgentID == trace.AgentID && schema.SessionID(later) == schema.SessionID(trace) &&
				(later.Escalation.EscalationID == trace.Escalation.EscalationID || later.Action.Name == trace.Action.Name) && reportsAnswer(later)
		}) {
			ids = append(ids, trace.TraceID)
		}
	}
	return ids
}

// recordedLoops are the sessions of the corpus that repeat an action (aap/session.TestCorpusLoops).
var recordedLoops = []string{"4f2686af", "cae68900", "8ac8f10b", "c11efbca", "ac425abd", "5612fc39"}

// loops returns how many of the sessions repeat an action.
func (all *truth) loops() (n int64) {
	for _, session := range all.sessions() {
		if slices.Contains(recordedLoops, session.SessionID[:8]) {
			n++
		}
	}
	return n
}

// reportsAnswer reports whether a trace has the answer to an escalation, as its status or as the principal's
// decision.
func reportsAnswer(trace *schema.Trace) bool {
	e := &trace.Escalation
	return e.Reports(schema.EscalationApproved) || e.Reports(schema.EscalationDenied) || e.Reports(schema.EscalationTimeout)
}

// outside returns "agent action" for each trace whose action its card does not list as bounded.
func (all *truth) outside(trace *schema.Trace) []string {
	card := all.cards[trace.CardID]
	if card == nil || schema.NewActionSet(card.Autonomy.BoundedActions).Allows(trace.Action.Name) {
		return nil
	}
	return []string{trace.AgentID + " " + trace.Action.Name}
}

// values returns "agent value declared" for each value that a trace applies.
func (all *truth) values(trace *schema.Trace) (texts []string) {
	card := all.cards[trace.CardID]
	if card == nil {
		return nil
	}
	for _, value := range trace.Decision.ValuesApplied {
		declared := 0
		if slices.Contains(card.Values.Declared, value) {
			declared = 1
		}
		texts = append(texts, fmt.Sprintf("%s %s %d", trace.AgentID, value, declared))
	}
	return texts
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// sums returns the sum of a column by the key of other columns.
func sums(t *testing.T, rows []row, column string, by ...string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, r := range rows {
		all[r.key(by...)] += r.number(t, column)
	}
	return all
}

// column returns the values of a column, sorted.
func column(rows []row, name string) []string {
	values := make([]string, len(rows))
	for i, r := range rows {
		values[i] = r.key(name)
	}
	slices.Sort(values)
	return values
}

// same requires that an answer equals what was computed.
func same[M ~map[string]int](t *testing.T, what string, got, want M) {
	t.Helper()
	maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("%s:\nthe answer is %v\ncomputed     %v", what, got, want)
	}
}

// sameIDs requires that an answer names the ids that were computed, each as often.
func sameIDs(t *testing.T, what string, got, want []string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s:\nthe answer is %v\ncomputed     %v", what, got, want)
	}
}
