// Package otel makes AP-Traces of OpenTelemetry spans.
//
// It owns the table that maps the attributes of a span to the members of a trace (table.go, printed in
// docs/OTEL.md), the rules by which a span is a decision, and the bounds within which an OTLP request is
// decoded. It does not own the transport, the rights of tokens or the admission of the trace that it
// writes: package ingest passes each trace to schema.Admit as it does a line.
//
// Invariants: a span alone determines its trace, byte by byte, so a span that is sent again is a
// duplicate. A member is what an attribute says, or follows from the span, or is listed as absent in the
// trace itself; nothing is guessed. A span that is a decision and lacks a required member gives faults and
// no trace. Nothing that a client sends makes the decoder use more memory than it announces.
package otel
