package verifier

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// interrupted calls a function between judging and storing.
type interrupted struct {
	Rows
	meanwhile func()
}

func (w *interrupted) InsertTraces(ctx context.Context, rows *store.TraceBatch) error {
	w.meanwhile()
	return w.Rows.InsertTraces(ctx, rows)
}

// A revocation that arrives after a trace was judged and before it was stored finds nothing to
// judge again, so the verifier checks it again after the commit.
func TestRevocationDuringACommitIsRechecked(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	source := tracesOf(t, rig)
	v := judging(t, rig, source, &pipelinetest.Fault{})
	registry := v.late.registry
	card, err := registry.Lookup(t.Context(), "ac")
	if err != nil {
		t.Fatal(err)
	}
	v.rows = &interrupted{Rows: v.rows, meanwhile: func() { revokeNow(t, registry, card) }}
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
	stage := pipelinetest.Go(t, v.run)
	awaitAcked(t, source, 1)
	stage.Stop(t)
	if _, revoked := v.late.take(); len(revoked) != 1 || revoked[0].CardID != "ac" {
		t.Errorf("rechecked: %+v", revoked)
	}
}

func revokeNow(t *testing.T, registry *cards.Registry, card *cards.Card) {
	if _, _, err := registry.Revoke(t.Context(), card.Entry, "key lost", time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Error(err)
	}
}

// A trace whose late verdict is stored is not found again, so its alert must exist by then:
// publishing it fails once, and runs first.
func TestLateAlertsSurviveAFault(t *testing.T) {
	rig := pipelinetest.New(t)
	source := tracesOf(t, rig)
	fault := &pipelinetest.Fault{Step: "alerts"}
	v := judging(t, rig, source, fault)
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "pay")) // forbidden by a card that comes later
	stage := pipelinetest.Go(t, v.run)
	awaitAcked(t, source, 1)
	stage.Stop(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	late := v.late
	late.registry = openRegistry(t, rig)
	late.rows, late.outlet, late.workspace = rig.Store, v.outlet, workspace{registry: late.registry, rules: v.workspace.rules}
	card, err := late.registry.Lookup(t.Context(), "ac")
	if err != nil {
		t.Fatal(err)
	}
	if err := late.judgeCards(t.Context(), []string{card.Card.CardID}); err == nil || !fault.Met() {
		t.Fatalf("the fault was not reached: %v", err)
	}
	if err := late.judgeCards(t.Context(), []string{card.Card.CardID}); err != nil {
		t.Fatal(err)
	}
	state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
	if err != nil || state.Messages != 1 {
		t.Errorf("%d alerts, want one; error %v", state.Messages, err)
	}
}

func openRegistry(t *testing.T, rig *pipelinetest.Rig) *cards.Registry {
	t.Helper()
	registry, err := cards.Open(t.Context(), rig.Client, config.DefaultCardCacheBytes)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}
