// Package aap verifies single traces against Alignment Cards (AAP section 7) under profile
// spec. That profile is the specification with its gaps closed in the stricter way.
//
// It owns violations (those of section 7.5 only), findings (problems that the specification
// does not cover), warnings, and the recommendation that follows from them. It does not own the
// form of records (package schema), the condition language (aap/condition), the features
// (aap/similarity), or drift (aap/drift). It does no I/O and reads no clock.
//
// Invariants: a verdict depends only on the trace, the card, the Facts and the thresholds. The
// time of verification becomes the verdict's timestamp and influences nothing else, so a replay
// changes no verdict. A Compiled card is immutable and can be shared; a Judge belongs to one
// goroutine.
package aap
