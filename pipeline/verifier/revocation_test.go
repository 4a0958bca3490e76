package verifier_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// revokedAt is when the tests' card was revoked.
var revokedAt = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// revoke revokes a card as another process would.
func revoke(t *testing.T, rig *pipelinetest.Rig, cardID string) {
	t.Helper()
	registry, err := cards.Open(t.Context(), rig.Client, config.DefaultCardCacheBytes)
	if err != nil {
		t.Fatal(err)
	}
	card, err := registry.Lookup(t.Context(), cardID)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := registry.Revoke(t.Context(), card.Entry, "key lost", revokedAt); err != nil {
		t.Fatal(err)
	}
}

// traceAt returns a trace of agent a and card ac with a time of its own that is after the
// revocation by the given duration.
func traceAt(id string, after time.Duration) stream.Record {
	return pipelinetest.Trace(id, "a", "ac", "s", revokedAt.Add(after).Format(time.RFC3339Nano), "search")
}

func findings(t *testing.T, rig *pipelinetest.Rig) map[string][]string {
	t.Helper()
	found, err := rig.Store.Findings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, ids := range found {
		slices.Sort(ids)
	}
	return found
}

// A trace dated at the revocation or later uses a revoked card. One dated before that arrives
// after it may be backdated.
func TestRevokedCardIsFound(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"), pipelinetest.Card("other", "a"))
	revoke(t, rig, "ac")
	start(t, rig)
	rig.Publish(t, traceAt("before", -time.Nanosecond), traceAt("then", 0), traceAt("after", time.Hour),
		pipelinetest.Trace("other", "a", "other", "s", "2026-03-01T00:00:00Z", "search"))
	pipelinetest.Await(t, "all judged", func() bool { return counts(t, rig).Verdicts == 4 })
	found := findings(t, rig)
	if fmt.Sprint(found[schema.CardRevoked]) != "[after then]" || fmt.Sprint(found[schema.Backdated]) != "[before]" || len(found[schema.CardSuperseded]) != 0 {
		t.Errorf("findings %v", found)
	}
	pipelinetest.Await(t, "the revocation stored", func() bool { return rig.Number(t, "SELECT count() FROM revocations") == 1 })
}

// A trace that was judged before the verifier knew of the revocation is judged again, once: the
// views show the newer verdict, the older one stays, and an alert is published. A restart repeats
// nothing.
func TestLateRevocation(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"), pipelinetest.Card("other", "b"))
	stage := start(t, rig)
	rig.Publish(t, traceAt("after", time.Hour), traceAt("before", -time.Hour),
		pipelinetest.Trace("other", "b", "other", "s", "2026-03-01T00:00:00Z", "search"))
	pipelinetest.Await(t, "all judged", func() bool { return counts(t, rig).Verdicts == 3 })
	if found := findings(t, rig); len(found[schema.CardRevoked])+len(found[schema.Backdated]) != 0 {
		t.Fatalf("before the revocation: %v", found)
	}
	revoke(t, rig, "ac")
	settled := func() bool {
		found := findings(t, rig)
		return fmt.Sprint(found[schema.CardRevoked]) == "[after]" && fmt.Sprint(found[schema.Backdated]) == "[before]"
	}
	pipelinetest.Await(t, "both judged again", settled)
	pipelinetest.Await(t, "their alerts", func() bool {
		state, err := rig.Client.StreamState(t.Context(), stream.Alerts)
		return err == nil && state.Messages == 2
	})
	stage.Stop(t)
	start(t, rig)
	rig.Publish(t, traceAt("later", 2*time.Hour))
	pipelinetest.Await(t, "a fourth trace judged", func() bool { return counts(t, rig).Verdicts == 4 })
	if rows := rig.Number(t, "SELECT count() FROM verdicts"); rows != 6 || !slices.Equal(findings(t, rig)[schema.CardRevoked], []string{"after", "later"}) {
		t.Errorf("%d verdicts are stored, want 6; findings %v", rows, findings(t, rig))
	}
	checkReport(t, rig)
}

// checkReport checks that both verdicts of a trace exist, the current one first, which names the
// revocation.
func checkReport(t *testing.T, rig *pipelinetest.Rig) {
	t.Helper()
	reports, err := rig.Store.Trace(t.Context(), "after")
	if err != nil || len(reports) != 1 || len(reports[0].Verdicts) != 2 {
		t.Fatalf("%+v, error %v", reports, err)
	}
	current := reports[0].Verdicts[0]
	text, err := json.Marshal(current.Metadata.CardRevokedAt)
	if err != nil || string(text) != `"2026-02-01T00:00:00Z"` || !current.Verified || current.RecommendedAction != schema.Deny {
		t.Errorf("the current verdict is %+v, revoked at %s, error %v", current, text, err)
	}
}
