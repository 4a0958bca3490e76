// Package obs makes a process observable: its logger, its Prometheus registry, its health, and
// the HTTP handler that shows them to an operator.
//
// It owns no metric of a stage. Each stage registers its own with its registerer, under full
// literal names ("plumbline_<stage>_…") that docs/METRICS.md lists. The id of an agent or a
// session is never a label.
//
// Invariants: nothing is global but the standard log, which TakeStandardLog sets; no init function does
// anything; readiness is false until
// every declared component has reported up; liveness reports only that the process answers, so an
// outage of a peer causes no restart.
package obs
