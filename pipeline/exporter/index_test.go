package exporter

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// A verifier that crashed before its acks writes the same receipts again: a session does not grow
// by that.
func TestRepeatedReceiptsDoNotRotate(t *testing.T) {
	cfg := Default()
	cfg.RotateRows = 4
	now := time.Now()
	s := &openSession{first: now, last: now, highest: 3}
	for range 3 {
		s.receipts = append(s.receipts, schema.Receipt{Sequence: 1}, schema.Receipt{Sequence: 2}, schema.Receipt{Sequence: 3})
	}
	if why := s.due(&cfg, nil, now, 3); why != "" || len(s.receipts) != 3 {
		t.Errorf("three traces, each receipted three times: due for %q, %d receipts", why, len(s.receipts))
	}
	s.receipts = append(s.receipts, schema.Receipt{Sequence: 4})
	if why := s.due(&cfg, nil, now, 3); why != seal.ReasonRotation {
		t.Errorf("four traces: due for %q", why)
	}
}

// A part ends before it exceeds its bounds in rows and in bytes. A single record of any size
// fits.
func TestNextPartIsBounded(t *testing.T) {
	cfg := Default()
	cfg.RotateRows, cfg.RotateBytes = 3, 100
	for name, c := range map[string]struct {
		sizes []int
		n     int
		full  bool
	}{
		"nothing":            {nil, 0, false},
		"room left":          {[]int{40, 60}, 2, false},
		"bytes":              {[]int{40, 60, 1}, 2, true},
		"rows":               {[]int{1, 1, 1}, 3, true},
		"more rows":          {[]int{1, 1, 1, 1}, 3, true},
		"one record too big": {[]int{101}, 1, false},
		"two of them":        {[]int{101, 101}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &openSession{}
			for i, size := range c.sizes {
				s.receipts = append(s.receipts, schema.Receipt{Sequence: uint64(i + 1), Bytes: size})
			}
			if n, full := s.next(&cfg); n != c.n || full != c.full {
				t.Errorf("next = %d, %v, want %d, %v", n, full, c.n, c.full)
			}
		})
	}
}

// A session counts as held once, however often it is tried, until it is sealed.
func TestHeldSessionsAreCounted(t *testing.T) {
	e := &exporter{index: newIndex(10), metrics: newMetrics(prometheus.NewRegistry())}
	s := e.index.session(store.SessionKey{AgentID: "a", SessionID: "s"}, 0, &stream.Message{Sequence: 1})
	s.add(&schema.Receipt{Sequence: 1})
	for range 2 {
		e.forget([]*job{{session: s}})
		if e.index.held != 1 {
			t.Errorf("%d sessions are held, want 1", e.index.held)
		}
	}
	sealed := &job{session: s, repeated: true}
	sealed.part.Plan.Cut = 1
	e.forget([]*job{sealed})
	if e.index.held != 0 || len(e.index.sessions) != 0 {
		t.Errorf("%d sessions are held after sealing, %d open", e.index.held, len(e.index.sessions))
	}
}
