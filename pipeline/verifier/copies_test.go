package verifier

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// copied publishes a record again, under another id: as after the broker's duplicate window.
func copied(t *testing.T, rig *pipelinetest.Rig, record stream.Record) {
	t.Helper()
	record.Digest = schema.DigestOf(record.Digest[:])
	rig.Publish(t, record)
}

// timed returns a trace with the present time.
func timed(id string) stream.Record {
	return pipelinetest.Trace(id, "a", "ac", "s", time.Now().UTC().Format(time.RFC3339Nano), "search")
}

// superseded registers a card that was in force before ac-1's traces of February, so they should have named it.
func superseded(t *testing.T, rig *pipelinetest.Rig) {
	t.Helper()
	rig.Register(t, bytes.Replace(pipelinetest.Card("ac-2", "a"), []byte("2026-01-01"), []byte("2026-01-15"), 1))
}

// following lets the registry of a verifier follow the cards and revocations.
func following(t *testing.T, v *verifier) *verifier {
	t.Helper()
	if err := v.late.registry.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return v
}

// accused requires how many current verdicts have a finding, and how many alerts there are.
func accused(t *testing.T, rig *pipelinetest.Rig, kind string, findings, alerts int) {
	t.Helper()
	found, err := rig.Store.Findings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
	if err != nil {
		t.Fatal(err)
	}
	if len(found[kind]) != findings || state.Messages != uint64(alerts) {
		t.Errorf("%d alerts and findings %v; want %d alerts, and %s %d times", state.Messages, found, alerts, kind, findings)
	}
}

// A trace that was received before its card was revoked stays clean when a copy arrives after it, in the same
// batch or later. A trace that was received after it is found once.
func TestCopyAfterTheRevocation(t *testing.T) {
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprintf("together=%v", together), func(t *testing.T) {
			rig := pipelinetest.New(t)
			rig.Register(t, pipelinetest.Card("ac", "a"))
			v := judging(t, rig, &pipelinetest.Fault{Step: "look-up"})
			honest, late := timed("honest"), timed("late")
			run := func() *pipelinetest.Stage { return pipelinetest.Go(t, sharing(t, rig, v)) }
			rig.Publish(t, honest)
			var stage *pipelinetest.Stage
			if !together {
				stage = run()
				awaitDone(t, rig, 1)
			}
			card, err := v.late.registry.Lookup(t.Context(), "ac")
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := v.late.registry.Revoke(t.Context(), card.Entry, "key lost", time.Now()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			copied(t, rig, honest)
			rig.Publish(t, late)
			if together {
				stage = run()
			}
			awaitDone(t, rig, 3)
			stage.Stop(t)
			accused(t, rig, schema.Backdated, 1, 1)
			reports, err := rig.Store.Trace(t.Context(), "honest")
			if err != nil || len(reports) != 1 || len(reports[0].Verdicts) != 1 || len(reports[0].Verdicts[0].Findings) != 0 {
				t.Errorf("the trace that was received in time: %+v, error %v", reports, err)
			}
			if summary := replayed(t, rig, replayOf(t, rig)); summary.Written() != 0 || summary.Alerts != 0 {
				t.Errorf("a replay writes %+v", summary)
			}
		})
	}
}

// The same for a card that expires. There the verdict on the copy would be stored in the place of the first one.
func TestCopyAfterTheExpiry(t *testing.T) {
	rig := pipelinetest.New(t)
	expires := time.Now().Add(2 * time.Second).UTC()
	rig.Register(t, bytes.Replace(pipelinetest.Card("ac", "a"), []byte(`"principal"`), fmt.Appendf(nil, `"expires_at":%q,"principal"`, expires.Format(time.RFC3339Nano)), 1))
	v := judging(t, rig, &pipelinetest.Fault{})
	honest, late := timed("honest"), timed("late")
	rig.Publish(t, honest)
	if !time.Now().Before(expires) {
		t.Skip("the machine is too slow")
	}
	stage := pipelinetest.Go(t, sharing(t, rig, v))
	awaitDone(t, rig, 1)
	time.Sleep(time.Until(expires) + 10*time.Millisecond)
	copied(t, rig, honest)
	rig.Publish(t, late)
	copied(t, rig, late)
	awaitDone(t, rig, 4)
	stage.Stop(t)
	accused(t, rig, schema.Backdated, 1, 1)
}

