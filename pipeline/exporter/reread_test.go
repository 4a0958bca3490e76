package exporter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// An index that keeps few receipts of a session plans the same parts, reports the same about the
// session and has the same checkpoint as one that keeps all, for any order and repetition of
// receipts, and wherever the exporter stops.
func TestFewKeptReceiptsGiveTheSameParts(t *testing.T) {
	env, dir := pipelinetest.Env(t, "exporter"), t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, env, dir)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			default:
				w.receive(t)
			case 0:
				w.request(t)
			case 1, 2:
				w.each(func(r *replica) { r.sealAll(t, w.floor(), w.repeats) })
			case 3:
				w.each(func(r *replica) { r.planAll(t, w.floor()) })
				w.restartAnyhow(t)
			case 4:
				w.restartAnyhow(t)
			}
			w.compare(t)
		}
		w.receiveAll()
		w.each(func(r *replica) { r.sealAll(t, w.floor(), w.repeats) })
		w.compare(t)
	})
}

// A fixed plan is carried out although its session is no longer due under the current bounds, and
// although all receipts that are kept at first are sealed.
func TestFixedPlanIsCarriedOutUnderOtherBounds(t *testing.T) {
	cfg := Default()
	cfg.BundleDir = t.TempDir()
	w := &world{env: pipelinetest.Env(t, "exporter"), cfg: &cfg, created: time.Now().Add(24 * time.Hour)}
	for i := range 4 {
		w.traces = append(w.traces, schema.Receipt{AgentID: "a", SessionID: "s", Sequence: uint64(i + 1), Digest: schema.DigestOf(fmt.Append(nil, i))})
	}
	w.received = make([]bool, len(w.traces))
	w.begin()
	w.restart(1, 1)
	w.receiveAll()
	w.each(func(r *replica) { r.sealAll(t, 3, false) })
	w.each(func(r *replica) { r.planAll(t, 4) })
	w.restart(3, 3)
	w.each(func(r *replica) { r.sealAll(t, 4, false) })
	for i, r := range w.replicas {
		if len(r.told["s"]) != 4 {
			t.Errorf("exporter %d sealed %d parts, want 4", i, len(r.told["s"]))
		}
	}
}

// Receipts that were left out are read again from the broker, after what the bucket records as
// sealed.
func TestOmittedReceiptsAreReread(t *testing.T) {
	broker, cfg := pipelinetest.New(t).Client, Default()
	for n := range uint64(6) {
		r := schema.Receipt{AgentID: "a", SessionID: "s", Sequence: n + 1, Digest: schema.DigestOf(fmt.Append(nil, n)), EventTime: time.Unix(0, 0)}
		if err := broker.PublishReceipts(t.Context(), [][]schema.Receipt{{r}}); err != nil {
			t.Fatal(err)
		}
	}
	e, owners, err := open(t.Context(), &cfg, pipelinetest.Env(t, "exporter"), broker, "here")
	if err != nil {
		t.Fatal(err)
	}
	cfg.RotateRows, e.keptReceipts = 2, 2
	inTerm(t, e, owners, func() { rereadOmitted(t, e) })
}

// inTerm does something while the exporter owns all partitions.
func inTerm(t *testing.T, e *exporter, owners ownership.Config, do func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	member, err := ownership.Join(ctx, owners)
	if err == nil {
		err = member.Run(ctx, func(_ context.Context, term *ownership.Term) error {
			e.begin(term)
			do()
			stop()
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func rereadOmitted(t *testing.T, e *exporter) {
	for e.index.position < 6 {
		if err := e.foldFor(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	key := store.SessionKey{AgentID: "a", SessionID: "s"}
	value, err := (&seal.Record{State: seal.Sealed, StreamCreated: e.index.created, Cut: 2}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.seals.Put(t.Context(), seal.Key(key.AgentID, key.SessionID), value); err != nil {
		t.Fatal(err)
	}
	s := e.index.sessions[streamKey{key, e.index.created.UnixNano()}]
	e.release(s, 2)
	if err := e.reread(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.receipts) != 2 || s.receipts[0].Sequence != 3 || s.overflow.receipts != 2 || s.overflow.lowest != 5 || s.from != 3 || s.highest != 6 {
		t.Errorf("%d receipts are kept, beyond them %+v; read from message %d on, highest sequence %d", len(s.receipts), s.overflow, s.from, s.highest)
	}
}
