// Package condition is the condition expression language of AAP section 4.6,
// its optional extensions included, as a lexer, a parser and an evaluator.
//
//	condition  = conjunction { "or" conjunction }
//	conjunction = primary { "and" primary }
//	primary    = "(" condition ")"
//	           | ( "contains" | "matches" ) "(" field "," value ")"
//	           | field [ operator value ]
//	operator   = "==" "!=" "<" "<=" ">" ">=" "contains" "matches"
//	value      = "text" | 'text' | number | "true" | "false" | "null"
//	field      = name { "." name }
//
// In a text, a backslash escapes a quote or a backslash and stands for itself
// before anything else, so that patterns need no doubling.
//
// It owns what a value means: a numeric text compares as a number with a
// number; an ordering of other mixed types is false and noted as uncomparable;
// a comparison with an absent field is false; false are false, 0, "", null and
// absent. It does not own where a field is looked up: a Source does.
//
// Invariants: an Expr is immutable and may be shared; its cost is bounded by
// the limits below; both sides of and/or are always evaluated, so that what is
// noted does not depend on the values.
package condition

// Limits of a condition and of its evaluation.
const (
	MaxLength       = 4096     // bytes of an expression
	MaxDepth        = 32       // nested parentheses
	MaxPattern      = 512      // bytes of a matches pattern
	maxInstructions = 512      // of a compiled pattern
	maxSubject      = 32 << 10 // bytes of a text that matches looks at
	maxNotes        = 64       // fields noted as ambiguous, or as uncomparable
	matchBudget     = 64 << 10 // bytes that matches looks at between two Resets
)
