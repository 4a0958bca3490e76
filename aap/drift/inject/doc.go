// Package inject has the library of changes that plumbline drift eval puts into recorded traces.
//
// A Change alters one trace as an agent would write it after its behaviour changed: half of its
// actions are transfers, its tools fail five times as often, its texts are another agent's. A
// detector then sees a recording in which one change is known, and where it begins.
//
// The package owns what each change does to a trace, and what it must know of the recordings for
// it (Setting). It does not own where in a recording a change begins, the order of traces, or what
// a detector makes of it: aap/drift/trial does.
//
// Invariants: the result depends on the trace, the setting and its seed alone, and not on the
// traces that were altered before. The strict decoder reads every altered trace. A change alters
// nothing outside the members that it names (Change.Touches); ids, time, session and end mark
// stay. A trace that a change does not concern is returned as it is.
package inject
