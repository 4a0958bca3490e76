package integration_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/store"
)

var shards = flag.Bool("shards", false, "run TestFleetOnShards: see make shards")

// newShardedSite is newSite with two engines that are the shards of a cluster.
func newShardedSite(t testing.TB) *site { return newSiteAt(t, place{shards: enginetest.NewShards(t)}) }

// shardFaults returns faults that kill either shard while traces are stored, and again while
// bundles are stored.
func (s *site) shardFaults() []fault {
	engines := s.place.shards
	stored := func(c store.Counts) bool { return c.Traces > 0 }
	return []fault{
		{"the second shard", func() error { return kill(engines[1].Pid()) }, stored},
		{"the first shard", func() error { return kill(engines[0].Pid()) }, stored},
		{"the second shard again", func() error { return kill(engines[1].Pid()) }, func(c store.Counts) bool { return c.Bundles > 0 }},
	}
}

// TestFleetOnShards runs a fleet through all services on one server, and on two shards
// that are killed and restarted: counts, verdicts, measurements and bundles are the same.
func TestFleetOnShards(t *testing.T) {
	if !*shards {
		t.Skip("it takes a minute: make shards")
	}
	planned := fleet.New(fleet.Config{Seed: 3, Agents: 24, Traces: 2000, Start: time.Now().UTC()})
	one, two := newSite(t), newShardedSite(t)
	one.deliver(planned, nil)
	two.deliver(planned, two.shardFaults())
	want, got := one.compare(planned), two.compare(planned)
	got.Copies, want.Copies, got.Repeated, want.Repeated = 0, 0, 0, 0 // repeated work may differ: the walk requires that it is not visible
	if got != want {
		t.Errorf("on two shards %+v\non one server %+v", got, want)
	}
	for what, statement := range map[string]string{
		"verdicts":         "SELECT agent_id, digest, status, verified, violation_types, finding_types, warning_types, similarity_score FROM current_verdicts ORDER BY ALL",
		"drift points":     "SELECT agent_id, card_id, digest, status, ifNull(toString(similarity), ''), threshold, streak FROM visible_drift_points ORDER BY ALL",
		"drift alerts":     "SELECT agent_id, card_id, alert_type, drift_direction, sustained_traces, trace_ids, state, revision, last_trace_id, count, summary FROM visible_drift_alerts ORDER BY ALL",
		"loops":            "SELECT agent_id, card_id, session_id, alert_id, trace_id, severity, description FROM visible_loop_alerts ORDER BY ALL",
		"bundles":          "SELECT agent_id, session_id, part, trace_count, trace_ids FROM visible_bundles ORDER BY ALL",
		"session verdicts": "SELECT agent_id, session_id, part, verified, recommended_action, finding_types FROM visible_session_verdicts ORDER BY ALL",
		"conflicts":        "SELECT agent_id, trace_id, length(digests) FROM conflicts ORDER BY ALL",
	} {
		wanted, found := one.query(statement), two.query(statement)
		if len(wanted) == 0 || len(found) != len(wanted) {
			t.Errorf("%s: %d rows on two shards, %d on one server", what, len(found), len(wanted))
			continue
		}
		for i := range wanted {
			if fmt.Sprint(found[i]) != fmt.Sprint(wanted[i]) {
				t.Errorf("%s: on two shards %v\non one server %v", what, found[i], wanted[i])
			}
		}
	}
	t.Logf("seen %+v", got)
	one.terminate()
	two.terminate()
}
