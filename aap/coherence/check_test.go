package coherence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// The score of AAP section 6.4, and the source of the required values.
func TestScore(t *testing.T) {
	a := draft{declared: []string{"a", "b", "c"}}
	proposal := func(values ...string) schema.Collaboration {
		return schema.Collaboration{TaskType: "t", ValuesIntersection: values}
	}
	for _, c := range []struct {
		name      string
		initiator draft
		responder draft
		task      Task
		score     float64
		matched   string
		unmatched string
		from      schema.RequiredFrom
		proceed   bool
	}{
		{"values_required come first", a, a, Task{Required: []string{"b", "a", "b"}, Proposal: proposal("z")}, 1, "b a", "", "values_required", true},
		{"values_intersection requires nothing", a, a, Task{Proposal: proposal("c", "z")}, 1, "a b c", "", "union", true},
		{"one value of seven is shared", draft{declared: strings.Fields("a b c d")}, draft{declared: strings.Fields("a e f g")}, Task{Proposal: proposal("a")}, 0.1429, "a", "b c d e f g", "union", false},
		{"without any, the union", a, draft{declared: []string{"d", "b", "a"}}, Task{}, 0.5, "a b", "c d", "union", false},
		{"an empty list names none", a, a, Task{Required: []string{}, Proposal: proposal()}, 1, "a b c", "", "union", true},
		{"a value that neither card declares", a, a, Task{Required: []string{"z"}}, 0, "", "z", "values_required", false},
		{"seven of ten", draft{declared: strings.Fields("a b c d e f g")}, draft{declared: strings.Fields("a b c d e f g h i j")}, Task{}, 0.7, "a b c d e f g", "h i j", "union", true},
		{"two of three", a, draft{declared: []string{"a", "b"}}, Task{}, 0.6667, "a b", "c", "union", false},
		{"one conflict in three", a, draft{declared: []string{"a", "b", "c"}, refuses: []string{"c"}}, Task{}, 0.8333, "a b c", "", "union", false},
		{"a conflict outside what is required", a, draft{declared: []string{"a", "b", "c"}, refuses: []string{"c"}}, Task{Required: []string{"a"}}, 0.5, "a", "", "values_required", false},
		{"the penalty is clamped", draft{declared: []string{"a", "b"}, refuses: []string{"a", "b"}}, draft{declared: []string{"a", "b"}, refuses: []string{"a", "b"}}, Task{}, 0, "a b", "", "union", false},
		{"nothing declared", draft{}, draft{}, Task{}, 0, "", "", "union", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := check(t, c.initiator, c.responder, c.task)
			if got.Score != c.score || got.Proceed != c.proceed || got.Metadata.RequiredFrom != c.from {
				t.Errorf("score %v, proceed %v, from %s", got.Score, got.Proceed, got.Metadata.RequiredFrom)
			}
			same(t, "matched", got.Alignment.Matched, strings.Fields(c.matched))
			same(t, "unmatched", got.Alignment.Unmatched, strings.Fields(c.unmatched))
		})
	}
}

// The comparison uses the score before it is rounded.
func TestTheUnroundedScoreIsCompared(t *testing.T) {
	values := make([]string, 1000)
	for i := range values {
		values[i] = fmt.Sprintf("v%d", i)
	}
	th := aap.DefaultThresholds()
	th.MinCoherence, th.Methodology = 0.69905, "a test"
	strict, err := NewAssessor(th)
	if err != nil {
		t.Fatal(err)
	}
	a, b := draft{declared: values}.party(t), draft{declared: values[:699]}.party(t)
	got := strict.Check(a, b, Task{}, now)
	if got.Proceed || got.Score != 0.699 || got.Metadata.Methodology != "a test" || got.Metadata.MinCoherence != 0.69905 {
		t.Errorf("%+v", got)
	}
	th = aap.DefaultThresholds()
	th.BehavioralSimilarity, th.Methodology = 0.4, "of verdicts alone"
	published, err := NewAssessor(th)
	if err != nil {
		t.Fatal(err)
	}
	if got := published.Check(a, b, Task{}, now); got.Metadata.Methodology != "" {
		t.Errorf("under the published threshold: %+v", got.Metadata)
	}
	if got := assessor(t).Check(a, draft{declared: values[:700]}.party(t), Task{}, now); !got.Proceed {
		t.Errorf("700 of 1000 values: %v", got.Reasons)
	}
}

