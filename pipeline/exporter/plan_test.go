package exporter

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// Two sessions whose bundles would have the same name get different names, in whatever groups of
// a round they are. A repeated attempt keeps its name.
func TestFileNamesAreUniqueInARound(t *testing.T) {
	e := &exporter{cfg: &Config{BundleDir: t.TempDir()}, names: map[string]store.SessionKey{}}
	shared := seal.File("a", "sessions-1", 7)
	plan := func(session string, fixed bool) *job {
		j := &job{session: &openSession{key: store.SessionKey{AgentID: "a", SessionID: session}}, fixed: fixed}
		j.part.Plan = seal.Record{Part: 1, ExportedAt: 7, File: shared}
		if err := e.name([]*job{j}); err != nil {
			t.Fatal(err)
		}
		return j
	}
	if first := plan("sessions-1", false); first.part.Plan.File != shared {
		t.Errorf("the first is named %s", first.part.Plan.File)
	}
	for _, fixed := range []bool{false, true} {
		if other := plan("sessions-2", fixed); other.fixed || other.part.Plan.File == shared || filepath.Base(other.part.Plan.File) != filepath.Base(shared) {
			t.Errorf("the other is named %s, fixed: %v", other.part.Plan.File, other.fixed)
		}
	}
	if again := plan("sessions-1", true); !again.fixed || again.part.Plan.File != shared {
		t.Errorf("at the second attempt the first is named %s, fixed: %v", again.part.Plan.File, again.fixed)
	}
}

// A part is never dated before its predecessor, even if the clock was changed in between.
func TestPartsAreDatedInOrder(t *testing.T) {
	j := &job{session: &openSession{key: store.SessionKey{AgentID: "a", SessionID: "s"}, receipts: []schema.Receipt{{Sequence: 1}}}}
	for now, want := range map[int64]int64{5: 7, 7: 7, 9: 9} {
		plan := new(exporter).newPlan(j, &seal.Record{Part: 1, ExportedAt: 7}, 1, now)
		if plan.ExportedAt != want || plan.File != seal.File("a", "s", want) || plan.Part != 2 {
			t.Errorf("at %d: %+v", now, plan)
		}
	}
}

// A new part ends before the card that is one too many, wherever in the log its traces are. A plan
// that was made before stays as it is.
func TestPartEndsAtTooManyCards(t *testing.T) {
	planned := func(cards, traces int, found bool) *job {
		j := &job{session: new(openSession), found: found}
		for i := range traces {
			sequence := uint64(2*i + 10)
			j.session.receipts = append(j.session.receipts, schema.Receipt{Sequence: sequence})
			v := &schema.Verdict{CardID: fmt.Sprint("card-", i%cards)}
			if i%cards != 5 { // this one was unknown
				v.Metadata.CardDigest = schema.DigestOf([]byte(v.CardID))
			}
			j.part.Traces = append(j.part.Traces, &store.StoredTrace{Sequence: sequence, Verdict: v})
		}
		slices.Reverse(j.part.Traces)
		j.part.Plan = seal.Record{Cut: uint64(2*traces + 8), Traces: int64(traces), LastPart: true, Reason: seal.ReasonEnded}
		j.cutAtCards()
		return j
	}
	for _, whole := range []*job{planned(maxCards+1, 3*maxCards, false), planned(9_995, 10_000, true)} {
		if plan := whole.part.Plan; plan.Traces != int64(len(whole.part.Traces)) || !plan.LastPart || plan.Reason != seal.ReasonEnded || len(whole.receipts()) != len(whole.part.Traces) {
			t.Errorf("a part that fits, or was planned, became %+v of %d traces", plan, len(whole.part.Traces))
		}
	}
	j := planned(9_995, 10_000, false)
	want := int64(maxCards + 1)
	if plan := j.part.Plan; plan.Traces != want || int64(len(j.part.Traces)) != want || int64(len(j.receipts())) != want || plan.LastPart || plan.Reason != seal.ReasonRotation || plan.Cut != 2*uint64(want)+9 {
		t.Errorf("%+v with %d traces and %d receipts", plan, len(j.part.Traces), len(j.receipts()))
	}
}
