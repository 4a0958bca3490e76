// Package checker walks the invariants of a pipeline that has come to rest, after
// whatever the test did to it.
//
// It owns what must be true then: every acknowledged trace is stored or a dead
// letter, and once; every stored trace has the one verdict that the pure function
// gives; drift equals a replay; every bundle holds, and together they hold every
// trace of their session once; receipts and acknowledgements cover everything.
// What a single test expects beside that is the test's business.
//
// It trusts no stage: the truth is stream TRACES, the cards, and the pure packages
// aap, aap/drift and aivs. Rows are read as an operator would read them.
package checker
