// Package drift is the stage that detects behavioral drift. It applies each agent's traces, in
// the order in which they were made, to the agent's series under its card. It stores a point for
// each trace, the events of each alert (AAP section 8), the baselines of the comparisons, alerts
// about loops of running sessions, and the state to continue from.
//
// It owns the order of traces: how long a trace waits for older ones, which traces come too late,
// and which are duplicates. It also owns which series are in memory. It does not own the step (package aap/drift), the tables
// (pipeline/store), the broker's messages (pipeline/stream), or the definition of a session.
//
// Invariants: which traces are applied, and in which order, depends on the stream alone. The
// results depend only on the stream and the configuration, of which pins are a part. They do not
// depend on where a worker stops and starts again, so a replay gives the same points and the same
// alert ids. An agent's clock orders its traces and advances nothing: a trace dated after its
// arrival counts as made when it arrived, and does not make other traces late. A message is recorded as
// done once the state that lists it is durable. A series that is not in memory is read from its stored
// state when a trace of it arrives, after a start and after it was evicted; a series is evicted
// only when its state is durable and none of its traces waits. So a stage reads no states ahead,
// and its memory does not grow with the number of agents. Each partition has one owner (package
// ownership). A process that does not know yet that it has lost a partition stores what the next owner
// stores, and states that are equal or older.
//
// It has more than 1,800 lines because the stage, the pinned baselines and the replay share one
// fold, and a replay of it outside this package would be a second fold.
package drift
