package verifier_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/verifier"
)

func TestMain(m *testing.M) { pipelinetest.Main(m) }

// start runs a verifier on the rig.
func start(t testing.TB, rig *pipelinetest.Rig) *pipelinetest.Stage {
	return startIn(t, rig, pipelinetest.Env(t, "verifier"))
}

func startIn(t testing.TB, rig *pipelinetest.Rig, env *service.Env) *pipelinetest.Stage {
	cfg := verifier.Default()
	cfg.Common = rig.Common()
	cfg.ClickHouse = rig.ClickHouse()
	return pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &cfg, env) })
}

func counts(t testing.TB, rig *pipelinetest.Rig) store.Counts {
	t.Helper()
	c, err := rig.Store.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func violations(t testing.TB, rig *pipelinetest.Rig) map[string][]string {
	t.Helper()
	found, err := rig.Store.Violations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A trace whose card is not registered is stored, and judged when the card arrives.
func TestUnknownCardIsJudgedLate(t *testing.T) {
	rig := pipelinetest.New(t)
	start(t, rig)
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac-late", "s", "2026-02-01T00:00:00Z", "pay"))
	pipelinetest.Await(t, "the trace stored as card_unknown", func() bool {
		c := counts(t, rig)
		return c.Traces == 1 && c.CardUnknown == 1
	})
	rig.Register(t, pipelinetest.Card("ac-late", "a"))
	pipelinetest.Await(t, "the trace judged", func() bool { return len(violations(t, rig)["FORBIDDEN_ACTION"]) == 1 })
	if c := counts(t, rig); c.Traces != 1 || c.CardUnknown != 0 {
		t.Errorf("counts are %+v", c)
	}
}

// A message that can never be stored becomes a dead letter; the traces around it are stored.
func TestRefusedMessagesBecomeDeadLetters(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	start(t, rig)
	good := func(id string) []byte {
		return pipelinetest.Trace(id, "a", "ac", "../../etc/passwd", "2026-02-01T00:00:00Z", "search").Data
	}
	rig.Publish(t,
		pipelinetest.Record("a", good("tr-1")),
		pipelinetest.Record("a", []byte(`{"trace_id": broken`)),
		pipelinetest.Record("b", good("tr-foreign")),
		pipelinetest.Record("a", good("tr-2")))
	pipelinetest.Await(t, "two traces and two dead letters", func() bool {
		c := counts(t, rig)
		return c.Traces == 2 && c.DeadLetters == 2
	})
	result, err := rig.Store.Query(t.Context(), "SELECT reason, agent_id, faults.pointer[1] FROM dead_letters ORDER BY reason")
	if err != nil {
		t.Fatal(err)
	}
	var got [][]any
	for row, err := range result.Rows {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if len(got) != 2 || got[0][0] != "foreign_agent" || got[0][1] != "b" || got[0][2] != "/agent_id" || got[1][0] != "invalid_json" {
		t.Errorf("dead letters are %v", got)
	}
}

// A message as large as the broker accepts leaves no room for the headers of a dead letter. It
// must not block other traces.
func TestLargestMessageDoesNotBlock(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	start(t, rig)
	const largest = 8<<20 - 512 // of what a committer sends
	rig.Publish(t,
		pipelinetest.Record(strings.Repeat("x", 400), bytes.Repeat([]byte("x"), largest)),
		pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "search"))
	pipelinetest.Await(t, "the trace and the dead letter", func() bool {
		c := counts(t, rig)
		return c.Traces == 1 && c.DeadLetters == 1
	})
}
