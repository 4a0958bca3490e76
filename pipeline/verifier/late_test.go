package verifier

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
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
	v := judging(t, rig, &pipelinetest.Fault{})
	registry := v.late.registry
	card, err := registry.Lookup(t.Context(), "ac")
	if err != nil {
		t.Fatal(err)
	}
	v.rows = &interrupted{Rows: v.rows, meanwhile: func() { revokeNow(t, registry, card) }}
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
	stage := pipelinetest.Go(t, sharing(t, rig, v))
	awaitDone(t, rig, 1)
	stage.Stop(t)
	if _, revoked := v.late.take(); len(revoked) != 1 || revoked[0].CardID != "ac" {
		t.Errorf("rechecked: %+v", revoked)
	}
}

// A verifier stores a trace that it judged before a revocation, and ends before it has judged it again. Another
// one has processed the revocation already. It processes it again when it gets the partitions.
func TestRevocationWhileAVerifierEnds(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	v := judging(t, rig, &pipelinetest.Fault{})
	card, err := v.late.registry.Lookup(t.Context(), "ac")
	if err != nil {
		t.Fatal(err)
	}
	v.rows = &interrupted{Rows: v.rows, meanwhile: func() {
		if _, _, err := v.late.registry.Revoke(t.Context(), card.Entry, "key lost", time.Now()); err != nil {
			t.Error(err)
		}
	}}
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac", "s", time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano), "search"))
	stage := pipelinetest.Go(t, sharing(t, rig, v))
	awaitDone(t, rig, 1)
	stage.Stop(t) // its queue of revocations is lost
	next := judging(t, rig, &pipelinetest.Fault{})
	if err := next.late.registry.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	next.late.workspace = newBench(t, next.late.registry)
	pipelinetest.Go(t, next.late.run)
	pipelinetest.Go(t, sharing(t, rig, next))
	pipelinetest.Await(t, "the trace judged by the revocation", func() bool {
		found, err := rig.Store.Findings(t.Context())
		return err == nil && len(found[schema.CardRevoked]) == 1
	})
}

// unchanging are rows of which no verdict changes what is to be judged.
type unchanging struct {
	LateRows
	traces uint64
	raw    []byte
	judged int
}

func (*unchanging) InsertRevocations(context.Context, []schema.Revocation) error { return nil }

func (u *unchanging) InsertVerdicts(_ context.Context, verdicts *store.VerdictBatch) error {
	u.judged += verdicts.Len()
	return nil
}

func (u *unchanging) TracesOfRevokedCards(ctx context.Context, _ []schema.Revocation, after *store.StoredTrace, limit int) iter.Seq2[*store.StoredTrace, error] {
	return func(yield func(*store.StoredTrace, error) bool) {
		var last uint64
		if after != nil {
			last = after.Sequence
		}
		for n := last + 1; n <= min(u.traces, last+uint64(limit)); n++ {
			if !yield(&store.StoredTrace{AgentID: "a", CardID: "ac", Raw: u.raw, Sequence: n}, ctx.Err()) {
				return
			}
		}
	}
}

// The judging of a revocation ends, whatever its verdicts are.
func TestJudgingARevocationEnds(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	registry := openRegistry(t, rig)
	rows := &unchanging{LateRows: rig.Store, traces: 2*lateRows + 1, raw: pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "search").Data}
	late := &lateCards{registry: registry, rows: rows, outlet: rig.Client, workspace: newBench(t, registry)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := late.judgeRevocations(ctx, []schema.Revocation{{CardID: "ac", RevokedAt: time.Now()}}); err != nil || rows.judged != 2*lateRows+1 {
		t.Errorf("%d traces are judged, error %v", rows.judged, err)
	}
}

