// Package aap judges: it verifies single traces against Alignment Cards (AAP
// section 7) under profile spec, which is the specification with its gaps
// closed in the way that hides less.
//
// It owns violations (section 7.5 and nothing else), findings (what the
// specification leaves out), warnings, and the recommendation drawn from them.
// It does not own what a record is (package schema), the condition language
// (aap/condition), the features (aap/similarity), nor drift (aap/drift). It
// does no I/O and reads no clock.
//
// Invariants: a verdict depends on the trace, the card, the Facts and the
// thresholds alone; the time of verification enters it as its timestamp and in
// no other way, so that a replay changes no verdict. A Compiled card is
// immutable and shared; a Judge is one goroutine's.
package aap
