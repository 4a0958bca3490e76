package reconcile_test

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Rows that the cards' retention has removed are counted and are no difference. The same rows are
// missing the day before they expire.
func (s *site) expiredRowsAreNotMissing(t *testing.T) {
	s.exec(t, "ALTER TABLE traces DELETE WHERE trace_id IN ('x-1', 'open-1')")
	s.exec(t, "ALTER TABLE verdicts DELETE WHERE trace_id = 'y-2'")
	s.now = time.Now().Add(89 * 24 * time.Hour) // the card says 90 days
	s.demand(t, map[reconcile.Kind]string{reconcile.RowMissing: `trace "open-1"`, reconcile.VerdictMissing: `trace "y-2"`})
	s.now = time.Now().Add(91 * 24 * time.Hour)
	summary, found := s.compare(t)
	if len(found) != 0 || summary.Counts.Expired != 3 {
		t.Errorf("%d are expired, want 3; reported:\n%s", summary.Counts.Expired, lines(found))
	}
}

// Rows whose messages the stream's limits have removed are compared with their own digests, and
// with the bundles that contain them.
func (s *site) rowsWhoseMessagesAreRemoved(t *testing.T) {
	s.now = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC) // a day after the traces' own time
	s.limit(t, stream.Traces, 1)
	s.limit(t, stream.Receipts, 1)
	summary, found := s.compare(t)
	if want := uint64(sealedTraces + 1); len(found) != 0 || summary.Counts.Unstreamed != want || summary.Counts.Messages != 1 {
		t.Errorf("compared %+v, want %d beyond the stream; reported:\n%s", summary.Counts, want, lines(found))
	}
	s.exec(t, "ALTER TABLE traces UPDATE raw = replaceOne(raw, 'search', 'delete') WHERE trace_id = 'open-1'")
	s.exec(t, "ALTER TABLE traces DELETE WHERE trace_id = 'y-2'")
	s.demand(t, map[reconcile.Kind]string{
		reconcile.RowChanged:       `trace "open-1" sequence 3: the stored bytes are`,
		reconcile.SealedRowMissing: `session "y" trace "y-2"`,
	})
}

// limit reduces a stream to its last messages.
func (s *site) limit(t *testing.T, name string, messages int64) {
	t.Helper()
	js := s.Broker.JetStream()
	live, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := live.CachedInfo().Config
	cfg.MaxMsgs, cfg.Discard = messages, jetstream.DiscardOld
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	pipelinetest.Await(t, "older messages to be removed", func() bool {
		state, err := s.Client.StreamState(t.Context(), name)
		return err == nil && state.Messages == uint64(messages)
	})
}

// A message that was acked, and neither stored nor receipted, is reported as missing in both
// places.
func TestLostMessageIsReported(t *testing.T) {
	s := &site{Rig: pipelinetest.New(t), dir: t.TempDir()}
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.export(t, true)
	s.Publish(t, trace("lost", "x", 1))
	reader, err := s.Client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := reader.Fetch(t.Context(), nil, 1, 0, time.Minute)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, error %v", len(messages), err)
	}
	if err := stream.Acknowledge(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
	reader.Close()
	pipelinetest.Await(t, "the exporter's first entry", func() bool {
		state, err := s.Client.StreamState(t.Context(), stream.Ledger)
		return err == nil && state.LastSequence > 0
	})
	pipelinetest.Await(t, "the key list", func() bool {
		_, err := os.Stat(s.path("keys", keystore.ListName))
		return err == nil
	})
	s.restWithoutDrift(t)
	s.demand(t, map[reconcile.Kind]string{reconcile.RowMissing: `trace "lost" sequence 1`, reconcile.ReceiptMissing: `trace "lost" sequence 1`})
}

// A bundle that was sealed while no log was configured is reported if there is a log.
func TestBundleMissingFromTheLogIsReported(t *testing.T) {
	s := newSite(t)
	s.Register(t, pipelinetest.Card("ac", "a"))
	s.Publish(t, trace("x-1", "x", 1))
	s.end(t, "x", 1)
	s.stages[1].Stop(t)
	s.export(t, false)
	s.Publish(t, trace("y-1", "y", 2))
	s.end(t, "y", 2)
	s.rest(t)
	s.demand(t, map[reconcile.Kind]string{reconcile.BundleUnlogged: `session "y"`})
}

// A test causes every kind of difference.
func TestEveryKindHasATest(t *testing.T) {
	planted := map[reconcile.Kind]bool{
		reconcile.ReceiptForeign: true, reconcile.ReceiptChanged: true, reconcile.ReceiptMissing: true,
		reconcile.SealedRowMissing: true, reconcile.BundleUnlogged: true, reconcile.VerdictID: true, reconcile.AlertID: true,
		reconcile.StampBad: true, reconcile.StampLate: true, reconcile.StampMissing: true,
		reconcile.PointOverdue: true, reconcile.LoopMissing: true,
	}
	for _, d := range damages {
		for kind := range d.want {
			planted[kind] = true
		}
	}
	for kind := range reconcile.Kinds() {
		if !planted[kind] {
			t.Errorf("no test causes a difference of kind %s", kind)
		}
	}
}
