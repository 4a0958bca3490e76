package verifier

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// faulty is the environment of a verifier with a fault in it.
type faulty struct {
	*stream.Client
	store *store.Store
	f     *pipelinetest.Fault
}

func (w *faulty) InsertTraces(ctx context.Context, rows *store.TraceBatch) error {
	return w.f.Around("insert", func() error { return w.store.InsertTraces(ctx, rows) })
}

func (w *faulty) LookUpTraces(ctx context.Context, traces []store.TraceKey) (found *store.TraceResults, err error) {
	err = w.f.Around("look-up", func() (err error) {
		found, err = w.store.LookUpTraces(ctx, traces)
		return err
	})
	return found, err
}

func (w *faulty) LookUpVerdicts(ctx context.Context, traces []store.TraceKey) (map[schema.Digest]*schema.Verdict, error) {
	return w.store.LookUpVerdicts(ctx, traces)
}

func (w *faulty) PublishReceipts(ctx context.Context, byPartition [][]schema.Receipt) error {
	return w.f.Around("receipts", func() error { return w.Client.PublishReceipts(ctx, byPartition) })
}

func (w *faulty) PublishAlerts(ctx context.Context, alerts []wire.Alert) error {
	if len(alerts) == 0 {
		return nil
	}
	return w.f.Around("alerts", func() error { return w.Client.PublishAlerts(ctx, alerts) })
}

func (w *faulty) DeadLetter(ctx context.Context, letter wire.DeadLetter) error {
	return w.f.Around("dead letter", func() error { return w.Client.DeadLetter(ctx, letter) })
}

// faultyRecord is the record of partitions with a fault in the writes that move a position.
type faultyRecord struct {
	ownership.Record
	f     *pipelinetest.Fault
	floor uint64
}

func (r *faultyRecord) Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error) {
	var shares stream.Shares
	if err := json.Unmarshal(value, &shares); err != nil {
		return 0, err
	}
	write := func() error {
		revision, err = r.Record.Update(ctx, key, value, last)
		return err
	}
	moves := shares.Floor() > r.floor
	r.floor = shares.Floor()
	if !moves {
		return revision, write()
	}
	return revision, r.f.Around("position", write)
}

// sharing runs the stage as an owner of partitions.
func sharing(t *testing.T, rig *pipelinetest.Rig, v *verifier) func(context.Context) error {
	t.Helper()
	leases, err := rig.Client.Bucket(t.Context(), stream.Leases)
	if err != nil {
		t.Fatal(err)
	}
	presence, err := rig.Client.Announce(t.Context(), stream.Holder{Stage: "verifier"})
	if err != nil {
		t.Fatal(err)
	}
	var record ownership.Record = leases
	if world, ok := v.outlet.(*faulty); ok {
		before, err := rig.Client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
		if err != nil {
			t.Fatal(err)
		}
		record = &faultyRecord{Record: leases, f: world.f, floor: before.AckFloor}
	}
	return func(ctx context.Context) error { return v.judgeShare(ctx, owners(v, rig.Client, record, presence)) }
}

// awaitDone waits until all traces up to a sequence are done.
func awaitDone(t *testing.T, rig *pipelinetest.Rig, through uint64) {
	t.Helper()
	pipelinetest.Await(t, "every trace done", func() bool {
		progress, err := rig.Client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.AckFloor == through
	})
}

// newBench returns a workspace with the default rules.
func newBench(t *testing.T, registry Registry) workspace {
	t.Helper()
	rules := DefaultRules()
	bench, err := newWorkspace(registry, nil, &rules)
	if err != nil {
		t.Fatal(err)
	}
	return bench
}

// judging composes the stage on the rig as Serve does, with the faulty environment.
func judging(t *testing.T, rig *pipelinetest.Rig, f *pipelinetest.Fault) *verifier {
	t.Helper()
	registry, err := cards.Open(t.Context(), rig.Client, config.DefaultCardCacheBytes)
	if err != nil {
		t.Fatal(err)
	}
	world := &faulty{Client: rig.Client, store: rig.Store, f: f}
	cfg, env := Default(), pipelinetest.Env(t, "verifier")
	cfg.BatchAge = 50 * time.Millisecond
	return &verifier{
		env: env, cfg: &cfg, rows: world, outlet: world,
		metrics:    newMetrics(env.Metrics),
		workspaces: []workspace{newBench(t, registry)}, newRows: rig.Store.NewTraceBatch, sliceRows: sliceRows, aheadRows: aheadRows,
		late: &lateCards{env: env, registry: registry, rows: rig.Store, outlet: world, wake: make(chan struct{}, 1),
			rechecking: newBench(t, registry)},
	}
}

// Every external step fails once, before or after it took effect: nothing is lost, nothing is
// duplicated, and everything is acked in the end.
func TestJudgingSurvivesEveryStep(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	round := 0
	for _, step := range []string{"insert", "dead letter", "receipts", "alerts", "position"} {
		for _, applied := range []bool{false, true} {
			round++
			t.Run(fmt.Sprintf("%s, applied=%v", step, applied), func(t *testing.T) {
				survive(t, rig, round, &pipelinetest.Fault{Step: step, Applied: applied})
			})
		}
	}
}

// survive judges the traces of a round under a fault, and checks the results of all rounds so far.
func survive(t *testing.T, rig *pipelinetest.Rig, round int, f *pipelinetest.Fault) {
	const each = 20
	for i := range each {
		action := []string{"search", "pay"}[i%2] // every second one is forbidden
		rig.Publish(t, pipelinetest.Trace(fmt.Sprintf("tr-%d-%d", round, i), "a", "ac", "s", "2026-02-01T00:00:00Z", action))
	}
	rig.Publish(t, pipelinetest.Record("a", fmt.Appendf(nil, `{"n":%d}`, round)))
	stage := pipelinetest.Go(t, sharing(t, rig, judging(t, rig, f)))
	n := uint64(round * each)
	awaitDone(t, rig, n+uint64(round))
	stage.Stop(t)
	if !f.Met() {
		t.Fatal("the step with the fault was not reached")
	}
	counts, err := rig.Store.Counts(t.Context())
	if err != nil || counts.Traces != n || counts.TraceRows != n || counts.Verdicts != n {
		t.Errorf("counts %+v, want %d; error %v", counts, n, err)
	}
	for name, want := range map[string]uint64{stream.Alerts: n / 2, stream.DeadLetters: uint64(round)} {
		state, err := rig.Client.StreamState(t.Context(), name)
		if err != nil || state.Messages != want {
			t.Errorf("stream %s holds %d messages, want %d; error %v", name, state.Messages, want, err)
		}
	}
	if got := receipted(t, rig); got != int(n) {
		t.Errorf("%d traces are receipted, want %d", got, n)
	}
}

// receipted counts the sequences with a receipt in stream RECEIPTS.
func receipted(t *testing.T, rig *pipelinetest.Rig) int {
	t.Helper()
	state, err := rig.Client.StreamState(t.Context(), stream.Receipts)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := rig.Client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Receipts})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	messages, err := reader.Fetch(t.Context(), nil, int(state.Messages), 0, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	sequences := map[uint64]bool{}
	for i := range messages {
		receipts, _, err := wire.DecodeReceipts(messages[i].Data, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range receipts {
			sequences[r.Sequence] = true
		}
	}
	return len(sequences)
}
