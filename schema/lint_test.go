package schema

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema/published"
)

// hintsOf returns the hints on a card as "type pointer", without those that every card of these
// tests gets.
func hintsOf(t testing.TB, card string) []string {
	t.Helper()
	c, err := DecodeCard([]byte(card))
	if err != nil {
		t.Fatalf("%v in\n%s", err, card)
	}
	var hints []string
	for _, hint := range Lint(c) {
		if hint.Description == "" {
			t.Errorf("the hint %s has no description", hint.Type)
		}
		if hint.Type != LintUnsigned && (hint.Type != LintPrincipal || hint.Pointer != "/principal/identifier") {
			hints = append(hints, hint.Type+" "+hint.Pointer)
		}
	}
	return hints
}

func TestLint(t *testing.T) {
	const trigger = `{"condition": "amount > 5", "action": "deny", "reason": "too much"}`
	second := func(text string) []string { return []string{trigger, trigger + ", " + text} }
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"nothing":             {nil, ""},
		"no expiry":           {[]string{`"expires_at": "2026-12-31T23:59:59.5+02:00",`, ``}, "missing_expires_at /expires_at"},
		"another version":     {[]string{`"aap_version": "0.1.0"`, `"aap_version": "1.0"`}, "other_aap_version /aap_version"},
		"no currency":         {[]string{`, "currency": "EUR"`, ``}, "value_limit_without_currency /autonomy_envelope/max_autonomous_value"},
		"no retention":        {[]string{`"retention_days": 90`, `"retention_days": 0`}, "zero_retention /audit_commitment/retention_days"},
		"no values":           {[]string{`"declared": ["honesty", "thrift"]`, `"declared": []`}, "no_declared_values /values/declared|unused_definition /values/definitions/thrift"},
		"value twice":         {[]string{`"declared": ["honesty", "thrift"]`, `"declared": ["honesty", "thrift", "honesty"]`}, "duplicate_value /values/declared/2"},
		"own conflict":        {[]string{`["waste"]`, `["waste", "thrift"]`}, "declared_value_in_conflict /values/declared/1"},
		"near conflict":       {[]string{`["waste"]`, `["Honesty"]`}, "standard_value_near_miss /values/conflicts_with/0"},
		"near miss":           {[]string{`"honesty", "thrift"`, `"honesty", "thrift", "user-control"`, `"definitions": {`, `"definitions": {"user-control": {"description": "d"}, `}, "standard_value_near_miss /values/declared/2"},
		"unused":              {[]string{`"definitions": {`, `"definitions": {"a/b": {"description": "d"}, `}, "unused_definition /values/definitions/a~1b"},
		"used in conflict":    {[]string{`"definitions": {`, `"definitions": {"waste": {"description": "d"}, `}, ""},
		"used by another":     {[]string{`"definitions": {`, `"definitions": {"x": {"description": "d"}, `, `"priority": 2`, `"subsumes": ["x"]`}, ""},
		"empty definition":    {[]string{`Spend little`, ` `}, "empty_definition /values/definitions/thrift/description"},
		"no actions":          {[]string{`["search"]`, `[]`}, "empty_bounded_actions /autonomy_envelope/bounded_actions"},
		"action twice":        {[]string{`["delete"]`, `["delete", "x", "delete"]`}, "duplicate_action /autonomy_envelope/forbidden_actions/2"},
		"action with blanks":  {[]string{`["search"]`, `["search "]`}, "action_with_white_space /autonomy_envelope/bounded_actions/0"},
		"shared short name":   {[]string{`["search"]`, `["fs:read"]`, `["delete"]`, `["fs:write"]`}, "action_bounded_and_forbidden_in_short /autonomy_envelope/forbidden_actions/0"},
		"a forbidden tool":    {[]string{`["delete"]`, `["fs:write"]`}, ""},
		"a bounded blank":     {[]string{`["search"]`, `["search", " "]`}, "action_with_white_space /autonomy_envelope/bounded_actions/1"},
		"described actions":   {[]string{`["search"]`, `["search: a"]`, `["delete"]`, `["delete: b"]`}, ""},
		"trigger twice":       {second(`{"condition": "amount  > 5 ", "action": "deny", "reason": "r"}`), "duplicate_trigger /autonomy_envelope/escalation_triggers/1"},
		"trigger once more":   {second(`{"condition": "amount > 5", "action": "log", "reason": "r"}`), ""},
		"no reason":           {[]string{`too much`, ` `}, "empty_trigger_reason /autonomy_envelope/escalation_triggers/0/reason"},
		"signed without keys": {[]string{`"merkle"`, `"signed"`}, "signed_traces_without_keys /audit_commitment/tamper_evidence"},
		"signed with keys":    {[]string{`"merkle"`, `"signed"`, noExtensions, `"extensions": {"plumbline": {"keys": [` + key("k") + `]}}`}, ""},
	} {
		if got := strings.Join(hintsOf(t, with(t, c.pieces...)), "|"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Rules that only the 2.x SDK has are hints for cards of the specification's shape.
func TestLintOfTheOtherShape(t *testing.T) {
	types := func(card string) (types []string) {
		c, err := DecodeCard([]byte(card))
		if err != nil {
			t.Fatal(err)
		}
		for _, hint := range Lint(c) {
			types = append(types, hint.Type+" "+hint.Pointer)
		}
		return types
	}
	if got := types(goodCard); !slices.Equal(got, []string{"unsigned_card /signature", "missing_principal_identifier /principal/identifier"}) {
		t.Errorf("0.1.0: got %v", got)
	}
	if got := types(with(t, `"type": "human"`, `"type": "unspecified"`)); !slices.Equal(got, []string{"unsigned_card /signature"}) {
		t.Errorf("unspecified: got %v", got)
	}
	want := []string{"missing_expires_at /expires_at", "unsigned_card /signature", "no_declared_values /values/declared", "zero_retention /audit/retention_days"}
	if got := types(unifiedCard); !slices.Equal(got, want) {
		t.Errorf("2.x: got %v", got)
	}
}

func TestNearMisses(t *testing.T) {
	for value, want := range map[string]string{
		"principal-benefit": "principal_benefit", "principle_benefit": "principal_benefit", "Principal Benefit": "principal_benefit",
		"principalBenefit": "principal_benefit", "principal_benefits": "principal_benefit",
		"Transparency": "transparency", "transparencey": "transparency", "tranpsarency": "transparency", "transparent": "transparency",
		"minimal-data": "minimal_data", "minimaldata": "minimal_data", "minimum_data": "minimal_data", "data_minimization": "",
		"HARM_PREVENTION": "harm_prevention", "harm_reduction": "", "honest": "honesty", "honesty.": "honesty", "honor": "",
		"user.control": "user_control", "user_controls": "user_control", "Privacy": "privacy", "primacy": "privacy", "piracy": "",
		"honestyz": "honesty", "honestyzz": "", // z is a letter
		"honesty" + strings.Repeat(".", 57): "honesty", "honesty" + strings.Repeat(".", 58): "", // 64 bytes, and more
		"fairnes": "fairness", "unfairness": "", "fair": "",
		"": "", "thrift": "", "_": "", "honesty": "", "privacy": "", strings.Repeat("honesty", 20): "",
	} {
		if got := nearName(value, StandardValues); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

// One step inserts, deletes or replaces a letter, or exchanges two neighbours.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"abc", "abd", 1}, {"abc", "abcd", 1}, {"abcd", "abc", 1}, {"abc", "bc", 1}, {"bc", "abc", 1}, {"abc", "xyz", 3},
		{"ab", "ba", 1}, {"abcd", "acbd", 1}, {"abcd", "badc", 2}, {"xaby", "xbay", 1}, {"abc", "cab", 2}, {"ca", "abc", 3}, {"ab", "bc", 2},
		{"aabb", "bbaa", 3}, {"aab", "aba", 1}, {"kitten", "sitting", 3}, {"sunday", "saturday", 3}, {"abab", "baba", 2},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d steps, want %d", c.a, c.b, got, c.want)
		}
	}
}

// An undefined value that resembles a known one is refused, and the fault names the known one.
func TestUndefinedNearMissIsExplained(t *testing.T) {
	faults := faultsOf(t, with(t, `"honesty", "thrift"`, `"Honesty", "thrift"`))
	want := []string{`/values/declared/0: "Honesty" is no standard value and has no definition; did you mean "honesty"?`}
	if !slices.Equal(faults, want) {
		t.Errorf("got %q", faults)
	}
}

// The corpus's cards have no expiry; Lint has no other hint on them.
func TestLintOfTheCorpus(t *testing.T) {
	cards := published.Read(t, "corpus/cards.jsonl")
	for lines := bufio.NewScanner(bytes.NewReader(cards)); lines.Scan(); {
		if hints := hintsOf(t, lines.Text()); !slices.Equal(hints, []string{"missing_expires_at /expires_at"}) {
			t.Errorf("%.60s: %q", lines.Text(), hints)
		}
	}
}
