package exporter

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
		cfg.DataDir = t.TempDir()
		return Serve(ctx, &cfg, env)
	})
}
