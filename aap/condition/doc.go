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
// It owns what a value means: numbers are compared exactly, as decimals of any
// length; a numeric text compares as a number with a number and is ordered as
// one; two texts are equal when they are the same text; arrays and objects are
// equal when their contents are; an ordering of other mixed types is false and
// noted as uncomparable; a comparison with an absent field is false; false are
// false, 0, "", null and absent. It does not own where a field is looked up: a
// Source does. One field has a second reading: where action_type is compared with
// a text that is none of the types of AAP section 5.4, that is the action's name.
//
// Invariants: an Expr is immutable and may be shared; what an Expr prints parses
// as an equal Expr; its cost is bounded by the limits below; both sides of and/or
// are always evaluated, so that what is noted does not depend on the values.
package condition

// Limits of a condition and of its evaluation.
const (
	MaxLength       = 4096      // bytes of an expression, as written and as printed
	MaxDepth        = 32        // nested parentheses
	MaxPattern      = 512       // bytes of a matches pattern
	MaxSubject      = 256 << 10 // bytes of a text that matches looks at
	maxInstructions = 512       // of a pattern, its repetitions written out
	matchBudget     = 4 << 20   // steps of matches between two Resets: bytes looked at, times instructions
	maxNotes        = 64        // fields noted in each list of an Evaluator
	maxRepeated     = 3         // fields of an expression whose tests are held to the same value
	maxTrials       = 16 << 10  // tests made for that between two Resets; then each test goes by itself
)
