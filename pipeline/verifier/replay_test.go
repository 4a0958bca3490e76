package verifier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// judgedTraces is the number of traces of a judged rig. Every second one is a violation.
const judgedTraces = 20

// judged returns a rig whose traces, including a copy of one and a dead letter, are all stored
// and acked. No stage runs on it any more.
func judged(t *testing.T) *pipelinetest.Rig {
	t.Helper()
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	for i := range judgedTraces {
		rig.Publish(t, numbered(i))
	}
	again := numbered(3)
	again.Digest = schema.DigestOf(again.Digest[:]) // as after the duplicate window
	rig.Publish(t, again, pipelinetest.Record("a", []byte("{}")))
	stage := serve(t, rig)
	pipelinetest.Await(t, "the verifier to ack everything", func() bool { return atRest(t, rig) })
	stage.Stop(t)
	return rig
}

func numbered(i int) stream.Record {
	return pipelinetest.Trace(fmt.Sprintf("tr-%d", i), "a", "ac", "s", "2026-02-01T00:00:00Z", []string{"search", "pay"}[i%2])
}

func serve(t *testing.T, rig *pipelinetest.Rig) *pipelinetest.Stage {
	cfg := Default()
	cfg.Common, cfg.ClickHouse = rig.Common(), rig.ClickHouse()
	return pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &cfg, pipelinetest.Env(t, "verifier")) })
}

// atRest reports whether a verifier has acked all messages.
func atRest(t *testing.T, rig *pipelinetest.Rig) bool {
	for name, consumer := range map[string]string{stream.Traces: stream.VerifierConsumer, stream.DeadLetters: stream.DeadLetterConsumer} {
		state, err := rig.Client.StreamState(t.Context(), name)
		progress, err2 := rig.Client.ConsumerProgress(t.Context(), name, consumer)
		if errors.Join(err, err2) != nil || progress.AckFloor < state.LastSequence {
			return false
		}
	}
	return true
}

func replayOf(t *testing.T, rig *pipelinetest.Rig) *Replay {
	return &Replay{Client: rig.Client, Store: rig.Store, Policies: new(messages.Policies), Rules: DefaultRules(), Log: pipelinetest.Env(t, "replay").Log}
}

// replayed runs a replay in small slices.
func replayed(t *testing.T, rig *pipelinetest.Rig, r *Replay) ReplaySummary {
	t.Helper()
	summary, err := r.run(t.Context(), rig.Store, rig.Client, 3)
	if err != nil {
		t.Fatal(err)
	}
	return summary
}

// want returns what a replay of a judged rig counts where nothing is missing, with a change.
func want(change func(*ReplaySummary)) ReplaySummary {
	s := ReplaySummary{Through: judgedTraces + 2, Next: judgedTraces + 3, Messages: judgedTraces + 2, Unchanged: judgedTraces + 1, DeadLetters: 1}
	change(&s)
	return s
}

func demand(t *testing.T, what string, got, want ReplaySummary) {
	t.Helper()
	if got != want {
		t.Errorf("%s: counts %+v\nwant %+v", what, got, want)
	}
}

// intact requires that everything exists, each once.
func intact(t *testing.T, rig *pipelinetest.Rig) {
	t.Helper()
	c, err := rig.Store.Counts(t.Context())
	if err != nil || c.Traces != judgedTraces || c.Verdicts != judgedTraces || c.DeadLetters != 1 || c.CardUnknown != 0 {
		t.Errorf("counts %+v, error %v", c, err)
	}
	if got := receipted(t, rig); got != judgedTraces+1 {
		t.Errorf("%d messages are receipted, want %d", got, judgedTraces+1)
	}
}