// A score equal to MIN_COHERENCE_FOR_PROCEED proceeds (AAP section 8.3). So does a modified
// scope that reaches it.
func TestScoreAtTheThreshold(t *testing.T) {
	values := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for matched, proceeds := range map[int]bool{6: false, 7: true, 8: true} {
		got := check(t, draft{declared: values}, draft{declared: values[:matched]}, Task{Required: values})
		if got.Score != float64(matched)/10 || got.Proceed != proceeds {
			t.Errorf("%d of 10: score %v, proceed %v, reasons %v", matched, got.Score, got.Proceed, got.Reasons)
		}
		refusing := draft{declared: values, refuses: []string{"v"}}
		responder := draft{declared: append([]string{"v"}, values[:matched]...)}
		p := check(t, refusing, responder, Task{Required: values}).ProposedResolution
		if p == nil || (p.Type == schema.ResolutionScope) != proceeds {
			t.Errorf("%d of 10 values match without the conflict: proposed %+v", matched, p)
		}
	}
}

func TestAnAssessorRefusesThresholds(t *testing.T) {
	th := aap.DefaultThresholds()
	th.MinCoherence = 0.5
	if _, err := NewAssessor(th); err == nil || !strings.Contains(err.Error(), "methodology") {
		t.Errorf("a changed threshold without methodology: %v", err)
	}
}

func TestConflictsAreListedBySide(t *testing.T) {
	got := check(t, draft{declared: []string{"a", "x"}, refuses: []string{"y"}}, draft{declared: []string{"a", "y"}, refuses: []string{"x"}}, Task{})
	want := []schema.ValueConflict{
		{InitiatorValue: "x", ResponderValue: "y", ConflictType: "incompatible", RefusedBy: schema.Responder,
			Description: `the responder refuses to coordinate with "x", which the initiator declares; "y" is the foremost value that the responder alone declares`},
		{InitiatorValue: "x", ResponderValue: "y", ConflictType: "incompatible", RefusedBy: schema.Initiator,
			Description: `the initiator refuses to coordinate with "y", which the responder declares; "x" is the foremost value that the initiator alone declares`},
	}
	if text(t, got.Alignment.Conflicts) != text(t, want) {
		t.Errorf("conflicts %s", text(t, got.Alignment.Conflicts))
	}
	if got.Score != 0.2222 { // 1/3 * (1 - 0.5*2/3)
		t.Errorf("score %v", got.Score)
	}
}

// The value of the refusing card that is listed as opposed to the refused one.
func TestConflictsPairTwoValues(t *testing.T) {
	holder := draft{declared: []string{"a", "v"}}
	for name, c := range map[string]struct {
		refuser draft
		against string
	}{
		"the one that it alone declares":            {draft{declared: []string{"a", "w", "x"}, refuses: []string{"v"}}, "w"},
		"of several, the foremost":                  {draft{declared: []string{"a", "w", "x"}, refuses: []string{"v"}, hierarchy: "lexicographic", priority: map[string]float64{"w": 2, "x": 1}}, "x"},
		"where it shares all, the foremost of them": {draft{declared: []string{"a"}, refuses: []string{"v"}}, "a"},
		"the one that includes it":                  {draft{declared: []string{"a", "w", "x"}, refuses: []string{"v"}, subsumes: map[string][]string{"x": {"v"}}}, "x"},
		"the very same, where it declares it":       {draft{declared: []string{"a", "v", "w"}, refuses: []string{"v"}}, "v"},
		"none, where it declares none":              {draft{refuses: []string{"v"}}, schema.ConflictsWith},
	} {
		there, back := check(t, c.refuser, holder, Task{}).Alignment.Conflicts[0], check(t, holder, c.refuser, Task{}).Alignment.Conflicts[0]
		if there.InitiatorValue != c.against || there.ResponderValue != "v" || there.RefusedBy != schema.Initiator {
			t.Errorf("%s: %+v", name, there)
		}
		if back.ResponderValue != c.against || back.InitiatorValue != "v" || back.RefusedBy != schema.Responder {
			t.Errorf("%s, initiator and responder exchanged: %+v", name, back)
		}
	}
}

// The conflict of AAP section 6.3.4: two values, and a resolution with its alternative.
func TestTheSpecificationsConflict(t *testing.T) {
	got := check(t, draft{declared: []string{"transparency", "minimal_data"}, refuses: []string{"comprehensive_analytics"}},
		draft{declared: []string{"transparency", "comprehensive_analytics"}}, Task{Required: []string{"transparency", "data_minimization"}})
	c, p := got.Alignment.Conflicts[0], got.ProposedResolution
	if c.InitiatorValue != "minimal_data" || c.ResponderValue != "comprehensive_analytics" || c.ConflictType != "incompatible" {
		t.Errorf("conflict %+v", c)
	}
	if got.Compatible || got.Score != 0.375 { // 1/2 * (1 - 0.5*1/2)
		t.Errorf("score %v", got.Score)
	}
	if p == nil || p.Type != schema.ResolutionEscalate || p.Alternative == nil || p.Alternative.Type != schema.ResolutionScope ||
		text(t, p.Alternative.ModifiedValues) != `{"responder_concession":"comprehensive_analytics"}` ||
		!strings.HasSuffix(p.Alternative.Description, "if the principals accept that score") {
		t.Errorf("proposed %s", text(t, p))
	}
}

