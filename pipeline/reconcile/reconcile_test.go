package reconcile_test

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/reconcile"
)

func (s *site) untouchedDataAgrees(t *testing.T) {
	summary, found := s.compare(t)
	if summary.Differences != 0 || len(found) != 0 || len(summary.Skipped) != 0 {
		t.Errorf("skipped %v, found\n%s", summary.Skipped, lines(found))
	}
	events := summary.Counts.LedgerEvents
	want := reconcile.Counts{
		Messages: sealedTraces + 6, Ends: 3, Traces: sealedTraces + 1, Copies: 1, DeadLetters: 1, Verdicts: sealedTraces + 1, Points: sealedTraces + 1, Receipts: sealedTraces + 2,
		Sessions: 2, Bundles: 3, Files: 3, Verified: 3, Sealed: sealedTraces, Claims: 3, Leaves: 3, Proofs: 3, Keys: 2, Heads: summary.Counts.Heads,
		LedgerEvents: events, LedgerEntries: events + 1, LedgerRows: events + 1, // GENESIS
	}
	if summary.Counts != want || events < 5 || summary.Counts.Heads < 3 {
		t.Errorf("compared %+v\nwant     %+v", summary.Counts, want)
	}
}
