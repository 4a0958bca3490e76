// Package obs makes a process observable: its logger, its Prometheus registry,
// its health, and the HTTP handler that shows them to an operator.
//
// It owns no metric of a stage: each stage registers its own with the
// registerer it is given, under full literal names ("plumbline_<stage>_…")
// listed in docs/METRICS.md. No agent's or session's id is ever a label.
//
// Invariants: nothing is global and nothing happens in init; readiness is false
// until every component that was declared has reported up; liveness says only
// that the process answers, so that an outage of a peer restarts nobody.
package obs
