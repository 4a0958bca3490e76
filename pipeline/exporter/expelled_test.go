package exporter

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// serveIn returns a function that runs a stage with default settings apart from those given.
func serveIn(dataDir string) pipelinetest.Serve {
	return func(ctx context.Context, common config.Common, clickhouse config.ClickHouse, env *service.Env) error {
		cfg := Default()
		cfg.Common, cfg.ClickHouse, cfg.DataDir = common, clickhouse, dataDir
		return Serve(ctx, &cfg, env)
	}
}

// A stage whose connection the broker has closed permanently ends with an error.
func TestClosedConnectionEndsTheStage(t *testing.T) {
	pipelinetest.New(t).EndsWhenExpelled(t, serveIn(t.TempDir()))
}

// If broker and database become unavailable right after the stage has connected, the stage does
// not end.
func TestPeersAreAwayWhileTheStageOpens(t *testing.T) {
	pipelinetest.New(t).OpensOncePeersAreBack(t, serveIn(t.TempDir()))
}

// Continues asks until the broker answers.
func TestContinuesRetriesWithoutABroker(t *testing.T) {
	rig, env := pipelinetest.New(t), pipelinetest.Env(t, "away")
	wire := brokertest.NewWire(t, rig.Broker.URL())
	client, err := stream.Connect(t.Context(), stream.Config{URL: wire.URL(), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	wire.Cut()
	answer := make(chan error)
	go func() { answer <- Continues(t.Context(), env, client, filepath.Join(t.TempDir(), "session.key")) }()
	for pipelinetest.Retries(t, env, "open streams and buckets") == 0 {
		select {
		case err := <-answer:
			t.Fatalf("without a broker: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	wire.Mend()
	if err := <-answer; err != nil {
		t.Error(err)
	}
}
