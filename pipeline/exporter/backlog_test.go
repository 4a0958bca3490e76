package exporter

import (
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/schema"
)

// The exporter's backlog is the number of messages that are not folded, also after a restart at a
// checkpoint.
func TestBacklog(t *testing.T) {
	rig := pipelinetest.New(t)
	cfg := Default()
	cfg.Common, cfg.DataDir = rig.Common(), t.TempDir()
	for i := range uint64(3) {
		receipt := schema.Receipt{AgentID: "a", SessionID: "s", Sequence: i + 1}
		if err := rig.Client.PublishReceipts(t.Context(), [][]schema.Receipt{{receipt}}); err != nil {
			t.Fatal(err)
		}
	}
	e, _, err := open(t.Context(), &cfg, pipelinetest.Env(t, "exporter"), rig.Client, "here")
	if err != nil {
		t.Fatal(err)
	}
	for folded, want := range []uint64{3, 2, 1, 0, 0} {
		e.folded.Store(uint64(folded))
		if got, err := e.backlog().Backlog(t.Context()); err != nil || got != want {
			t.Errorf("with %d folded: %d, error %v; want %d", folded, got, err, want)
		}
	}
}
