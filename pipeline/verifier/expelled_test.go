package verifier

import (
	"context"
	"testing"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// serveWith runs a stage with default settings apart from those given.
func serveWith(ctx context.Context, common config.Common, clickhouse config.ClickHouse, env *service.Env) error {
	cfg := Default()
	cfg.Common, cfg.ClickHouse = common, clickhouse
	return Serve(ctx, &cfg, env)
}

// A stage whose connection the broker has closed permanently ends with an error.
func TestClosedConnectionEndsTheStage(t *testing.T) {
	pipelinetest.New(t).EndsWhenExpelled(t, serveWith)
}

// If broker and database become unavailable right after the stage has connected, the stage does
// not end.
func TestPeersAreAwayWhileTheStageOpens(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.OpensOncePeersAreBack(t, serveWith)
	rig.Publish(t, pipelinetest.Trace("tr-1", "did:web:a", "card-1", "s", "2026-01-01T00:00:00Z", "search"))
	pipelinetest.Await(t, "the trace to be stored", func() bool {
		left, err := rig.Client.Backlog(t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && left == 0
	})
}
