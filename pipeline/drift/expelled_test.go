package drift

import (
	"context"
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/run"
)

// A stage whose connection the broker has closed for good ends, and says so.
func TestClosedConnectionEndsTheStage(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.EndsWhenExpelled(t, func(ctx context.Context, common run.Common, env *run.Env) error {
		cfg := Default()
		cfg.Common, cfg.ClickHouse = common, rig.ClickHouse()
		return Serve(ctx, &cfg, env)
	})
}

// A broker and a database that go away right after the stage has connected to them do not
// end it.
func TestPeersAreAwayWhileTheStageOpens(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.OpensOncePeersAreBack(t, func(ctx context.Context, common run.Common, clickhouse run.ClickHouse, env *run.Env) error {
		cfg := Default()
		cfg.Common, cfg.ClickHouse = common, clickhouse
		return Serve(ctx, &cfg, env)
	})
}
