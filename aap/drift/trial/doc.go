// Package trial measures drift detectors on recorded traces: how often they raise an alarm on an
// agent that did not change, which changes they find, and after how many traces.
//
// A recording is run in its own order and in permuted ones, in which whole sessions exchange their
// starting times: every alarm there is false by construction. A change begins at half of the
// judged traces. It is found by the first alarm after that place which the unchanged twin, the
// same traces in the same order without the change, does not raise at the same trace.
//
// The package owns the orders, the split of the agents, the place of a change, what counts as
// found, and the figures. The detector is drift.State.Step itself; aap/drift/inject owns the changes.
//
// Invariants: the report follows from recordings and options alone, and not from the number of
// workers. All rules under trial see the same traces in the same orders, with changes at the
// same places.
package trial
