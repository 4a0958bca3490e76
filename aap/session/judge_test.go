package session_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

func TestCountsAndSimilarity(t *testing.T) {
	j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 2, LastPart: true}, nil)
	deny := schema.Verdict{Status: schema.StatusJudged, RecommendedAction: schema.Deny, SimilarityScore: 0.2,
		Violations: []schema.Remark{{Type: schema.UndeclaredValue}, {Type: schema.UndeclaredValue}}, Findings: []schema.Remark{{Type: schema.CategoryEvasion}}}
	unknown := schema.Verdict{Status: schema.StatusCardUnknown, RecommendedAction: schema.Review}
	for i, v := range []*schema.Verdict{&clean, &deny, &unknown} {
		j.Add(step{}.trace(t, i), v)
	}
	j.Unlogged("card-1")
	answers := j.Answers(session.Found{})
	v, _ := j.Finish(&answers, at)
	if v.Verified || v.RecommendedAction != schema.Deny || v.Part != 2 || !v.LastPart || !v.Timestamp.Equal(at) {
		t.Errorf("verdict is %s", encoded(t, v))
	}
	want := schema.SessionTraces{Total: 3, Verified: 1, CardUnknown: 1,
		Violations: map[string]int64{schema.UndeclaredValue: 2}, Findings: map[string]int64{schema.CategoryEvasion: 1}}
	if encoded(t, v.Traces) != encoded(t, want) {
		t.Errorf("counts are %s", encoded(t, v.Traces))
	}
	expect(t, v, `NO_INCLUSION_PROOF MEDIUM : card "card-1" commits to tamper evidence by a Merkle log`)
	if want := (schema.SessionSimilarity{Mean: 0.35, Min: 0.2, Trend: -0.3}); v.Similarity != want {
		t.Errorf("similarity is %+v, want %+v", v.Similarity, want)
	}
}

// A session recommends what its gravest trace recommends, and its least similarity is the
// minimum over all traces.
func TestTheGravestTraceDecides(t *testing.T) {
	verdict := func(r schema.Recommendation, score float64) *schema.Verdict {
		return &schema.Verdict{Verified: true, Status: schema.StatusJudged, RecommendedAction: r, SimilarityScore: score}
	}
	proceed, review, deny := verdict(schema.Proceed, 0.9), verdict(schema.Review, 0.2), verdict(schema.Deny, 0.4)
	for _, c := range []struct {
		verdicts []*schema.Verdict
		want     schema.Recommendation
		least    float64
	}{
		{[]*schema.Verdict{proceed, proceed}, schema.Proceed, 0.9},
		{[]*schema.Verdict{review, proceed}, schema.Review, 0.2},
		{[]*schema.Verdict{deny, review, proceed}, schema.Deny, 0.2},
	} {
		j := session.New(session.Head{AgentID: "a", SessionID: "s", Part: 1}, nil)
		for i, v := range c.verdicts {
			j.Add(step{}.trace(t, i), v)
		}
		if v, _ := j.Finish(&session.Answers{}, at); v.RecommendedAction != c.want || v.Similarity.Min != c.least {
			t.Errorf("recommended %s, least %v; want %s and %v", v.RecommendedAction, v.Similarity.Min, c.want, c.least)
		}
	}
}

func TestCleanSession(t *testing.T) {
	v := whole(t, session.Found{}, step{number: 1, turn: 1}, step{number: 2, turn: 1, priors: []string{"tr-1"}})
	if !v.Verified || v.RecommendedAction != schema.Proceed || len(v.Findings) != 0 || len(v.Metadata.Unchecked) != 0 {
		t.Errorf("verdict is %s", encoded(t, v))
	}
	if text := encoded(t, v); strings.Contains(text, "null") {
		t.Errorf("an empty list is null: %s", text)
	}
	if v, _ := session.New(session.Head{Part: 1}, nil).Finish(&session.Answers{}, at); v.Verified {
		t.Error("a part without traces is verified")
	}
}

// Traces of the same time may arrive in any order; all others are sorted into the order of the
// audit log.
func TestOrderOfArrivalDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		numbered := rapid.IntRange(0, 2).Draw(r, "numbered") // none, some, all
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
			s := step{second: rapid.IntRange(1, 6).Draw(r, "second"), turn: rapid.IntRange(0, 3).Draw(r, "turn")}
			for range rapid.IntRange(0, 2).Draw(r, "priors") {
				s.priors = append(s.priors, fmt.Sprintf("tr-%d", rapid.IntRange(0, 9).Draw(r, "prior")))
			}
			if numbered == 2 || numbered == 1 && rapid.Bool().Draw(r, "this one") {
				s.number = rapid.IntRange(0, 30).Draw(r, "number")
			}
			return s
		}), 1, 8).Draw(r, "steps")
		for i := range steps {
			steps[i].id = fmt.Sprintf("tr-%d", i)
		}
		arrived := rapid.Permutation(steps).Draw(r, "arrived")
		if a, b := inOrder(t, steps), inOrder(t, arrived); a != b {
			r.Fatalf("in one order of arrival\n%s\nin another\n%s", a, b)
		}
	})
}

// inOrder judges traces that arrived in this order, and returns the parts of the verdict that
// must not depend on the order. These may depend on it: the trace through which a circle of
// traces of one time is reported, which of two traces with one number is the first, and which
// of two traces that report one answer or deny the same.
func inOrder(t *testing.T, arrived []step) string {
	log := slices.Clone(arrived)
	timed := slices.ContainsFunc(arrived, func(s step) bool { return s.number == nil })
	slices.SortStableFunc(log, func(a, b step) int {
		if timed {
			return cmp.Compare(a.second, b.second)
		}
		return cmp.Compare(a.number.(int), b.number.(int))
	})
	v := whole(t, session.Found{}, log...)
	var lines []string
	for _, f := range v.Findings {
		if strings.Contains(f.Description, "circle") || strings.Contains(f.Description, "too") {
			f.Description = ""
		}
		f.Description, _, _ = strings.Cut(f.Description, "; trace")
		f.Description, _, _ = strings.Cut(f.Description, " in trace")
		if f.Description == "" || strings.HasPrefix(f.Description, "no trace has") {
			f.TraceID = ""
		}
		lines = append(lines, fmt.Sprint(f))
	}
	slices.Sort(lines)
	return fmt.Sprint(v.Verified, v.RecommendedAction, v.FindingCounts, "\n") + strings.Join(lines, "\n")
}
