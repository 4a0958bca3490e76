package coherence

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// Step 1 of AAP section 6.5.
func TestAutomaticResolution(t *testing.T) {
	of := func(values string) []string { return strings.Fields(values) }
	includes := func(broader string, narrower ...string) map[string][]string {
		return map[string][]string{broader: narrower}
	}
	for _, c := range []struct {
		name     string
		refuser  draft // initiator
		holder   draft // responder
		resolved bool
		governs  string // the step's reason names it
	}{
		{"the refuser's value includes it", draft{declared: of("a w"), refuses: of("v"), subsumes: includes("w", "v")}, draft{declared: of("a w v")}, true, `"w" subsumes "v"`},
		{"it includes the refuser's value", draft{declared: of("a w"), refuses: of("v"), subsumes: includes("v", "w")}, draft{declared: of("a w v")}, true, `"v" subsumes "w"`},
		{"by what the words mean", draft{declared: of("a privacy"), refuses: of("minimal_data")}, draft{declared: of("a privacy minimal_data")}, false, "no value of the refusing card"},
		{"a value that the refuser does not declare", draft{declared: of("a"), refuses: of("v"), subsumes: includes("w", "v")}, draft{declared: of("a w v")}, false, "no value of the refusing card"},
		{"the holder alone says so", draft{declared: of("a w"), refuses: of("v")}, draft{declared: of("a w v"), subsumes: includes("v", "w")}, false, "a refusal is lifted by the card that refuses"},
		{"each other, by nothing", draft{declared: of("a w"), refuses: of("v"), subsumes: includes("w", "v")}, draft{declared: of("a w v"), subsumes: includes("v", "w")}, false, "neither hierarchy nor priority"},
		{"each other, by order of declaration", draft{declared: of("w a"), refuses: of("v"), subsumes: includes("w", "v"), hierarchy: "lexicographic"},
			draft{declared: of("a w v"), subsumes: includes("v", "w"), hierarchy: "lexicographic"}, true, `"w" governs`},
		{"each other, by priority", draft{declared: of("a w"), refuses: of("v"), subsumes: includes("w", "v"), hierarchy: "lexicographic", priority: map[string]float64{"w": 1}},
			draft{declared: of("v a w"), subsumes: includes("v", "w"), hierarchy: "lexicographic", priority: map[string]float64{"v": 2}}, true, `"w" governs`},
		{"each other, by weight", draft{declared: of("a w"), refuses: of("v"), subsumes: includes("w", "v"), hierarchy: "weighted", priority: map[string]float64{"w": 5}},
			draft{declared: of("v a w"), subsumes: includes("v", "w"), hierarchy: "weighted", priority: map[string]float64{"v": 2}}, true, `"w" governs`},
		{"each other, the holder ranks its own first", draft{declared: of("a w"), refuses: of("v"), subsumes: includes("w", "v"), hierarchy: "weighted", priority: map[string]float64{"w": 1}},
			draft{declared: of("v a w"), subsumes: includes("v", "w"), hierarchy: "weighted", priority: map[string]float64{"v": 2}}, false, "does not put its value above the refusal"},
		{"each other, in other hierarchies", draft{declared: of("w a"), refuses: of("v"), subsumes: includes("w", "v"), hierarchy: "lexicographic"},
			draft{declared: of("a w v"), subsumes: includes("v", "w"), hierarchy: "weighted"}, false, "neither hierarchy nor priority"},
		{"each other, contextual", draft{declared: of("w a"), refuses: of("v"), subsumes: includes("w", "v"), hierarchy: "contextual", priority: map[string]float64{"w": 1}},
			draft{declared: of("a w v"), subsumes: includes("v", "w"), hierarchy: "contextual", priority: map[string]float64{"v": 2}}, false, "neither hierarchy nor priority"},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := Task{Required: []string{"a"}}
			for _, got := range []schema.Assessment{check(t, c.refuser, c.holder, task), check(t, c.holder, c.refuser, task)} {
				step := got.ResolutionSteps[0]
				if step.Step != schema.ResolutionAutomatic || (step.Outcome == schema.StepResolved) != c.resolved || !strings.Contains(step.Reason, c.governs) {
					t.Errorf("step %+v", step)
				}
				if got.Proceed != c.resolved || got.Score != map[bool]float64{true: 1, false: 0.5}[c.resolved] {
					t.Errorf("proceed %v, score %v, reasons %v", got.Proceed, got.Score, got.Reasons)
				}
				if c.resolved && (got.Alignment.Conflicts[0].ResolvedBy != schema.ResolutionAutomatic || !strings.Contains(got.Conditions[0], c.governs)) {
					t.Errorf("conflict %+v, conditions %v", got.Alignment.Conflicts[0], got.Conditions)
				}
			}
		})
	}
}

// Of several values of its own that settle it, the refuser's foremost governs.
func TestTheForemostValueGoverns(t *testing.T) {
	refuser := draft{declared: []string{"w1", "w2"}, refuses: []string{"v"}, subsumes: map[string][]string{"w1": {"v"}, "w2": {"v"}}}
	holder := draft{declared: []string{"w1", "w2", "v"}}
	governs := func(d draft) string { return check(t, d, holder, Task{Required: []string{"w1"}}).Conditions[0] }
	if got := governs(refuser); !strings.HasPrefix(got, `"w1"`) {
		t.Errorf("by order of declaration: %s", got)
	}
	refuser.hierarchy, refuser.priority = "lexicographic", map[string]float64{"w1": 2, "w2": 1}
	if got := governs(refuser); !strings.HasPrefix(got, `"w2"`) {
		t.Errorf("by priority: %s", got)
	}
	refuser.hierarchy = "weighted"
	if got := governs(refuser); !strings.HasPrefix(got, `"w1"`) {
		t.Errorf("by weight: %s", got)
	}
}