// verdictsAndAlerts are the verdicts of a rig, and the ids of the alerts that were raised.
func verdictsAndAlerts(t *testing.T, rig *pipelinetest.Rig) (all []string) {
	t.Helper()
	result, err := rig.Store.Query(t.Context(), "SELECT trace_id, digest, status, verified, violation_types, finding_types, warning_types, similarity_score"+
		" FROM current_verdicts ORDER BY ALL")
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range result.Rows {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(row))
	}
	state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
	if err != nil {
		t.Fatal(err)
	}
	alerts := rig.Messages(t, stream.Alerts, int(state.Messages))
	var ids []string
	for i := range alerts {
		ids = append(ids, alerts[i].Header(jetstream.MsgIDHeader))
	}
	slices.Sort(ids)
	return append(all, slices.Compact(ids)...)
}

// Whatever is missing is written as it was, and nothing else. A second replay writes nothing.
func TestReplayWritesWhatIsMissing(t *testing.T) {
	rig := judged(t)
	before := verdictsAndAlerts(t, rig)
	if len(before) != judgedTraces+judgedTraces/2 {
		t.Fatalf("verdicts and alerts are %q", before)
	}
	demand(t, "nothing missing", replayed(t, rig, replayOf(t, rig)), want(func(*ReplaySummary) {}))
	for _, c := range []struct {
		missing, statement string
		change             func(*ReplaySummary)
	}{
		{"rows and verdicts", "ALTER TABLE %s DELETE WHERE stream_sequence BETWEEN 5 AND 10", func(s *ReplaySummary) {
			s.Unchanged, s.RowsWritten, s.VerdictsWritten, s.Alerts = s.Unchanged-6, 6, 6, 3
		}},
		{"everything", "ALTER TABLE %s DELETE WHERE 1", func(s *ReplaySummary) {
			s.Unchanged, s.RowsWritten, s.VerdictsWritten, s.Alerts, s.LettersWritten = 1, judgedTraces, judgedTraces, judgedTraces/2, 1
		}},
	} {
		rig.Exec(t, c.statement, "traces")
		rig.Exec(t, c.statement, "verdicts")
		if c.missing == "everything" {
			rig.Exec(t, c.statement, "dead_letters")
		}
		demand(t, c.missing, replayed(t, rig, replayOf(t, rig)), want(c.change))
		demand(t, c.missing+", again", replayed(t, rig, replayOf(t, rig)), want(func(*ReplaySummary) {}))
		intact(t, rig)
		if after := verdictsAndAlerts(t, rig); !slices.Equal(after, before) {
			t.Errorf("%s: verdicts and alerts are\n%q\nand were\n%q", c.missing, after, before)
		}
	}
	state, err := rig.Client.StreamState(t.Context(), stream.DeadLetters)
	if err != nil || state.Messages != 1 {
		t.Errorf("%d dead letters, want 1; error %v", state.Messages, err)
	}
}

// Digests of traces and of a card that end in a NUL byte are found again: nothing is written, no
// alert is published, and each alert has the verdict_id of its verdict.
func TestReplayFindsDigestsThatEndInNUL(t *testing.T) {
	rig := pipelinetest.New(t)
	cardID, card := cardThatEndsInNUL(t)
	rig.Register(t, card, pipelinetest.Card("whole", "a"))
	for _, cardID := range []string{cardID, "whole", "nobody's"} {
		for _, action := range []string{"search", "pay"} {
			rig.Publish(t, pipelinetest.EndsInNUL(func(i int) stream.Record {
				return pipelinetest.Trace(fmt.Sprintf("tr-%s-%s-%d", cardID, action, i), "a", cardID, "s", "2026-02-01T00:00:00Z", action)
			}))
		}
	}
	stage := serve(t, rig)
	pipelinetest.Await(t, "the verifier to ack everything", func() bool { return atRest(t, rig) })
	stage.Stop(t)
	demand(t, "a healthy pipeline", replayed(t, rig, replayOf(t, rig)), ReplaySummary{Through: 6, Next: 7, Messages: 6, Unchanged: 6})

	const paid = 2 // under a known card
	source, err := rig.Client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Alerts})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	alerts, err := source.Fetch(t.Context(), nil, paid, 0, time.Minute)
	if err != nil || len(alerts) != paid {
		t.Fatalf("%d alerts, error %v; want %d", len(alerts), err, paid)
	}
	for i := range alerts {
		_, id, _ := strings.Cut(alerts[i].ID(), ".")
		if n := rig.Number(t, "SELECT count() FROM verdicts WHERE verdict_id = '"+id+"'"); n != 1 {
			t.Errorf("alert %s has %d verdicts, want 1", alerts[i].ID(), n)
		}
	}
}