// Partitions may move often and cards may be revoked in great numbers: only recent revocations are
// processed again, and each once.
func TestOnlyRecentRevocationsAreRepeated(t *testing.T) {
	rig := pipelinetest.New(t)
	registry := openRegistry(t, rig)
	now := time.Now()
	for id, age := range map[string]time.Duration{"old": recentRevocation + time.Second, "recent": recentRevocation - time.Second} {
		rig.Register(t, pipelinetest.Card(id, "a"))
		card, err := registry.Lookup(t.Context(), id)
		if err == nil {
			_, _, err = registry.Revoke(t.Context(), card.Entry, "key lost", now.Add(-age))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	late := &lateCards{registry: registry, wake: make(chan struct{}, 1)}
	late.recheckRecent(now)
	late.recheckRecent(now)
	if _, revoked := late.take(); len(revoked) != 1 || revoked[0].CardID != "recent" {
		t.Errorf("%+v are processed again", revoked)
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
	fault := &pipelinetest.Fault{Step: "alerts"}
	v := judging(t, rig, fault)
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "pay")) // forbidden by a card that comes later
	stage := pipelinetest.Go(t, sharing(t, rig, v))
	awaitDone(t, rig, 1)
	stage.Stop(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	late := v.late
	late.registry = openRegistry(t, rig)
	late.rows, late.outlet, late.workspace = rig.Store, v.outlet, workspace{registry: late.registry, rules: v.workspaces[0].rules}
	card, err := late.registry.Lookup(t.Context(), "ac")
	if err != nil {
		t.Fatal(err)
	}
	if err := late.judgeCards(t.Context(), &late.workspace, []string{card.Card.CardID}); err == nil || !fault.Met() {
		t.Fatalf("the fault was not reached: %v", err)
	}
	if err := late.judgeCards(t.Context(), &late.workspace, []string{card.Card.CardID}); err != nil {
		t.Fatal(err)
	}
	state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
	if err != nil || state.Messages != 1 {
		t.Errorf("%d alerts, want one; error %v", state.Messages, err)
	}
}

// A card that is registered and settled, by another verifier, after a trace was judged without it
// and before the trace was stored, finds nothing to judge. No start settles it again, so the trace
// is judged before it is acked.
func TestCardDuringACommitIsJudgedBeforeTheAck(t *testing.T) {
	rig := pipelinetest.New(t)
	v := judging(t, rig, &pipelinetest.Fault{})
	elsewhere := openRegistry(t, rig)
	another := &lateCards{env: v.env, registry: elsewhere, rows: rig.Store, outlet: rig.Client, workspace: newBench(t, elsewhere)}
	v.rows = &interrupted{Rows: v.rows, meanwhile: func() {
		_, _, err := elsewhere.Put(t.Context(), pipelinetest.Card("ac", "a"))
		if err == nil {
			err = another.judgeCards(t.Context(), &another.workspace, []string{"ac"})
		}
		if err != nil {
			t.Error(err)
		}
	}}
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "pay"))
	stage := pipelinetest.Go(t, sharing(t, rig, v))
	awaitDone(t, rig, 1)
	if counts, err := rig.Store.Counts(t.Context()); err != nil || counts.Traces != 1 || counts.CardUnknown != 0 {
		t.Errorf("acknowledged with %+v, error %v", counts, err)
	}
	stage.Stop(t)
}

// settled are rows that note which cards are written.
type settled struct {
	LateRows
	cards []string
}

func (s *settled) InsertCards(ctx context.Context, registered time.Time, list []*schema.Card) error {
	for _, card := range list {
		s.cards = append(s.cards, card.CardID)
	}
	return s.LateRows.InsertCards(ctx, registered, list)
}

// A start settles the cards that were registered since the last one. If rows are missing, it
// settles all.
func TestStartSettlesNewCards(t *testing.T) {
	rig := pipelinetest.New(t)
	bucket := func() stream.State {
		state, err := rig.Client.StreamState(t.Context(), stream.CardRecords)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	settles := func(when string, want ...string) {
		t.Helper()
		state, registry, env := bucket(), openRegistry(t, rig), pipelinetest.Env(t, "verifier")
		if err := registry.Rely(t.Context(), rig.Store, state); err != nil {
			t.Fatal(err)
		}
		rows := &settled{LateRows: rig.Store}
		late := &lateCards{env: env, registry: registry, created: state.Created, rows: rows, outlet: rig.Client,
			wake: make(chan struct{}, 1), workspace: newBench(t, registry)}
		known := make(chan struct{})
		stage := pipelinetest.Go(t, func(ctx context.Context) error {
			return service.Group(ctx, func(ctx context.Context) error { return late.watch(ctx, known) }, late.run)
		})
		<-known
		pipelinetest.Await(t, when+": everything settled", func() bool {
			backlog, err := late.backlog().Backlog(t.Context())
			revision, _, failed := rig.Store.CardPosition(t.Context(), state.Created)
			return errors.Join(err, failed) == nil && backlog == 0 && revision == state.LastSequence
		})
		stage.Stop(t)
		if !slices.Equal(rows.cards, want) {
			t.Errorf("%s: %q are settled, want %q", when, rows.cards, want)
		}
	}
	rig.Register(t, pipelinetest.Card("ac-1", "a"), pipelinetest.Card("ac-2", "b"))
	settles("the first start", "ac-1", "ac-2")
	rig.Register(t, pipelinetest.Card("ac-3", "a"))
	settles("after a registration", "ac-3")
	settles("without a change")
	rig.Exec(t, "ALTER TABLE cards DELETE WHERE card_id = 'ac-1'")
	settles("after a row was lost", "ac-1", "ac-2", "ac-3")
}

func openRegistry(t *testing.T, rig *pipelinetest.Rig) *cards.Registry {
	t.Helper()
	registry, err := cards.Open(t.Context(), rig.Client, config.DefaultCardCacheBytes)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}
