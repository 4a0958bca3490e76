package exporter

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/schema"
)

// A verifier that died before its acks receipts once more what it had receipted:
// a session does not grow by that.
func TestRepeatedReceiptsDoNotRotate(t *testing.T) {
	cfg := Default()
	cfg.RotateRows = 4
	now := time.Now()
	s := &openSession{first: now, last: now, highest: 3}
	for range 3 {
		s.receipts = append(s.receipts, schema.Receipt{Sequence: 1}, schema.Receipt{Sequence: 2}, schema.Receipt{Sequence: 3})
	}
	if why := s.due(&cfg, now, now, 3); why != "" || len(s.receipts) != 3 {
		t.Errorf("three traces, each receipted three times: due for %q, %d receipts", why, len(s.receipts))
	}
	s.receipts = append(s.receipts, schema.Receipt{Sequence: 4})
	if why := s.due(&cfg, now, now, 3); why != seal.ReasonRotation {
		t.Errorf("four traces: due for %q", why)
	}
}