// A card that is not in force declares nothing; the result says which card it is and why.
func TestCardsNotInForce(t *testing.T) {
	good := draft{declared: []string{"a"}, expires: "2026-03-01T12:00:00Z"}
	party := good.party(t)
	with := func(change func(*Party)) Party {
		p := party
		change(&p)
		return p
	}
	for _, c := range []struct {
		name  string
		party Party
		at    time.Time
		want  string
	}{
		{"in force to its last moment", party, now, ""},
		{"expired", party, now.Add(time.Nanosecond), "responder:card_expired"},
		{"issued by a fast clock", party, time.Date(2025, 12, 31, 23, 55, 0, 0, time.UTC), ""},
		{"not yet issued", party, time.Date(2025, 12, 31, 23, 54, 59, 0, time.UTC), "responder:card_not_yet_issued"},
		{"unknown", Party{CardID: "ac-9"}, now, "responder:card_unknown"},
		{"revoked", with(func(p *Party) { p.RevokedAt = now }), now, "responder:card_revoked"},
		{"to be revoked", with(func(p *Party) { p.RevokedAt = now.Add(time.Second) }), now, ""},
		{"superseded", with(func(p *Party) { p.Newer = "ac-2" }), now, "responder:card_superseded"},
		{"another card", with(func(p *Party) { p.CardID = "ac-9" }), now, "responder:card_mismatch"},
		{"another agent", with(func(p *Party) { p.AgentID = "mallory" }), now, "responder:agent_mismatch"},
		{"as named", with(func(p *Party) { p.CardID, p.AgentID = "ac", "agent" }), now, ""},
		{"all at once", with(func(p *Party) { p.CardID, p.RevokedAt, p.Newer = "ac-9", now, "ac-2" }), now.Add(time.Hour),
			"responder:card_mismatch responder:card_expired responder:card_revoked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			initiator := draft{declared: []string{"a"}}.party(t)
			initiator.Card.IssuedAt = time.Time{}
			got := assessor(t).Check(initiator, c.party, Task{Required: []string{"a"}}, c.at)
			invariants(t, got)
			same(t, "reasons", codes(got), strings.Fields(c.want))
			if c.want == "" {
				return
			}
			if got.Score != 0 || len(got.Alignment.Matched) != 0 || got.Reasons[0].CardID == "" || got.Reasons[0].Description == "" {
				t.Errorf("%+v", got)
			}
		})
	}
	both := assessor(t).Check(Party{CardID: "x"}, Party{}, Task{}, now)
	same(t, "both unknown", codes(both), []string{"initiator:card_unknown", "responder:card_unknown"})
}

// Where a card is not in force, nothing is proposed.
func TestNothingIsProposedWithoutBothCards(t *testing.T) {
	good := draft{declared: []string{"a"}, forbidden: []string{"sell"}}.party(t)
	expired := draft{declared: []string{"a", "v"}, refuses: []string{"a"}, forbidden: []string{"sell"}, expires: "2026-02-01T00:00:00Z"}.party(t)
	task := Task{Proposal: schema.Collaboration{TaskType: "t", AutonomyScope: &schema.AutonomyScope{
		InitiatorActions: []string{"sell"}, ResponderActions: []string{"sell"}}}}
	for _, pair := range [][2]Party{{good, expired}, {expired, good}, {expired, expired}} {
		got := assessor(t).Check(pair[0], pair[1], task, now)
		invariants(t, got)
		if got.ProposedResolution != nil || len(got.ResolutionSteps) != 0 || len(got.Alignment.Conflicts) != 0 {
			t.Errorf("%+v", got.Outcome)
		}
	}
}

// A conflict and a forbidden action must both be resolved.
func TestOneConflictAndOneForbiddenAction(t *testing.T) {
	a := draft{declared: []string{"a"}, refuses: []string{"v"}, forbidden: []string{"sell"}}
	b := draft{declared: []string{"a", "v"}}
	got := check(t, a, b, Task{Required: []string{"a"}, Proposal: schema.Collaboration{TaskType: "t",
		AutonomyScope: &schema.AutonomyScope{InitiatorActions: []string{"sell"}}}})
	same(t, "steps", course(got), []string{"automatic v failed", "modified_scope v proposed", "modified_scope sell proposed"})
	if got.ProposedResolution == nil {
		t.Error("nothing is proposed")
	}
}

