// Package drift watches one agent's decisions under one card for sustained
// divergence from a baseline (AAP section 8).
//
// The first N traces form a baseline: the centroid of their structural features.
// Each later trace is compared with it by cosine; a run of low similarities is a
// streak, and a streak raises exactly one alert, at its sustained-th trace.
// Detect applies this to a finished list and equals the published SDK (TypeScript
// HEAD) under ProfileReference; State.Step applies the same step to a stream,
// whose baseline stays (first), is recomputed every W traces (rolling), or is the
// operator's (pinned).
//
// It owns the step, its parameters, the measures that name a streak's category,
// its state and the state's encoding. It does not own ordering, lateness, which
// traces were applied, or storage: pipeline/drift does.
//
// Invariants: the same samples in the same order give the same points, the same
// alerts and the same alert ids, on every machine and after every restart; all
// sums run in the order of first appearance; text labels a streak and never
// enters the score.
package drift
