package coherence

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/schema"
)

// alphabet holds standard values and others.
var alphabet = []string{"a", "b", "c", "d", "e", "privacy", "minimal_data", "transparency"}

func values(t *rapid.T, what string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, len(alphabet)).Draw(t, what)
}

func drafted(t *rapid.T, what string) draft {
	d := draft{
		declared: values(t, what+" declares"), refuses: values(t, what+" refuses"),
		bounded:   rapid.SliceOf(rapid.SampledFrom([]string{"x", "y"})).Draw(t, what+" bounds"),
		hierarchy: rapid.SampledFrom([]string{"", "lexicographic", "weighted", "contextual"}).Draw(t, what+" hierarchy"),
		subsumes:  map[string][]string{}, priority: map[string]float64{},
	}
	if rapid.Bool().Draw(t, what+" forbids") {
		d.forbidden = []string{"z"}
	}
	for range rapid.IntRange(0, 4).Draw(t, what+" subsumptions") {
		broader, narrower := rapid.SampledFrom(alphabet).Draw(t, "broader"), rapid.SampledFrom(alphabet).Draw(t, "narrower")
		if broader != narrower {
			d.subsumes[broader] = distinct(d.subsumes[broader], []string{narrower})
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, what+" priorities") {
		d.priority[rapid.SampledFrom(alphabet).Draw(t, "ranked")] = rapid.SampledFrom([]float64{1, 2, 3}).Draw(t, "priority")
	}
	return d
}

func tasked(t *rapid.T) Task {
	task := Task{Proposal: schema.Collaboration{TaskType: "t"}}
	if rapid.Bool().Draw(t, "task requires") {
		task.Required = values(t, "required")
	}
	if rapid.Bool().Draw(t, "values proposed") {
		task.Proposal.ValuesIntersection = values(t, "intersection")
	}
	actions := rapid.SliceOf(rapid.SampledFrom([]string{"x", "y", "z"}))
	task.Proposal.AutonomyScope = &schema.AutonomyScope{
		InitiatorActions: actions.Draw(t, "initiator's actions"), ResponderActions: actions.Draw(t, "responder's actions"),
	}
	if rapid.Bool().Draw(t, "concedes") {
		task.Proposal.ModifiedValues = &schema.ModifiedValues{
			InitiatorConcession: values(t, "initiator concedes"), ResponderConcession: values(t, "responder concedes"),
		}
	}
	return task
}

// swapped returns the task with the sides exchanged.
func swapped(task Task) Task {
	scope := task.Proposal.AutonomyScope
	task.Proposal.AutonomyScope = &schema.AutonomyScope{InitiatorActions: scope.ResponderActions, ResponderActions: scope.InitiatorActions}
	if m := task.Proposal.ModifiedValues; m != nil {
		task.Proposal.ModifiedValues = &schema.ModifiedValues{InitiatorConcession: m.ResponderConcession, ResponderConcession: m.InitiatorConcession}
	}
	return task
}

// It does not matter for the result which of two agents is the initiator.
func TestSymmetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, task := drafted(t, "a"), drafted(t, "b"), tasked(t)
		there, back := check(t, a, b, task), check(t, b, a, swapped(task))
		if there.Score != back.Score || there.Proceed != back.Proceed || len(there.Alignment.Conflicts) != len(back.Alignment.Conflicts) {
			t.Fatalf("initiator first: %v %v, responder first: %v %v", there.Score, there.Reasons, back.Score, back.Reasons)
		}
		if (there.ProposedResolution == nil) != (back.ProposedResolution == nil) {
			t.Fatalf("initiator first: %v, responder first: %v", there.ProposedResolution, back.ProposedResolution)
		}
	})
}

// An additional refusal never raises the score and never makes proceeding possible.
func TestAConflictNeverHelps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, task := drafted(t, "a"), drafted(t, "b"), tasked(t)
		before := check(t, a, b, task)
		a.refuses = append(slices.Clone(a.refuses), rapid.SampledFrom(alphabet).Draw(t, "one more"))
		after := check(t, a, b, task)
		if after.Score > before.Score || after.Proceed && !before.Proceed {
			t.Fatalf("score %v became %v, proceed %v became %v", before.Score, after.Score, before.Proceed, after.Proceed)
		}
	})
}

// The bytes of a result do not depend on the order of a card's members or of maps.
func TestTheOrderOfMembersDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, task := drafted(t, "a"), drafted(t, "b"), tasked(t)
		want := check(t, a, b, task)
		a.extraOrder, b.extraOrder = true, true
		got := check(t, a, b, task)
		if text(t, got) != text(t, want) {
			t.Fatalf("%s\n%s", text(t, got), text(t, want))
		}
	})
}

// A modified scope that is proposed unchanged in another check proceeds.
func TestAcceptedModifiedScopeProceeds(t *testing.T) {
	th := aap.DefaultThresholds()
	th.MinCoherence, th.Methodology = 0.3, "low, for many to be offered one"
	lenient, err := NewAssessor(th)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		var a, b Party
		var task Task
		var p *schema.ProposedResolution
		for range 20 { // about one in 25 gets an offer
			a, b, task = drafted(t, "a").party(t), drafted(t, "b").party(t), tasked(t)
			if p = lenient.Check(a, b, task, now).ProposedResolution; p != nil && p.Type == schema.ResolutionScope {
				break
			}
		}
		if p == nil || p.Type != schema.ResolutionScope {
			return
		}
		taken++
		if p.Alternative.ModifiedValues != nil {
			task.Proposal.ModifiedValues = p.Alternative.ModifiedValues
		}
		if p.Alternative.AutonomyScope != nil {
			task.Proposal.AutonomyScope = p.Alternative.AutonomyScope
		}
		again := lenient.Check(a, b, task, now)
		invariants(t, again)
		if !again.Proceed {
			t.Fatalf("%v after %s", again.Reasons, text(t, p))
		}
	})
	if taken == 0 {
		t.Error("no modified scope was ever offered")
	}
}

// No agent can lift the refusal of another: its statements about its own values and their ranks
// change nothing for a refused value.
func TestOnlyTheRefusingCardLiftsARefusal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		refused := rapid.SampledFrom([]string{"v", "minimal_data", "fairness"}).Draw(t, "refused")
		refuser := draft{declared: []string{"a", "b", "c", "privacy", "harm_prevention"}, refuses: []string{refused}, hierarchy: "lexicographic"}
		holder := drafted(t, "holder")
		holder.declared = append(slices.Clone(holder.declared), refused)
		holder.subsumes[refused] = []string{"a", "b", "c"}
		holder.priority[refused] = 0
		if got := check(t, refuser, holder, Task{Required: []string{"a"}}); got.Proceed {
			t.Fatalf("proceeds under %v", got.Conditions)
		}
	})
}

// Every result survives encoding and decoding.
func TestResultsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		found := check(t, drafted(t, "a"), drafted(t, "b"), tasked(t))
		sent := Answer(&schema.CoherenceCheck{RequestID: "r"}, found, now)
		raw, err := schema.EncodeHandshake(sent)
		if err != nil {
			t.Fatal(err)
		}
		received, err := schema.DecodeHandshake(raw)
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		if again := text(t, received); again != string(raw) {
			t.Fatalf("sent     %s\nreceived %s", raw, again)
		}
	})
}
