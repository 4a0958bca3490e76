package aap

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// never returns the places of the hints on triggers.
func never(t *testing.T, c *Compiled) (pointers []string) {
	t.Helper()
	for _, hint := range Lint(c) {
		if hint.Type == schema.LintTriggerNever {
			pointers = append(pointers, hint.Pointer)
		}
	}
	return pointers
}

func TestLintFindsTriggersThatNeverFire(t *testing.T) {
	for condition, want := range map[string]bool{
		`action_type == \"purchase\"`:                                  false, // this is the action's name
		`action_category == \"purchase\"`:                              true,
		`action_type == \"purchase\" or action_category == \"free\"`:   false,
		`action_type == \"execute\" and action_type == \"deny\"`:       true,
		`action_type == \"execute\"`:                                   false,
		`action_type != \"purchase\"`:                                  false,
		`action_type matches \"^exe\"`:                                 false,
		`action_category == \"forbidden\" and action_type == \"deny\"`: false,
		`action_type == \"purchase\" or amount > 5`:                    false,
		`action_name == \"purchase\"`:                                  false,
		`night`:                                                        false,
		`night time`:                                                   false, // does not parse
	} {
		c := compiled(t, replace(t, cardText, `"night"`, `"`+condition+`"`))
		if got := never(t, c); want != slices.Equal(got, []string{"/autonomy_envelope/escalation_triggers/2/condition"}) || !want && got != nil {
			t.Errorf("%s: got %v", condition, got)
		}
	}
}

func TestLintHoldsWhatTheSchemaFinds(t *testing.T) {
	hints := Lint(compiled(t, replace(t, cardText, `"expires_at": "2026-07-01T00:00:00Z",`, ``)))
	if !slices.ContainsFunc(hints, func(h schema.Hint) bool { return h.Type == schema.LintNoExpiry }) {
		t.Errorf("got %+v", hints)
	}
}

func TestLintOfAUnifiedCard(t *testing.T) {
	card := strings.NewReplacer(`"aap_version": "0.1.0"`, `"card_version": "unified/2026-04-26"`, `"autonomy_envelope"`, `"autonomy"`,
		`"audit_commitment"`, `"audit"`, `"type": "human"`, `"type": "unspecified"`, `"night"`, `"action_category == 'buy'"`).Replace(cardText)
	if got := never(t, compiled(t, card)); !slices.Equal(got, []string{"/autonomy/escalation_triggers/2/condition"}) {
		t.Errorf("got %v", got)
	}
}

// Every trigger of the specification's example can match.
func TestLintOfTheSpecificationExample(t *testing.T) {
	raw := published.Read(t, "conformance/aap/spec_example_card.json")
	c, err := Register(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got := never(t, c); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