// cardThatEndsInNUL returns a card of agent a whose digest ends in a NUL byte, and its id.
func cardThatEndsInNUL(t *testing.T) (cardID string, raw []byte) {
	t.Helper()
	for i := 0; ; i++ {
		cardID = fmt.Sprintf("ac-%d", i)
		raw = pipelinetest.Card(cardID, "a")
		card, err := schema.DecodeCard(raw)
		if err != nil {
			t.Fatal(err)
		}
		if card.Digest[len(card.Digest)-1] == 0 {
			return cardID, raw
		}
	}
}

// A replay restores rows alone where their verdicts exist, and verdicts alone, including those of
// an older engine.
func TestReplayAddsTheVerdictOfThisEngine(t *testing.T) {
	rig := judged(t)
	rig.Exec(t, "ALTER TABLE traces DELETE WHERE stream_sequence = 2")
	rig.Exec(t, "INSERT INTO verdicts SELECT * REPLACE('plumbline-0' AS engine_version, verified_at - INTERVAL 1 DAY AS verified_at) FROM verdicts WHERE stream_sequence > 12")
	rig.Exec(t, "ALTER TABLE verdicts DELETE WHERE stream_sequence > 12 AND engine_version != 'plumbline-0'")
	demand(t, "older verdicts", replayed(t, rig, replayOf(t, rig)), want(func(s *ReplaySummary) {
		s.Unchanged, s.RowsWritten, s.VerdictsWritten, s.Alerts = s.Unchanged-9, 1, 8, 4
	}))
	intact(t, rig)
	result, err := rig.Store.Query(t.Context(), "SELECT trace_id FROM current_verdicts WHERE engine_version = 'plumbline-0'")
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range result.Rows {
		t.Errorf("the older engine's verdict is the current one of %v, error %v", row, err)
	}
}

// A replay does not touch what the verifier has not acked, and what is outside the bounds.
func TestReplayStaysWithinItsBounds(t *testing.T) {
	rig := judged(t)
	second := numbered(judgedTraces)
	rig.Publish(t, second) // it is not judged
	rig.Exec(t, "ALTER TABLE traces DELETE WHERE 1")
	r := replayOf(t, rig)
	r.From, r.To = 5, 9
	got := replayed(t, rig, r)
	demand(t, "a range", got, ReplaySummary{Through: 9, Next: 10, Messages: 5, RowsWritten: 5})
	r = replayOf(t, rig)
	r.Since = time.Now().Add(time.Hour)
	if got := replayed(t, rig, r); got.Messages != 0 {
		t.Errorf("since the future: %+v", got)
	}
	r.Since, r.From = time.Time{}, judgedTraces+3
	if got := replayed(t, rig, r); got.Messages != 0 {
		t.Errorf("beyond the ack floor: %+v", got)
	}
	r.From, r.Since = 0, time.Now().Add(-time.Hour)
	if got := replayed(t, rig, r); got.RowsWritten != judgedTraces-5 {
		t.Errorf("since an hour ago: %+v", got)
	}
	intact(t, rig)
}

// careless is an outlet that drops receipts.
type careless struct{ *stream.Client }

func (careless) PublishReceipts(context.Context, [][]schema.Receipt) error { return nil }

