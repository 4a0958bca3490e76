// Package eval is the offline judge behind "plumbline aap eval": one JSON
// request a line in, one result a line out, in the same order.
//
// A request names its operation ("op": verify, condition, drift, coherence,
// fleet, features, similarity, trace_similarities; under spec also ssm and
// text_similarity) and carries what it is about ("trace", "card", "traces",
// "condition", "my_card", "their_card", "task_values", "cards", "a" and "b",
// thresholds, "now"). A result is {"id","op","ok":true,"result"} or
// {"id","op","ok":false,"error"}.
//
// Profile reference answers as the public SDK does (package reference), profile
// spec as Plumbline judges (packages aap, coherence, condition, drift,
// similarity).
//
// Invariants: a line that cannot be read costs only its own answer; the same
// input and time give the same output, byte for byte.
package eval
