package aivs

import (
	"fmt"
	"slices"
	"strings"
)

// Rules is a set of rules of redaction beyond the draft's (section 3.3), which knows
// secrets by the names of members alone. What they replace is counted apart.
type Rules uint16

// The rules. ruleTable shows what each hides.
const (
	RuleAuthorization Rules = 1 << iota
	RuleHeaderList
	RuleNameValue
	RuleURL
	RuleAssignment
	RuleYAML
	RuleXML
	RuleRepr
	RuleUnicode
	RuleBase64

	AllRules Rules = 1<<iota - 1
	NoRules  Rules = 0
)

// namedRule is one of the rules, with what it hides.
type namedRule struct {
	rule    Rules
	name    string
	example string // "hunter2" is the secret
}

var ruleTable = []namedRule{
	{RuleAuthorization, "authorization", `Authorization: Bearer hunter2`},
	{RuleHeaderList, "header_list", `[["Authorization", "hunter2"]]`},
	{RuleNameValue, "name_value", `{"name": "X-Api-Key", "value": "hunter2"}`},
	{RuleURL, "url", `https://example.com/?access_token=hunter2`},
	{RuleAssignment, "assignment", `password=hunter2`},
	{RuleYAML, "yaml", `password: hunter2`},
	{RuleXML, "xml", `<password>hunter2</password>`},
	{RuleRepr, "repr", `{'password': 'hunter2'}`},
	{RuleUnicode, "unicode", `{"ｐａｓｓｗｏｒｄ": "hunter2"}`},
	{RuleBase64, "base64", `eyJwYXNzd29yZCI6Imh1bnRlcjIifQ==`},
}

// RuleNames returns the names that ParseRules takes, beside "all" and "none".
func RuleNames() (names []string) {
	for _, r := range ruleTable {
		names = append(names, r.name)
	}
	return names
}

// ParseRules returns the rules of these names, or of "all" or "none" alone.
func ParseRules(names []string) (rules Rules, err error) {
	if slices.Equal(names, []string{"all"}) {
		return AllRules, nil
	}
	if slices.Equal(names, []string{"none"}) {
		return NoRules, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(ruleTable, func(r namedRule) bool { return r.name == name })
		if i < 0 {
			return 0, fmt.Errorf("no rule of redaction is called %q: want all, none, or some of %s", name, strings.Join(RuleNames(), ", "))
		}
		rules |= ruleTable[i].rule
	}
	if rules == 0 {
		return 0, fmt.Errorf("no rule of redaction is named: want all, none, or some of %s", strings.Join(RuleNames(), ", "))
	}
	return rules, nil
}

// has reports whether the set holds a rule.
func (r Rules) has(rule Rules) bool { return r&rule != 0 }

// Count is how many values were replaced.
type Count struct {
	Draft    int // by the names of their members, as section 3.3 demands
	Optional int // by the further rules
}

// Add adds another count.
func (c *Count) Add(other Count) {
	c.Draft += other.Draft
	c.Optional += other.Optional
}

// Sum is how many values were replaced by whatever rule.
func (c Count) Sum() int { return c.Draft + c.Optional }