func TestCardsBeyondWhatIsCompared(t *testing.T) {
	many := make([]string, maxValues+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	long := make([]string, 200)
	for i := range long {
		long[i] = fmt.Sprint(i) + strings.Repeat("x", 400)
	}
	for name, d := range map[string]draft{"declared": {declared: many}, "refused": {refuses: many}, "bytes": {declared: long}} {
		got := check(t, d, draft{declared: []string{"a"}}, Task{})
		same(t, name, codes(got), []string{"initiator:too_many_values"})
	}
	full := make([]string, 128) // at the limit
	for i := range full {
		full[i] = fmt.Sprintf("%0*d", maxValueBytes/len(full), i)
	}
	if got := check(t, draft{declared: full}, draft{declared: full}, Task{}); !got.Proceed {
		t.Errorf("at the bound: %v", codes(got))
	}
}

// The result fits into a message however much two cards contradict each other.
func TestTheLargestResultFitsAMessage(t *testing.T) {
	mine, yours := make([]string, maxValues), make([]string, maxValues)
	for i := range mine {
		mine[i], yours[i] = fmt.Sprintf("m%018d", i), fmt.Sprintf("y%018d", i)
	}
	actions := make([]string, schema.MaxScopeActions)
	for i := range actions {
		actions[i] = fmt.Sprintf("forbidden-%0100d", i)
	}
	a := draft{declared: mine, refuses: yours, forbidden: actions}.party(t)
	b := draft{declared: yours, refuses: mine}.party(t)
	task := Task{Proposal: schema.Collaboration{TaskType: "t", AutonomyScope: &schema.AutonomyScope{InitiatorActions: actions}}}
	got := assessor(t).Check(a, b, task, now)
	raw, err := schema.EncodeHandshake(Answer(&schema.CoherenceCheck{RequestID: "r"}, got, now))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.DecodeHandshake(raw); err != nil {
		t.Error(err)
	}
	steps := map[schema.ResolutionKind]int{}
	for _, s := range got.ResolutionSteps {
		steps[s.Step]++
	}
	for _, kind := range []schema.ResolutionKind{schema.ResolutionAutomatic, schema.ResolutionScope, schema.ResolutionEscalate} {
		if steps[kind] != maxListed {
			t.Errorf("%d steps of kind %s are listed", steps[kind], kind)
		}
	}
	if len(got.Alignment.Conflicts) != maxListed || got.Reasons[len(got.Reasons)-2].Description != "unresolved conflicts: 2000" {
		t.Errorf("%d conflicts listed, reasons end with %+v", len(got.Alignment.Conflicts), got.Reasons[len(got.Reasons)-2:])
	}
}

func TestConditionsOfTheAutonomyScope(t *testing.T) {
	a := draft{declared: []string{"a"}, bounded: []string{"search", "compare: two offers"}}
	b := draft{declared: []string{"a"}, bounded: []string{"answer"}, relation: "advisory"}
	scope := func(mine, theirs string) Task {
		return Task{Proposal: schema.Collaboration{TaskType: "t", AutonomyScope: &schema.AutonomyScope{
			InitiatorActions: strings.Fields(mine), ResponderActions: strings.Fields(theirs)}}}
	}
	same(t, "within bounds", check(t, a, a, scope("search compare", "search")).Conditions, []string{})
	same(t, "beyond bounds, advisory", check(t, a, b, scope("search buy", "answer")).Conditions, []string{
		`the initiator escalates before "buy", which its card does not bound`,
		"the responder only recommends: its principal decides on its actions",
	})
	same(t, "no actions", check(t, a, b, Task{}).Conditions, []string{})
}

func TestModifiedScopeOmitsForbiddenActions(t *testing.T) {
	a := draft{declared: []string{"a"}, bounded: []string{"search"}, forbidden: []string{"sell"}}
	task := Task{Proposal: schema.Collaboration{TaskType: "t", AutonomyScope: &schema.AutonomyScope{
		InitiatorActions: []string{"search", "sell"}, ResponderActions: []string{"search"}}}}
	got := check(t, a, a, task)
	same(t, "reasons", codes(got), []string{"initiator:forbidden_action"})
	same(t, "steps", course(got), []string{"modified_scope sell proposed"})
	if got.Score != 1 || got.ProposedResolution.Type != schema.ResolutionScope {
		t.Errorf("score %v, proposed %+v", got.Score, got.ProposedResolution)
	}
	task.Proposal.AutonomyScope = got.ProposedResolution.Alternative.AutonomyScope
	if again := check(t, a, a, task); !again.Proceed {
		t.Errorf("the proposed scope was not accepted: %+v", again.Reasons)
	}
}
