package redact

import (
	"fmt"
	"slices"
	"strings"
)

// Rules is a set of optional redaction rules beyond the draft's rule (section 3.3), which
// recognises secrets only by the names of members. Their replacements are counted separately.
type Rules uint16

// The optional rules. ruleTable shows what each hides.
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

// rule is one optional rule.
type rule struct {
	rule    Rules
	name    string
	example string // of what it hides; "hunter2" is the secret
}

var ruleTable = []rule{
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

// ParseRules returns the set of the named rules. "all" or "none" must be the only name.
func ParseRules(names []string) (rules Rules, err error) {
	if slices.Equal(names, []string{"all"}) {
		return AllRules, nil
	}
	if slices.Equal(names, []string{"none"}) {
		return NoRules, nil
	}
	known := make([]string, len(ruleTable))
	for i, r := range ruleTable {
		known[i] = r.name
	}
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return 0, fmt.Errorf("no redaction rule is called %q: want all, none, or some of %s", name, strings.Join(known, ", "))
		}
		rules |= ruleTable[i].rule
	}
	if rules == 0 {
		return 0, fmt.Errorf("no redaction rule is named: want all, none, or some of %s", strings.Join(known, ", "))
	}
	return rules, nil
}

// has reports whether the set contains a rule.
func (r Rules) has(rule Rules) bool { return r&rule != 0 }

// Count is the number of values replaced.
type Count struct {
	Draft    int // by the names of their members, as section 3.3 requires
	Optional int // by the optional rules
}

// Add adds another count.
func (c *Count) Add(other Count) {
	c.Draft += other.Draft
	c.Optional += other.Optional
}

// Sum returns the number of values replaced by any rule.
func (c Count) Sum() int { return c.Draft + c.Optional }
