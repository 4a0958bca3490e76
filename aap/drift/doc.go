// Package drift detects a lasting change of one agent's decisions under one card against a
// baseline (AAP section 8).
//
// Modes sessions (the default of the stream) and pinned compare with the traces of whole sessions, by
// the cosine of section 8.2 and by the measures of section 8.5. Each measure is an event with an
// expected rate, and an e-detector weighs what speaks for another rate. Whatever they find is one
// condition: an alert that opens, is updated and closes. Modes first and rolling, and Detect and
// Series over a finished list, apply the published rule (the files letter*.go): the centroid of the
// first N traces, and an alert at the sustained-th trace in a row below the threshold. Detect equals
// the published SDK (TypeScript HEAD) under ProfileReference.
//
// It owns the step, its parameters, the measures, the names of what changed, the state of a series
// and its encoding. It does not own the order of traces, late traces, the record of applied traces,
// or storage: pipeline/drift does. Package inject owns the changes that trials put into
// recordings, package trial the figures.
//
// Invariants: the same samples in the same order give the same points, alerts and alert ids, on
// every machine and after every restart. Sums run in a fixed order, and products are rounded before
// they are added. The similarity of section 8.2 never depends on text.
package drift
