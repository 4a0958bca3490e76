// Package reference gives exactly the results of the public AAP SDK, on generic JSON trees. It
// is an oracle for package aap and the implementation of profile "reference". It is slow and
// never on the hot path.
//
// The two SDKs differ in places (object values, absent escalation, rounding, order of sets,
// quoting of lists). In all of them this package follows the TypeScript SDK at HEAD (algorithm
// 1.2.0). This includes its mistakes: conditions that do not parse never match, a forbidden
// action can hide in a compound name, and inherited names of JavaScript objects count as true.
//
// Inputs are generic trees (*Object, []any, string, float64, bool, nil), which Decode reads
// from JSON. Undefined means an absent value. Where the SDK throws, the result is an *Error
// with the place. A date-time without a zone is UTC.
//
// It is larger than others because the results depend on what JavaScript does: its conversions
// (value.go), its JSON (tree.go) and its lenient dates (date.go) are half of it.
//
// The package owns no policy and reads no clock: the time of judgement is an argument.
package reference