// A copy that arrives after its agent got a newer card does not change the stored verdict. So it has no alert.
func TestCopyAfterANewerCard(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	record := pipelinetest.Trace("honest", "a", "ac", "s", "2026-02-01T00:00:00Z", "search")
	rig.Publish(t, record)
	stage := pipelinetest.Go(t, sharing(t, rig, judging(t, rig, &pipelinetest.Fault{})))
	awaitDone(t, rig, 1)
	stage.Stop(t)
	superseded(t, rig)
	copied(t, rig, record)
	rig.Publish(t, pipelinetest.Trace("another", "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
	stage = pipelinetest.Go(t, sharing(t, rig, following(t, judging(t, rig, &pipelinetest.Fault{}))))
	awaitDone(t, rig, 3)
	stage.Stop(t)
	accused(t, rig, schema.CardSuperseded, 1, 1)
}

// killing stores the rows and ends the process before the next step.
type killing struct {
	Rows
	kill context.CancelFunc
}

func (w *killing) InsertTraces(ctx context.Context, rows *store.TraceBatch) error {
	if err := w.Rows.InsertTraces(ctx, rows); err != nil {
		return err
	}
	w.kill()
	<-ctx.Done()
	return ctx.Err()
}

// A verifier is killed after the insert. The next one publishes the alerts of the stored verdicts, also if it
// would judge otherwise by now.
func TestAlertsAfterAKillAreThoseOfTheStoredVerdict(t *testing.T) {
	killed := func(t *testing.T, rig *pipelinetest.Rig, v *verifier) {
		rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
		ctx, kill := context.WithCancel(t.Context())
		v.env.DrainBudget = 50 * time.Millisecond
		v.rows = &killing{Rows: rig.Store, kill: kill}
		_ = sharing(t, rig, v)(ctx)
		if n := rig.Number(t, "SELECT count() FROM verdicts"); n != 1 {
			t.Fatalf("%d verdicts are stored", n)
		}
	}
	t.Run("clean", func(t *testing.T) {
		rig := pipelinetest.New(t)
		rig.Register(t, pipelinetest.Card("ac", "a"))
		killed(t, rig, judging(t, rig, &pipelinetest.Fault{}))
		superseded(t, rig)
		stage := pipelinetest.Go(t, sharing(t, rig, following(t, judging(t, rig, &pipelinetest.Fault{}))))
		awaitDone(t, rig, 1)
		stage.Stop(t)
		accused(t, rig, schema.CardSuperseded, 0, 0)
	})
	t.Run("with a finding", func(t *testing.T) {
		rig := pipelinetest.New(t)
		rig.Register(t, pipelinetest.Card("ac", "a"))
		superseded(t, rig)
		killed(t, rig, following(t, judging(t, rig, &pipelinetest.Fault{})))
		v := following(t, judging(t, rig, &pipelinetest.Fault{}))
		v.workspaces[0].registry = withoutNewer{v.late.registry}
		stage := pipelinetest.Go(t, sharing(t, rig, v))
		awaitDone(t, rig, 1)
		stage.Stop(t)
		accused(t, rig, schema.CardSuperseded, 1, 1)
		var alert schema.Verdict
		if err := json.Unmarshal(rig.Messages(t, stream.Alerts, 1)[0].Data, &alert); err != nil || len(alert.Findings) != 1 {
			t.Errorf("the alert says %+v, error %v", alert, err)
		}
	})
}

// withoutNewer is a registry in which no card is newer than another.
type withoutNewer struct{ Registry }

func (withoutNewer) Instead(*cards.Entry, string, time.Time) *cards.Entry { return nil }

// lookUps counts the traces that are looked up.
type lookUps struct {
	Rows
	queries, traces int
}

func (l *lookUps) LookUpTraces(ctx context.Context, traces []store.TraceKey) (*store.TraceResults, error) {
	l.queries, l.traces = l.queries+1, l.traces+len(traces)
	return l.Rows.LookUpTraces(ctx, traces)
}

// A verdict that only its trace and card determine needs no look-up: a fleet whose every trace breaks a rule
// is as fast as another one. The others of a batch are looked up together.
func TestFewTracesAreLookedUp(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"), pipelinetest.Card("other", "b"))
	superseded(t, rig)
	v := following(t, judging(t, rig, &pipelinetest.Fault{}))
	counted := &lookUps{Rows: rig.Store}
	v.rows = counted
	for i := range 100 {
		rig.Publish(t, pipelinetest.Trace(fmt.Sprint("tr-", i), "b", "other", "s", "2026-02-01T00:00:00Z", "pay"))
	}
	for i := range 10 {
		rig.Publish(t, pipelinetest.Trace(fmt.Sprint("tr-", i), "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
	}
	v.cfg.BatchAge = 2 * time.Second
	stage := pipelinetest.Go(t, sharing(t, rig, v))
	awaitDone(t, rig, 110)
	stage.Stop(t)
	if counted.traces != 10 || counted.queries > 2 {
		t.Errorf("%d traces are looked up with %d queries, want 10 traces", counted.traces, counted.queries)
	}
	accused(t, rig, schema.CardSuperseded, 10, 110)
}
