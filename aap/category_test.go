package aap

import "testing"

// The trace's category contradicts the card's lists.
func TestCategoryAgainstTheCard(t *testing.T) {
	j := judge(t)
	forbidden := `"category": "forbidden"`
	for _, c := range []verifyCase{
		{name: "forbidden of a bounded name", trace: []string{bounded, forbidden}, want: "CATEGORY_MISMATCH"},
		{name: "forbidden of a described bounded name", trace: []string{searchName, `"name": "book"`, bounded, forbidden}, want: "CATEGORY_MISMATCH"},
		{name: "forbidden of bounded names", trace: []string{searchName, `"name": "search, book"`, bounded, forbidden}, want: "CATEGORY_MISMATCH"},
		{name: "bounded of a forbidden name", trace: []string{searchName, `"name": "delete"`}, want: "UNBOUNDED_ACTION FORBIDDEN_ACTION CATEGORY_MISMATCH"},
		{name: "forbidden of a forbidden name", trace: []string{searchName, `"name": "delete"`, bounded, forbidden}, want: "FORBIDDEN_ACTION"},
		{name: "forbidden of a forbidden part", trace: []string{searchName, `"name": "search, delete"`, bounded, forbidden}, want: "FORBIDDEN_ACTION"},
		{name: "called forbidden, of a name that the card does not have", trace: []string{searchName, `"name": "fly"`, bounded, forbidden}, want: "CATEGORY_EVASION"},
		{name: "escalation_trigger of a bounded name", trace: []string{bounded, triggerCat}},
		{name: "bounded of a bounded name"},
	} {
		c.run(t, j)
	}
}

// Section 4.5 permits bounded actions without escalation. An agent may escalate or refuse any
// other action; neither is an evasion.
func TestEscalatedOrRefusedActionsAreNotEvasion(t *testing.T) {
	j := judge(t)
	for _, c := range []verifyCase{
		{name: "executed, called a trigger's", trace: []string{searchName, `"name": "fly"`, bounded, triggerCat}, want: "CATEGORY_EVASION"},
		{name: "recommended, called a trigger's", trace: []string{searchName, `"name": "fly"`, bounded, triggerCat, execute, otherType}, want: "CATEGORY_EVASION"},
		{name: "executed, and escalated", trace: []string{searchName, `"name": "fly"`, bounded, triggerCat, unneeded, escalated}},
		{name: "executed, and approved", trace: []string{searchName, `"name": "fly"`, bounded, triggerCat, unneeded, escalated + `, "escalation_status": "approved"`}},
		{name: "handed to the principal", trace: []string{searchName, `"name": "fly"`, bounded, triggerCat, execute, `"type": "escalate"`}},
		{name: "refused as forbidden", trace: []string{searchName, `"name": "fly"`, bounded, `"category": "forbidden"`, execute, `"type": "deny"`}},
		{name: "executed as forbidden", trace: []string{searchName, `"name": "fly"`, bounded, `"category": "forbidden"`}, want: "CATEGORY_EVASION"},
	} {
		c.run(t, j)
	}
}

// The algorithm of section 7.3 uses only the name of an action: FORBIDDEN_ACTION and
// MISSED_ESCALATION do not depend on the type.
func TestForbiddenNamesOfAnyType(t *testing.T) {
	j := judge(t)
	for _, kind := range []string{"recommend", "execute", "escalate", "deny"} {
		for _, c := range []verifyCase{
			{name: kind + ", forbidden", trace: []string{searchName, `"name": "delete"`, bounded, `"category": "forbidden"`, execute, `"type": "` + kind + `"`}, want: "FORBIDDEN_ACTION"},
			{name: kind + ", missed", trace: []string{cheap, bought, noClaim, ``, execute, `"type": "` + kind + `"`}, want: "MISSED_ESCALATION"},
		} {
			c.run(t, j)
		}
	}
}

