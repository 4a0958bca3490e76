package coherence

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aap"
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
		governs  string // the reason of the step names it
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

// If several values of the refuser resolve a conflict, its foremost one governs.
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
	refuser.priority = map[string]float64{"w2": 1}
	if got := governs(refuser); !strings.HasPrefix(got, `"w1"`) {
		t.Errorf("if only one has a weight, the order of declaration decides: %s", got)
	}
}

// Step 2: another check accepts the proposal and proceeds.
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
		t.Errorf("the proposed scope was not accepted: %+v", again)
	}
}

// Step 3: conflicts that agents cannot resolve go to their principals, with the modified scope
// as the alternative. If its score is too low, the description says so.
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
		{"a value that the task requires", a, draft{agent: "y", declared: []string{"transparency", "honesty", "privacy", "v"}}, Task{Required: []string{"transparency", "honesty", "privacy", "v"}},
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
			reason := map[bool]string{true: "the agents cannot give up " + quote(got.ResolutionSteps[0].Subject) + ": it takes a human decision", false: "no modified scope is enough"}[c.enough]
			if !strings.HasPrefix(p.Reason, reason) {
				t.Errorf("reason %s", p.Reason)
			}
			if got.Proceed || p.Type != schema.ResolutionEscalate || p.Alternative == nil ||
				strings.HasSuffix(p.Alternative.Description, "if the principals accept that score") == c.enough || len(p.Contacts) != 2 {
				t.Fatalf("%+v, proposed %+v", got.Coherence, p)
			}
			if p.Contacts[0].Contact != c.initiator.contact || p.Contacts[1].Contact != "" {
				t.Errorf("contacts %+v", p.Contacts)
			}
		})
	}
}

// Where no value is required, the agents have nothing to agree on, however low the threshold
// is.
func TestWhereNothingIsRequiredPrincipalsDecide(t *testing.T) {
	th := aap.DefaultThresholds()
	th.MinCoherence, th.Methodology = 0, "a test"
	lenient, err := NewAssessor(th)
	if err != nil {
		t.Fatal(err)
	}
	task := Task{Proposal: schema.Collaboration{TaskType: "t", AutonomyScope: &schema.AutonomyScope{InitiatorActions: []string{"sell"}}}}
	empty := draft{forbidden: []string{"sell"}}.party(t)
	if got := lenient.Check(empty, empty, task, now); got.ProposedResolution.Type != schema.ResolutionEscalate {
		t.Errorf("proposed %+v", got.ProposedResolution)
	}
}

// A result names the first of several values or actions, and the number of the others.
func TestFurtherValuesAndActionsAreCounted(t *testing.T) {
	standard := []string{"fairness", "privacy", "user_control"}
	both := draft{declared: []string{"a", "b", "c", "d", "e", "f", "g"}}
	refusing, holding := both, both
	refusing.refuses, refusing.forbidden = standard, []string{"sell", "buy"}
	holding.declared = append(slices.Clone(both.declared), standard...)
	scope := func(actions ...string) Task {
		return Task{Required: both.declared, Proposal: schema.Collaboration{TaskType: "t", AutonomyScope: &schema.AutonomyScope{InitiatorActions: actions}}}
	}
	for n, want := range map[int]string{
		3: `Proceed without "fairness" of the responder, "privacy" of the responder, "user_control" of the responder`,
		5: `Proceed without "fairness" of the responder, "privacy" of the responder, "user_control" of the responder, ` +
			`the action "sell" of the initiator, the action "buy" of the initiator`,
		7: `Proceed without "fairness" of the responder, "privacy" of the responder, "user_control" of the responder, ` +
			`"x" of the responder, "y" of the responder and 2 more`,
	} {
		task, holder, refuser := scope(), holding, refusing
		if n >= 5 {
			task = scope("sell", "buy")
		}
		if n == 7 {
			holder.declared = append(slices.Clone(holder.declared), "x", "y")
			refuser.refuses = append(slices.Clone(standard), "x", "y")
		}
		got := check(t, refuser, holder, task)
		p := got.ProposedResolution
		if p.Alternative.Description != want {
			t.Errorf("%d: %s", n, p.Alternative.Description)
		}
		if p.Reason != `the agents cannot give up "fairness" and 2 more: it takes a human decision` {
			t.Errorf("%d: %s", n, p.Reason)
		}
		forbidden := slices.IndexFunc(got.Reasons, func(r schema.Reason) bool { return r.Code == schema.ReasonForbiddenAction })
		if (forbidden >= 0) != (n >= 5) || n >= 5 && got.Reasons[forbidden].Description != `its card forbids the proposed action "sell" and 1 more` {
			t.Errorf("%d: reasons %+v", n, got.Reasons)
		}
	}
}

