// Package report writes a page about one bundle that somebody without technical knowledge can read:
// who acted, when, what was decided and why, what the operator's pipeline concluded, what the
// verification of the bundle proves and by which check, what nothing proves, and how to check it
// again.
//
// It owns the page: its words, its limits and its form. It does not own the verification and its
// sentences (package aivs), nor the verdicts, which it takes from the bundle. It reads no file and no
// clock.
//
// Invariants: the same bundle and options give the same bytes. The page has no script and loads
// nothing. No text of a bundle can become markup, or control how the page is shown. What a bundle
// that is not intact contains is never shown as if it were proven. The size of the page is bounded.
package report