// A trace without a receipt gets one.
func TestReplayWritesReceipts(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	for i := range 7 {
		rig.Publish(t, numbered(i))
	}
	v := judging(t, rig, &pipelinetest.Fault{})
	v.outlet = careless{rig.Client}
	stage := pipelinetest.Go(t, sharing(t, rig, v))
	awaitDone(t, rig, 7)
	stage.Stop(t)
	if got := receipted(t, rig); got != 0 {
		t.Fatalf("%d messages are receipted", got)
	}
	demand(t, "no receipts", replayed(t, rig, replayOf(t, rig)), ReplaySummary{Through: 7, Next: 8, Messages: 7, ReceiptsWritten: 7})
	demand(t, "again", replayed(t, rig, replayOf(t, rig)), ReplaySummary{Through: 7, Next: 8, Messages: 7, Unchanged: 7})
	if got := receipted(t, rig); got != 7 {
		t.Errorf("%d messages are receipted, want 7", got)
	}
}

// A replay that failed at any step can be continued, and so can one that was interrupted.
func TestReplayContinuesAfterAFailure(t *testing.T) {
	rig := judged(t)
	for _, f := range []*pipelinetest.Fault{{Step: "alerts"}, {Step: "alerts", Applied: true}, {Step: "insert"}, {Step: "insert", Applied: true}} {
		rig.Exec(t, "ALTER TABLE traces DELETE WHERE 1")
		rig.Exec(t, "ALTER TABLE verdicts DELETE WHERE 1")
		world := &faulty{Client: rig.Client, store: rig.Store, f: f}
		failed, err := replayOf(t, rig).run(t.Context(), world, world, 3)
		if !errors.Is(err, pipelinetest.ErrInjected) || failed.Next != 1 || failed.Written() != 0 {
			t.Errorf("%s: it counts %+v, error %v", f.Step, failed, err)
		}
		broken := brokenOff(t, rig, failed.Next)
		r := replayOf(t, rig)
		r.From = broken.Next
		if rest := replayed(t, rig, r); broken.Next != 4 || rest.Next != judgedTraces+3 || rest.RowsWritten != judgedTraces-3 {
			t.Errorf("%s: interrupted, it counts %+v, and the rest %+v", f.Step, broken, rest)
		}
		intact(t, rig)
	}
}

// brokenOff runs a replay that ends after its first slice.
func brokenOff(t *testing.T, rig *pipelinetest.Rig, from uint64) ReplaySummary {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := replayOf(t, rig)
	r.From, r.Progress = from, func(*ReplaySummary) { cancel() }
	summary, err := r.run(ctx, rig.Store, rig.Client, 3)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	return summary
}

// While the pipeline works, a replay neither duplicates nor disturbs its results.
func TestReplayWhileThePipelineWorks(t *testing.T) {
	rig := judged(t)
	rig.Exec(t, "ALTER TABLE traces DELETE WHERE stream_sequence <= 10")
	stage := serve(t, rig)
	const rounds, each = 10, 30
	replay := func() ReplaySummary {
		summary, err := replayOf(t, rig).run(t.Context(), rig.Store, rig.Client, each)
		if err != nil {
			t.Fatal(err)
		}
		return summary
	}
	during := 0 // replays that began while the verifier had not acked everything
	for round := range rounds {
		records := make([]stream.Record, each)
		for i := range records {
			records[i] = numbered(100 + round*each + i)
		}
		rig.Publish(t, records...)
		if replay().Through < uint64(judgedTraces+2+(round+1)*each) {
			during++
		}
	}
	if during == 0 {
		t.Error("no replay ran while the verifier worked")
	}
	pipelinetest.Await(t, "the verifier to ack everything", func() bool { return atRest(t, rig) })
	stage.Stop(t)
	replay()
	c, err := rig.Store.Counts(t.Context())
	if err != nil || c.Traces != rounds*each+judgedTraces || c.Verdicts != c.Traces {
		t.Errorf("counts %+v, error %v", c, err)
	}
	// The stream has tr-3 twice. Its rows are one after a merge, which may be long after.
	if rows := rig.Number(t, "SELECT count() FROM traces WHERE trace_id != 'tr-3'"); rows != c.Traces-1 {
		t.Errorf("%d rows of the other %d traces", rows, c.Traces-1)
	}
}
