// Package eval is the offline judge of "plumbline aap eval": it reads one JSON request a line
// and writes one result a line, in the same order.
//
// A request has an operation ("op": verify, condition, drift, coherence, fleet, features,
// similarity, trace_similarities; under spec also ssm and text_similarity) and its arguments
// ("trace", "card", "traces", "condition", "my_card", "their_card", "task_values", "cards", "a"
// and "b", thresholds, "now"). A result is {"id","op","ok":true,"result"} or
// {"id","op","ok":false,"error"}.
//
// Profile reference gives the results of the public SDK (package reference), profile spec those
// of Plumbline (packages aap, coherence, condition, drift, similarity).
//
// Invariants: a line that cannot be read affects only its own result. The same input and time
// give the same output, byte for byte.
package eval
