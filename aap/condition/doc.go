// Package condition is the condition expression language of AAP section 4.6, including its
// optional extensions: a lexer, a parser and an evaluator.
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
// In a text, a backslash escapes a quote or a backslash. Before any other character it is an
// ordinary character, so patterns need no doubling.
//
// It owns the meaning of values:
//   - Numbers are compared exactly, as decimals of any length.
//   - A numeric text is compared with a number, and ordered, as a number.
//   - Two texts are equal when they are the same text.
//   - Arrays and objects are equal when their contents are.
//   - An ordering of other mixed types is false and noted as uncomparable.
//   - A comparison with an absent field is false.
//   - false, 0, "", null and an absent field count as false.
//   - Where action_type is compared with a text that is no type of AAP section 5.4,
//     the field means the action's name.
//
// It does not own the look-up of a field: a Source does.
//
// Invariants: an Expr is immutable and may be shared. The text of an Expr parses as an equal
// Expr. The cost of an Expr is bounded by the limits below. Both sides of and/or are always
// evaluated, so the notes do not depend on the order of the operands.
package condition

// Limits of a condition and of its evaluation.
const (
	MaxLength       = 4096      // bytes of an expression, as written and as printed
	MaxDepth        = 32        // nested parentheses
	MaxPattern      = 512       // bytes of a matches pattern
	MaxSubject      = 256 << 10 // bytes of a text that matches searches
	maxInstructions = 512       // of a pattern, with repetitions expanded
	matchBudget     = 4 << 20   // steps of matches between two Resets: bytes searched times instructions
	maxNotes        = 64        // fields noted in each list of an Evaluator
	maxRepeated     = 3         // repeated fields of an expression whose tests must agree on a value
	maxTrials       = 16 << 10  // tests for this agreement between two Resets; beyond it each test is evaluated alone
)
