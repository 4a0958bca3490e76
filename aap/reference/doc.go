// Package reference gives exactly the answers of the public AAP SDK, on loose
// JSON trees: an oracle for package aap, and the slow path behind the profile
// "reference". It is never on the hot path.
//
// The two SDKs differ in places (object values, absent escalation, rounding,
// order of sets, quoting of lists). One choice covers every difference: this
// package follows the TypeScript SDK at HEAD (algorithm 1.2.0). That includes
// its mistakes: conditions that do not parse never fire, a forbidden action
// hides in a compound name, inherited names of JavaScript objects are "true".
//
// Inputs are what encoding/json makes of JSON (map[string]any, []any, string,
// float64, bool, nil); Undefined stands for a value that is not there. Where
// the SDK throws, an *Error names the place. A date-time without a zone is UTC.
//
// It owns no policy and reads no clock: the time of judgement is an argument.
package reference
