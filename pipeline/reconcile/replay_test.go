package reconcile_test

import (
	"bytes"
	"testing"

	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/schema"
)

// The replays that the remedies recommend repair the differences: afterwards nothing differs.
func (s *site) replayRestoresWhatIsMissing(t *testing.T) {
	before, _ := s.compare(t)
	for _, statement := range []string{
		"ALTER TABLE traces DELETE WHERE trace_id IN ('x-3', 'y-1', 'open-1')",
		"ALTER TABLE verdicts DELETE WHERE trace_id IN ('x-3', 'y-2')",
		"ALTER TABLE dead_letters DELETE WHERE 1",
		"ALTER TABLE drift_points DELETE WHERE trace_id = 'x-1'",
	} {
		s.exec(t, "%s", statement)
	}
	if _, found := s.compare(t); len(found) < 5 {
		t.Fatalf("the differences are\n%s", lines(found))
	}
	replay := &verifier.Replay{Client: s.Client, Store: s.Store, Policies: new(messages.Policies), Rules: verifier.DefaultRules(), Log: pipelinetest.Env(t, "replay").Log}
	summary, err := replay.Run(t.Context())
	if err != nil || summary.RowsWritten != 3 || summary.VerdictsWritten != 2 || summary.LettersWritten != 1 {
		t.Errorf("replayed %+v, error %v", summary, err)
	}
	watch := &drift.Replay{Client: s.Client, Store: s.Store, Rules: drift.DefaultRules(), Log: pipelinetest.Env(t, "replay").Log}
	if summary, err := watch.Run(t.Context()); err != nil || summary.PointsWritten != 1 {
		t.Errorf("replayed drift %+v, error %v", summary, err)
	}
	after, found := s.compare(t)
	if len(found) != 0 || after.Counts != before.Counts {
		t.Errorf("after %+v\nbefore %+v\ndifferences\n%s", after.Counts, before.Counts, lines(found))
	}
	if summary, err = replay.Run(t.Context()); err != nil || summary.Written() != 0 || summary.Alerts != 0 {
		t.Errorf("replayed again %+v, error %v", summary, err)
	}
}

// Only the beginning is kept of a message that is larger than any trace. It is a dead letter like
// others.
func TestDeadLetterOfAnOversizedMessage(t *testing.T) {
	s := newSite(t)
	s.Publish(t, pipelinetest.Record("a", bytes.Repeat([]byte("x"), schema.MaxTraceBytes+1)))
	s.rest(t)
	summary, found := s.compare(t)
	if len(found) != 0 || summary.Counts.DeadLetters != 1 {
		t.Errorf("counts %+v, differences\n%s", summary.Counts, lines(found))
	}
	replay := &verifier.Replay{Client: s.Client, Store: s.Store, Policies: new(messages.Policies), Rules: verifier.DefaultRules(), Log: pipelinetest.Env(t, "replay").Log}
	if replayed, err := replay.Run(t.Context()); err != nil || replayed.DeadLetters != 1 || replayed.Written() != 0 {
		t.Errorf("replayed %+v, error %v", replayed, err)
	}
}
