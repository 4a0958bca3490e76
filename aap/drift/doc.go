// Package drift detects sustained divergence of one agent's decisions under one card from a
// baseline (AAP section 8).
//
// The first N traces form a baseline: the centroid of their structural features. Each later
// trace is compared with it by cosine. Consecutive low similarities form a streak, and a streak
// raises exactly one alert, at its sustained-th trace. Detect applies this to a finished list
// and equals the published SDK (TypeScript HEAD) under ProfileReference. State.Step applies the
// same step to a stream, whose baseline is kept (first), recomputed every W traces (rolling),
// or set by the operator (pinned).
//
// It owns the step, its parameters, the measures that decide a streak's category, its state and
// the encoding of the state. It does not own the order of traces, late traces, the record of
// applied traces, or storage: pipeline/drift does.
//
// Invariants: the same samples in the same order give the same points, alerts and alert ids, on
// every machine and after every restart. All sums run in the order of first appearance. Text
// labels a streak and never enters the score.
package drift
