package sink_test

import (
	"context"
	"testing"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/sink"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }

// running runs a sink on the rig until the test ends or stops it.
func running(t *testing.T, rig *pipelinetest.Rig, cfg stream.ConsumerConfig, run func(context.Context, sink.Source) error) *pipelinetest.Stage {
	t.Helper()
	source, err := rig.Client.OpenConsumer(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	return pipelinetest.Go(t, func(ctx context.Context) error { return run(ctx, source) })
}

// faulty is the operator's ledger with a fault in it.
type faulty struct {
	*stream.Client
	f *pipelinetest.Fault
}

func (w *faulty) AppendLedger(ctx context.Context, list ...ledger.Event) error {
	return w.f.Around("ledger", func() error { return w.Client.AppendLedger(ctx, list...) })
}

// A process that dies before or after it appends to the ledger leaves no alert out: the next process
// appends the entry, and a repeated entry is stored once.
func TestFindingsSurviveACrash(t *testing.T) {
	for _, applied := range []bool{false, true} {
		rig := pipelinetest.New(t)
		alerts := []wire.Alert{{Kind: "finding", Agent: "a", ID: "1", Data: []byte("{}")}, {Kind: "drift", Agent: "b", ID: "2", Data: []byte("[]")}}
		if err := rig.Client.PublishAlerts(t.Context(), alerts); err != nil {
			t.Fatal(err)
		}
		dying, die := context.WithCancel(t.Context())
		world := &faulty{Client: rig.Client, f: &pipelinetest.Fault{Step: "ledger", Applied: applied, Crash: die}}
		entering(dying, t, rig, world)
		if !world.f.Met() {
			t.Fatal("the fault did not happen")
		}
		next, stop := context.WithCancel(t.Context())
		go func() {
			defer stop()
			pipelinetest.Await(t, "the alerts acknowledged", func() bool {
				progress, err := rig.Client.ConsumerProgress(t.Context(), stream.Alerts, stream.FindingsConsumer)
				return err == nil && progress.AckFloor == 2
			})
		}()
		entering(next, t, rig, world)
		state, err := rig.Client.StreamState(t.Context(), stream.Ledger)
		if err != nil || state.Messages != 1 {
			t.Errorf("applied %v: %d entries, want one; error %v", applied, state.Messages, err)
		}
	}
}

// entering appends findings to the ledger until ctx ends, without a drain.
func entering(ctx context.Context, t *testing.T, rig *pipelinetest.Rig, world *faulty) {
	t.Helper()
	source, err := rig.Client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Alerts, Durable: stream.FindingsConsumer, Rewind: true})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	env := pipelinetest.Env(t, "verifier")
	env.DrainBudget = 0
	if err := (&sink.Findings{Env: env, Ledger: world}).Run(ctx, source); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}
