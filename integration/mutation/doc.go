// Command mutation changes one condition or statement of a package at a time, and
// reports every change that no test notices.
//
//	go run ./integration/mutation -explained docs/mutants.txt ./aap ./aap/condition
//
// It owns the changes (mutants.go), the instrumented packages (instrument.go) and the
// runs (run.go). All mutants of a package are compiled into one test binary, in which an
// environment variable switches on one of them. The command first records which mutants each
// test reaches, and then runs only those tests for a mutant, the quickest first.
//
// Invariants: no file of the project is written; a mutant that no test reaches
// survives; a run that takes ten times as long as the unchanged tests counts as noticed.
package main
