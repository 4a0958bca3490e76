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
	answers := j.Settle(session.Found{})
	v, _ := j.Finish(&answers, at)
	if v.Verified || v.RecommendedAction != schema.Deny || v.Part != 2 || !v.LastPart || !v.Timestamp.Equal(at) {
		t.Errorf("verdict is %s", encoded(t, v))
	}
	want := schema.SessionTraces{Total: 3, Verified: 1, CardUnknown: 1,
		Violations: map[string]int64{schema.UndeclaredValue: 2}, Findings: map[string]int64{schema.CategoryEvasion: 1}}
	if encoded(t, v.Traces) != encoded(t, want) {
		t.Errorf("counts are %s", encoded(t, v.Traces))
	}
	if want := (schema.SessionSimilarity{Mean: 0.35, Min: 0.2, Trend: -0.3}); v.Similarity != want {
		t.Errorf("similarity is %+v, want %+v", v.Similarity, want)
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

// Traces of one time may arrive in any order; all else is put into the order of
// the audit log.
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

// inOrder judges traces that arrived in this order, and returns what may not
// depend on it: through whom of one time a circle is seen, which of two traces with
// one number is the first, and which of two that report one answer, may.
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
		if f.Description == "" || strings.HasPrefix(f.Description, "no trace has") {
			f.TraceID = ""
		}
		lines = append(lines, fmt.Sprint(f))
	}
	slices.Sort(lines)
	return fmt.Sprint(v.Verified, v.RecommendedAction, v.FindingCounts, "\n") + strings.Join(lines, "\n")
}