// A modified scope contains exactly the parts of the proposal that change.
func TestAModifiedScopeHasWhatChanges(t *testing.T) {
	a := draft{declared: []string{"a", "b", "m"}, refuses: []string{"v"}, forbidden: []string{"sell"}}
	b := draft{declared: []string{"a", "b", "v"}, refuses: []string{"m"}}
	none := draft{declared: []string{"a", "b"}, forbidden: []string{"sell"}}
	for name, c := range map[string]struct {
		initiator, responder draft
		mine, theirs         string // actions
		sent, received       string // categories of data
		want                 string
	}{
		"an action":             {none, none, "sell search", "search", "x", "y", `{"autonomy_scope":{"initiator_actions":["search"],"responder_actions":["search"]}}`},
		"an action of the last": {none, none, "search", "sell", "x", "y", `{"autonomy_scope":{"initiator_actions":["search"]}}`},
		"values alone":          {a, b, "search", "search", "x", "y", `{"modified_values":{"initiator_concession":"m","responder_concession":"v"}}`},
		"actions and data with the name of a value": {a, b, "search m v", "v search", "m x", "y", `{"modified_values":{"initiator_concession":"m","responder_concession":"v"},` +
			`"autonomy_scope":{"initiator_actions":["search","v"],"responder_actions":["search"]},"data_sharing":{"from_initiator":["x"],"from_responder":["y"]}}`},
		"data of the last": {a, b, "search", "search", "x", "v y", `{"modified_values":{"initiator_concession":"m","responder_concession":"v"},` +
			`"data_sharing":{"from_initiator":["x"],"from_responder":["y"]}}`},
	} {
		task := Task{Required: []string{"a", "b"}, Proposal: schema.Collaboration{TaskType: "t",
			AutonomyScope: &schema.AutonomyScope{InitiatorActions: strings.Fields(c.mine), ResponderActions: strings.Fields(c.theirs)},
			DataSharing:   &schema.DataSharing{FromInitiator: strings.Fields(c.sent), FromResponder: strings.Fields(c.received)}}}
		p := check(t, c.initiator, c.responder, task).ProposedResolution.Alternative
		got := text(t, struct {
			*schema.ModifiedValues `json:"modified_values,omitempty"`
			*schema.AutonomyScope  `json:"autonomy_scope,omitempty"`
			*schema.DataSharing    `json:"data_sharing,omitempty"`
		}{p.ModifiedValues, p.AutonomyScope, p.DataSharing})
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A concession has no effect if the value is required, is a standard value, or is not declared
// by the conceding side.
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

// A value that a side gives up stays required, and only values in conflict can be given up.
// Otherwise an initiator could reach any score: it would refuse and give up every value that is
// not shared.
func TestConcessionsDoNotRaiseTheScore(t *testing.T) {
	a, b := draft{declared: []string{"a", "m1", "m2", "m3"}}, draft{declared: []string{"a", "y1", "y2", "y3"}}
	task := Task{Proposal: schema.Collaboration{TaskType: "t", ModifiedValues: &schema.ModifiedValues{
		InitiatorConcession: schema.Concession{"m1", "m2", "m3"}, ResponderConcession: schema.Concession{"y1", "y2", "y3"}}}}
	for _, refused := range [][2][]string{{}, {{"y1"}, nil}, {{"y1", "y2", "y3"}, {"m1", "m2", "m3"}}} {
		a.refuses, b.refuses = refused[0], refused[1]
		got := check(t, a, b, task)
		if got.Proceed || got.Score != 0.1429 { // 1 of 7
			t.Errorf("refused %v: proceed %v, score %v", refused, got.Proceed, got.Score)
		}
	}
	shared := draft{declared: []string{"a", "b", "c", "d"}}
	refuser := shared
	refuser.refuses = []string{"d"}
	task.Proposal.ModifiedValues = &schema.ModifiedValues{InitiatorConcession: schema.Concession{"d"}}
	got := check(t, shared, refuser, task)
	if !got.Proceed || got.Score != 0.75 {
		t.Errorf("a shared value laid aside: proceed %v, score %v", got.Proceed, got.Score)
	}
	same(t, "matched", got.Alignment.Matched, []string{"a", "b", "c"})
	same(t, "unmatched", got.Alignment.Unmatched, []string{"d"})
	same(t, "conditions", got.Conditions, []string{`the initiator lays "d" aside for this task`})
}

// A low score without a conflict gives nothing to resolve.
func TestALowScoreProposesNothing(t *testing.T) {
	got := check(t, draft{declared: []string{"a"}}, draft{declared: []string{"b"}}, Task{})
	same(t, "reasons", codes(got), []string{":score_below_minimum"})
	if got.ProposedResolution != nil || len(got.ResolutionSteps) != 0 {
		t.Errorf("%+v", got.Outcome)
	}
}
