package drift

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
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
	pipelinetest.New(t).OpensOncePeersAreBack(t, serveWith)
}

// A stage that cannot read the state of a series when it gets a trace ends, and names the table:
// without the state it would raise alerts again, and miss others.
func TestUnreadableStateEndsTheStage(t *testing.T) {
	rig := pipelinetest.New(t)
	traces, err := rig.Client.StreamState(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	partition := subject.Partition("a")
	row := store.DriftState{StreamCreated: traces.Created, Partition: uint16(partition), AgentID: "a", CardID: "ac-a", Version: 1, LastEvent: time.Now(), State: []byte("{")}
	if err := rig.Store.InsertDriftStates(t.Context(), []store.DriftState{row}); err != nil {
		t.Fatal(err)
	}
	rig.Publish(t, pipelinetest.Record("a", usual("tr-1", "a", time.Now())))
	want := fmt.Sprintf("partition %d, table drift_state: ", partition)
	if err := serveWith(t.Context(), rig.Common(), rig.ClickHouse(), pipelinetest.Env(t, "drift")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the stage ended with %v", err)
	}
}