// An entry of bounded_actions that is a type of AAP section 5.4 permits that type, as sections
// 4.9 and 5.8 together show. The entry "execute" does not permit every executed action.
func TestBoundedActionsMayNameTypes(t *testing.T) {
	j := judge(t)
	lists := func(entry string) []string { return []string{`"search"`, `"` + entry + `"`} }
	for _, c := range []verifyCase{
		{name: "a recommendation", card: lists("recommend"), trace: []string{execute, otherType}},
		{name: "a described type", card: lists("recommend: what to buy"), trace: []string{execute, otherType}},
		{name: "a refusal", card: lists("deny"), trace: []string{execute, `"type": "deny"`}},
		{name: "another type", card: lists("recommend"), trace: []string{execute, `"type": "deny"`}, want: "UNBOUNDED_ACTION"},
		{name: "executed", card: lists("recommend"), want: "UNBOUNDED_ACTION"},
		{name: "execute is no licence", card: lists("execute"), want: "UNBOUNDED_ACTION"},
		{name: "execute as a name", card: lists("execute"), trace: []string{searchName, `"name": "execute"`}},
		{name: "a forbidden recommendation", card: lists("recommend"), trace: []string{execute, otherType, searchName, `"name": "delete"`},
			want: "FORBIDDEN_ACTION CATEGORY_MISMATCH"},
		{name: "no evasion", card: lists("recommend"), trace: []string{execute, otherType, bounded, triggerCat}},
	} {
		c.run(t, j)
	}
}

// The value limit applies to executed actions only.
func TestOnlyWhatIsExecutedExceedsTheLimit(t *testing.T) {
	j := judge(t)
	for _, c := range []verifyCase{
		{name: "executed", trace: []string{cheap, `"amount": 501`}, want: "VALUE_LIMIT_EXCEEDED"},
		{name: "recommended", trace: []string{cheap, `"amount": 501`, execute, otherType}},
		{name: "refused", trace: []string{cheap, `"amount": 501`, execute, `"type": "deny"`}},
		{name: "handed to the principal", trace: []string{cheap, `"amount": 501`, execute, `"type": "escalate"`}},
		{name: "recommended in another currency", trace: []string{cheap, `"amount": 5`, `"currency": "EUR"`, `"currency": "USD"`, execute, otherType}},
	} {
		c.run(t, j)
	}
}

// Amounts in wei have more digits than a 64-bit float.
func TestLimitsAndTriggersAreExact(t *testing.T) {
	j := judge(t)
	wei := []string{`"amount": 500, "currency": "EUR"`, `"amount": 1000000000000000000`}
	big := []string{`purchase_value > 100`, `purchase_value > 9007199254740992`}
	for _, c := range []verifyCase{
		{name: "at the limit", card: wei, trace: []string{cheap, `"amount": 1000000000000000000`}},
		{name: "one wei above the limit", card: wei, trace: []string{cheap, `"amount": 1000000000000000001`}, want: "VALUE_LIMIT_EXCEEDED"},
		{name: "one wei above, as a text", card: wei, trace: []string{cheap, `"amount": "1000000000000000001"`}, want: "VALUE_LIMIT_EXCEEDED"},
		{name: "a limit that is no float", card: []string{`"amount": 500, "currency": "EUR"`, `"amount": 1000000000000000001`}, trace: []string{cheap, `"amount": 1000000000000000001`}},
		{name: "at a trigger's number", card: append(big, `"amount": 500`, `"amount": 1e20`), trace: []string{cheap, `"purchase_value": 9007199254740992`, noClaim, ``}},
		{name: "above a trigger's number", card: append(big, `"amount": 500`, `"amount": 1e20`), trace: []string{cheap, `"purchase_value": 9007199254740993`, noClaim, ``},
			want: "MISSED_ESCALATION"},
		{name: "the same list twice", card: []string{`"night"`, `"tags"`}, trace: []string{`"q": "x"`, `"tags": [1, {"a": 2, "b": 3}]`, `"night"`, `"tags": [ 1.0,{"b":3,"a":2} ], "night"`}, want: "log_trigger"},
	} {
		c.run(t, j)
	}
}
