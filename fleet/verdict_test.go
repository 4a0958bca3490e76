package fleet

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// received is the broker's time of every line, revokedAt the time of every revocation.
var (
	received  = start.Add(time.Minute)
	revokedAt = start.Add(30 * time.Second)
)

func newJudge(t *testing.T) *aap.Judge {
	t.Helper()
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		t.Fatal(err)
	}
	return judge
}

func TestVerdictsAreExactlyAsPlanted(t *testing.T) {
	for _, f := range judged() {
		violations, findings := judgeAll(t, f)
		compare(t, f, f.Planted().Violations, violations)
		compare(t, f, f.Planted().Findings, findings)
	}
}

func TestEveryViolationOfTheStreamIsPlanted(t *testing.T) {
	for seed := range uint64(3) {
		planted := demo(seed).Planted()
		for _, name := range []string{schema.UnboundedAction, schema.ForbiddenAction,
			schema.MissedEscalation, schema.UndeclaredValue, schema.CardExpired, schema.CardMismatch} {
			if len(planted.Violations[name]) < 20 {
				t.Errorf("seed %d: %s planted on %d traces only", seed, name, len(planted.Violations[name]))
			}
		}
		for _, name := range []string{schema.BadSignature, schema.CardRevoked} {
			if len(planted.Findings[name]) == 0 {
				t.Errorf("seed %d: %s is not planted", seed, name)
			}
		}
	}
}

// compare checks that the remarks are exactly the same types on the same traces.
func compare(t *testing.T, f *Fleet, want, got map[string][]string) {
	t.Helper()
	for name := range want {
		if _, ok := got[name]; !ok {
			got[name] = nil
		}
	}
	for name, ids := range got {
		if ids = sorted(ids); !slices.Equal(ids, want[name]) {
			t.Errorf("%+v: %s on %d traces, planted on %d: found only %v, planted only %v",
				f.cfg, name, len(ids), len(want[name]), without(ids, want[name]), without(want[name], ids))
		}
	}
}

// without returns up to five elements of a that are not in b.
func without(a, b []string) []string {
	rest := slices.DeleteFunc(slices.Clone(a), func(id string) bool { return slices.Contains(b, id) })
	return rest[:min(5, len(rest))]
}

// judgeAll verifies every admitted line and returns the traces for each remark.
func judgeAll(t *testing.T, f *Fleet) (violations, findings map[string][]string) {
	t.Helper()
	judge, cards := newJudge(t), compileAll(t, f)
	revoked := map[string]time.Time{}
	for _, id := range f.Planted().Revoked {
		revoked[id] = revokedAt
	}
	newest := map[string]*schema.Card{} // by agent; all of them are in force
	for _, c := range f.Cards() {
		newest[c.AgentID] = cards[c.CardID].Card
	}
	violations, findings = map[string][]string{}, map[string][]string{}
	collect := func(into map[string][]string, id string, remarks []schema.Remark) {
		for _, r := range remarks {
			into[r.Type] = append(into[r.Type], id)
		}
	}
	var verdict schema.Verdict
	for _, trace := range admit(f) {
		card := cards[trace.CardID]
		facts := aap.Facts{Received: received, RevokedAt: revoked[trace.CardID]}
		if own := newest[trace.AgentID]; own != card.Card {
			facts.InForce = own.CardID
		}
		judge.Verify(trace.Trace, card, facts, received, &verdict)
		collect(violations, trace.TraceID, verdict.Violations)
		collect(findings, trace.TraceID, verdict.Findings)
		for _, w := range verdict.Warnings {
			if w.Type == schema.WarnUncomparable || w.Type == schema.WarnUnparsedCondition {
				t.Errorf("trace %s: the warning is %+v", trace.TraceID, w)
			}
		}
	}
	return violations, findings
}

func compileAll(t *testing.T, f *Fleet) map[string]*aap.Compiled {
	t.Helper()
	cards := map[string]*aap.Compiled{}
	shapes := map[schema.Shape]bool{}
	for _, c := range f.Cards() {
		compiled, err := aap.Register(c.Raw)
		if err != nil {
			t.Fatalf("card %s: %v", c.CardID, err)
		}
		if compiled.Card.CardID != c.CardID || compiled.Card.AgentID != c.AgentID {
			t.Errorf("card %s of %s is %s of %s inside", c.CardID, c.AgentID, compiled.Card.CardID, compiled.Card.AgentID)
		}
		cards[c.CardID], shapes[compiled.Card.Shape] = compiled, true
	}
	if len(shapes) != 2 {
		t.Errorf("shapes %v, want both", slices.Collect(maps.Keys(shapes)))
	}
	return cards
}
