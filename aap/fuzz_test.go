package aap

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aap/condition"
	"github.com/plumbline/plumbline/schema"
)

// For any card and trace: the conditions of a registered card print as text that parses to the
// same conditions, and the verdict keeps its invariants and is the same the second time.
func FuzzRegisterAndVerify(f *testing.F) {
	unified := strings.NewReplacer(`"aap_version": "0.1.0"`, `"card_version": "x"`, "autonomy_envelope", "autonomy", "audit_commitment", "audit",
		`"type": "human"`, `"type": "unspecified"`).Replace(cardText)
	for _, card := range []string{cardText, unified, registered(f, "signed", public("k1", 1)), triggered(f, 3, `note matches "(a+)+$" or a.b contains null`),
		`{"autonomy_envelope": {"escalation_triggers": [{"condition": "((", "action": "log", "reason": ""}]}}`} {
		f.Add([]byte(card), []byte(traceText))
	}
	f.Add([]byte(cardText), []byte(sign(f, traceText, "k1", 1)))
	f.Add([]byte(cardText), []byte(strings.Replace(traceText, `"search"`, `"search, , delete:"`, 1)))
	judge := judge(f)
	f.Fuzz(func(t *testing.T, rawCard, rawTrace []byte) {
		card, err := Register(rawCard)
		if err != nil {
			var refusal *schema.Refusal
			if !errors.As(err, &refusal) || len(refusal.Faults) == 0 {
				t.Fatalf("refused without a fault: %v", err)
			}
			return
		}
		for i := range card.triggers {
			printed := card.triggers[i].expr.String()
			if again, err := condition.Parse(printed); err != nil || again.String() != printed {
				t.Fatalf("%q does not parse as itself: %v", printed, err)
			}
		}
		trace, err := schema.Admit("", rawTrace)
		if err != nil {
			return
		}
		if first, second := verdictOn(t, judge, trace, card), verdictOn(t, judge, trace, card); first != second {
			t.Fatalf("two verdicts:\n%s\n%s", first, second)
		}
	})
}

// verdictOn returns the verdict as text after checking its invariants.
func verdictOn(t *testing.T, j *Judge, trace *schema.Trace, card *Compiled) string {
	var v schema.Verdict
	j.Verify(trace, card, Facts{GivenApart: true}, now, &v)
	critical := false
	for _, finding := range v.Findings {
		critical = critical || finding.Severity == schema.SeverityCritical
	}
	switch {
	case v.Verified != (len(v.Violations) == 0):
		t.Fatalf("verified %v with %d violations", v.Verified, len(v.Violations))
	case (v.RecommendedAction == schema.Deny) != (len(v.Violations) > 0 || critical):
		t.Fatalf("%s with %v and %v", v.RecommendedAction, v.Violations, v.Findings)
	case v.SimilarityScore < 0 || v.SimilarityScore > 1:
		t.Fatalf("similarity %v", v.SimilarityScore)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
