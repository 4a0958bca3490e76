// Package service is the life of a process that runs a stage: signals and the drain, the HTTP
// interface for operators, retries, and the connection to the broker with its lease.
//
// It owns the environment that a stage works in (Env), the exit codes, and the waits between
// attempts. It does not own the settings (pipeline/config), what the broker does (pipeline/stream)
// or any stage.
//
// Invariants: the first signal starts the drain, the second one ends the process at once; an
// operation that keeps failing shows in readiness under its name; a stage starts only on a broker
// whose settings keep what it acknowledges.
package service
