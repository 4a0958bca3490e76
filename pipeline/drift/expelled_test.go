package drift

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// A stage whose connection the broker has closed for good ends with an error.
func TestClosedConnectionEndsTheStage(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.EndsWhenExpelled(t, func(ctx context.Context, common config.Common, env *service.Env) error {
		cfg := Default()
		cfg.Common, cfg.ClickHouse = common, rig.ClickHouse()
		return Serve(ctx, &cfg, env)
	})
}

// If broker and database become unavailable right after the stage has connected, the stage does
// not end.
func TestPeersAreAwayWhileTheStageOpens(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.OpensOncePeersAreBack(t, func(ctx context.Context, common config.Common, clickhouse config.ClickHouse, env *service.Env) error {
		cfg := Default()
		cfg.Common, cfg.ClickHouse = common, clickhouse
		return Serve(ctx, &cfg, env)
	})
}

// A stage that cannot read what it has to go on from ends, and names the table: to begin
// without it would raise alerts again, and miss others.
func TestUnreadableStateEndsTheStage(t *testing.T) {
	rig := pipelinetest.New(t)
	traces, err := rig.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	row := store.DriftState{StreamCreated: traces.Created, Partition: 3, AgentID: "a", CardID: "ac", Version: 1, LastEvent: time.Now(), State: []byte("{")}
	if err := rig.Store.InsertDriftStates(t.Context(), []store.DriftState{row}); err != nil {
		t.Fatal(err)
	}
	cfg := Default()
	cfg.Common, cfg.ClickHouse = rig.Common(), rig.ClickHouse()
	if err := Serve(t.Context(), &cfg, pipelinetest.Env(t, "drift")); err == nil || !strings.Contains(err.Error(), "partition 3, table drift_state: ") {
		t.Errorf("the stage ended with %v", err)
	}
}
