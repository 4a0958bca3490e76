// Package bench measures what this machine carries, in scenarios: how fast the stages work through a
// backlog, take posts, seal, or keep up with a given rate, and what a trace costs each process.
//
// Each scenario is measured beside the floor (package floor) in the same run, and their ratio is the figure
// to compare: absolute figures depend on the machine's state. The package owns the traces that are published, the
// clocks and the counts. Broker, database and each stage are processes of their own, so that their CPU, memory and
// writes are known from /proc. Publishers are this process; what they use is in no figure.
//
// Invariants: every measurement has an empty data directory. A measurement in which a trace or verdict is missing,
// or a process ended by itself, is an error and no figure. The clock of a backlog contains no publishing.
package bench
