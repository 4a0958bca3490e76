// Package telemetry sends the metrics of a process, and spans of what its stages do, to a receiver of
// OpenTelemetry over OTLP/HTTP or OTLP/gRPC.
//
// It owns the form of the spans, the conversion of Prometheus metrics, the bounded queue and the requests. It does
// not own the metrics (each stage registers its own), what a span is about (the stage says that), or the spans
// of agents, which are traces (package otel).
//
// Invariants: a stage never waits for the receiver, and no failure of the receiver ends a process or changes its
// exit code. What does not fit into the queue, or is not taken, is dropped and counted. No span has the content of a
// trace, or the id of an agent or a session. Without a receiver every call is a comparison with nil, and allocates
// nothing.
package telemetry
