package fleet

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// published is one line and what its admission returned.
type published struct {
	Line
	kind  kind
	trace *schema.Trace
	err   error
}

// earlier caches the results of publish: writing and signing the lines of a fleet takes longest.
var earlier = map[*Fleet][]published{}

// publish returns the lines of a fleet, in order.
func publish(f *Fleet) []published {
	if earlier[f] == nil {
		for line := range f.Lines() {
			trace, err := schema.Admit(line.Agent, line.Raw)
			earlier[f] = append(earlier[f], published{line, f.lines[len(earlier[f])].kind, trace, err})
		}
	}
	return earlier[f]
}

// admitted is one admitted line.
type admitted struct {
	*schema.Trace
	kind kind
}

// admit returns the admitted lines of a fleet, in order.
func admit(f *Fleet) (all []admitted) {
	for _, p := range publish(f) {
		if p.err == nil {
			all = append(all, admitted{p.trace, p.kind})
		}
	}
	return all
}

func TestTimesAreInOrderAndPast(t *testing.T) {
	f := small()[0]
	future := map[string]bool{}
	for _, name := range []string{schema.TimeImplausible, schema.CardRevoked} {
		for _, id := range f.Planted().Findings[name] {
			future[id] = true
		}
	}
	last := map[string]time.Time{}
	for _, trace := range admit(f) {
		if trace.kind != plain {
			continue
		}
		if !trace.Timestamp.After(last[trace.AgentID]) {
			t.Errorf("%s of %s does not follow the trace before it", trace.TraceID, trace.AgentID)
		}
		last[trace.AgentID] = trace.Timestamp
		if trace.Timestamp.Before(start.Add(-DefaultWindow)) || !trace.Timestamp.Before(start) && !future[trace.TraceID] {
			t.Errorf("%s is dated %s", trace.TraceID, trace.Timestamp)
		}
	}
}

func TestSessionsEndOnceAndAreConsistent(t *testing.T) {
	f := small()[0]
	turns, ended := map[string]int64{}, map[string]bool{}
	published := map[string]string{} // trace id → session
	for _, trace := range admit(f) {
		if trace.kind == duplicate {
			continue
		}
		session := trace.AgentID + " " + trace.Context.SessionID
		if ended[session] {
			t.Errorf("%s is published after the end of %s", trace.TraceID, session)
		}
		if trace.kind == plain {
			turns[session]++
		}
		if _, planted := slices.BinarySearch(f.Planted().SessionFindings[schema.TurnOrder], trace.TraceID); !planted && trace.Context.ConversationTurn != turns[session] {
			t.Errorf("%s is turn %d, want %d", trace.TraceID, trace.Context.ConversationTurn, turns[session])
		}
		for _, prior := range trace.Context.PriorTraceIDs {
			if published[prior] != session {
				t.Errorf("%s names %s before it, which is of session %q", trace.TraceID, prior, published[prior])
			}
		}
		published[trace.TraceID] = session
		ended[session] = ended[session] || trace.Context.SessionEnd
	}
	if len(turns) != f.Planted().Sessions || len(ended) != len(turns) {
		t.Errorf("%d sessions, planted %d", len(turns), f.Planted().Sessions)
	}
	for session, length := range turns {
		if !ended[session] || length < shortest || length > longest {
			t.Errorf("session %s: %d traces, ended %v", session, length, ended[session])
		}
	}
}

func TestEchoesAreAsPlanted(t *testing.T) {
	f := small()[0]
	first := map[string][]byte{}
	var duplicates, conflicts []string
	for _, trace := range admit(f) {
		earlier, again := first[trace.TraceID]
		switch {
		case !again:
			first[trace.TraceID] = trace.Raw
		case bytes.Equal(earlier, trace.Raw):
			duplicates = append(duplicates, trace.TraceID)
		default:
			conflicts = append(conflicts, trace.TraceID)
		}
	}
	slices.Sort(duplicates)
	slices.Sort(conflicts)
	p := f.Planted()
	if len(duplicates) == 0 || !slices.Equal(duplicates, p.Duplicates) {
		t.Errorf("duplicates %v, planted %v", duplicates, p.Duplicates)
	}
	if len(conflicts) == 0 || !slices.Equal(conflicts, p.Conflicts) {
		t.Errorf("conflicts %v, planted %v", conflicts, p.Conflicts)
	}
	carried := map[string]bool{}
	for _, lists := range []map[string][]string{p.Violations, p.Findings} {
		for _, ids := range lists {
			for _, id := range ids {
				carried[id] = true
			}
		}
	}
	for _, id := range p.Conflicts {
		if carried[id] || slices.Contains(p.Duplicates, id) {
			t.Errorf("conflict %s has something else planted on it", id)
		}
	}
}

func TestEveryPlantHasItsTraces(t *testing.T) {
	for seed := range uint64(3) {
		f := demo(seed)
		counts := make([]int, len(f.plants))
		for n := range f.steps {
			if p := f.steps[n].plant; p > 0 {
				counts[p-1]++
			}
		}
		for i, count := range counts {
			if count == 0 {
				t.Errorf("seed %d: no trace for plant %d (%v %v)", seed, i, f.plants[i].violations, f.plants[i].findings)
			}
		}
	}
}