// Step 2: the proposal is taken up in another check, and that one proceeds.
func TestNegotiatedResolution(t *testing.T) {
	a := draft{declared: []string{"transparency", "minimal_data"}, refuses: []string{"analytics"}, contact: "mailto:a@example.com"}
	b := draft{declared: []string{"transparency", "analytics"}, contact: "mailto:b@example.com"}
	task := Task{Required: []string{"transparency"}, Proposal: schema.Collaboration{TaskType: "t", DataSharing: &schema.DataSharing{
		FromInitiator: []string{"analytics"}, FromResponder: []string{"catalog", "analytics"}}}}
	got := check(t, a, b, task)
	same(t, "steps", course(got), []string{"automatic analytics failed", "modified_scope analytics proposed"})
	p := got.ProposedResolution
	if got.Proceed || got.Score != 0.5 || p.Type != schema.ResolutionScope || p.Alternative.Type != schema.ResolutionScope || p.Contacts != nil {
		t.Fatalf("%+v, proposed %+v", got, p)
	}
	if s := text(t, p.Alternative); !strings.Contains(s, `"modified_values":{"responder_concession":"analytics"}`) ||
		!strings.Contains(s, `"data_sharing":{"from_initiator":["analytics"],"from_responder":["catalog"]}`) ||
		!strings.Contains(s, `Proceed without \"analytics\" of the responder`) {
		t.Errorf("alternative %s", s)
	}
	task.Proposal.ModifiedValues = p.Alternative.ModifiedValues
	again := check(t, a, b, task)
	same(t, "steps", course(again), []string{"automatic analytics failed", "modified_scope analytics resolved"})
	same(t, "conditions", again.Conditions, []string{`the responder lays "analytics" aside for this task`})
	if !again.Proceed || again.Alignment.Conflicts[0].ResolvedBy != schema.ResolutionScope {
		t.Errorf("taken up: %+v", again)
	}
}

// Step 3: what agents cannot settle goes to their principals, with the modified
// scope as the alternative. Where its score would be too low, it says so.
func TestEscalation(t *testing.T) {
	a := draft{agent: "x", declared: []string{"transparency", "honesty", "privacy", "m"}, refuses: []string{"v"}, contact: "mailto:a@example.com"}
	for _, c := range []struct {
		name      string
		initiator draft
		responder draft
		task      Task
		steps     string
		enough    bool
	}{
		{"a value that the task requires", a, draft{agent: "y", declared: []string{"transparency", "honesty", "v"}}, Task{Required: []string{"transparency", "honesty", "v"}},
			"automatic v failed,modified_scope v failed,escalate_to_principals v required", true},
		{"a standard value", draft{declared: []string{"transparency"}, refuses: []string{"user_control"}}, draft{declared: []string{"transparency", "user_control"}}, Task{Required: []string{"transparency"}},
			"automatic user_control failed,modified_scope user_control failed,escalate_to_principals user_control required", true},
		{"the rest is not enough", a, draft{declared: []string{"v"}}, Task{},
			"automatic v failed,modified_scope v failed,escalate_to_principals v required", false},
		{"nothing is left", draft{declared: []string{"v"}}, draft{declared: []string{"v"}, refuses: []string{"v"}}, Task{},
			"automatic v failed,modified_scope v failed,escalate_to_principals v required", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := check(t, c.initiator, c.responder, c.task)
			same(t, "steps", course(got), strings.Split(c.steps, ","))
			p := got.ProposedResolution
			if got.Proceed || p == nil || p.Type != schema.ResolutionEscalate || p.Alternative == nil ||
				strings.HasSuffix(p.Alternative.Description, "if the principals accept that score") == c.enough || len(p.Contacts) != 2 {
				t.Fatalf("%+v, proposed %+v", got.Coherence, p)
			}
			if p.Contacts[0].Contact != c.initiator.contact || p.Contacts[1].Contact != "" {
				t.Errorf("contacts %+v", p.Contacts)
			}
		})
	}
}

// Nobody lays aside for another what the other cannot: a value required, a
// standard one, one that it does not declare.
func TestConcessionsThatDoNotCount(t *testing.T) {
	a := draft{declared: []string{"a", "b"}, refuses: []string{"v", "fairness"}}
	b := draft{declared: []string{"a", "b", "v", "fairness"}}
	for name, m := range map[string]*schema.ModifiedValues{
		"standard":  {ResponderConcession: schema.Concession{"fairness", "v"}},
		"required":  {ResponderConcession: schema.Concession{"fairness"}},
		"not own":   {InitiatorConcession: schema.Concession{"v", "fairness"}},
		"no values": {},
	} {
		task := Task{Required: []string{"a", "b"}, Proposal: schema.Collaboration{TaskType: "t", ModifiedValues: m}}
		if name == "required" {
			task.Required = []string{"a", "b", "v"}
			m.ResponderConcession = schema.Concession{"v"}
		}
		if got := check(t, a, b, task); got.Proceed {
			t.Errorf("%s: proceeds under %v", name, got.Conditions)
		}
	}
}

// A low score without a conflict is no conflict to resolve.
func TestALowScoreProposesNothing(t *testing.T) {
	got := check(t, draft{declared: []string{"a"}}, draft{declared: []string{"b"}}, Task{})
	same(t, "reasons", codes(got), []string{":score_below_minimum"})
	if got.ProposedResolution != nil || len(got.ResolutionSteps) != 0 {
		t.Errorf("%+v", got.Outcome)
	}
}
