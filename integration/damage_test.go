package integration_test

import (
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/integration/checker"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// damages are changes to a site whose session "untouched" is sealed, and which has a copy
// of its table of traces. Each breaks a different invariant.
var damages = []struct{ do, says string }{
	{ // a row that was acknowledged is gone
		"ALTER TABLE traces DELETE WHERE trace_id = 'untouched-0'" + at,
		"was acknowledged and is neither a row nor a dead letter",
	},
	{ // another acknowledged trace is also a dead letter
		"INSERT INTO dead_letters (event_hour, tenant, stage, origin_created, origin_sequence, digest, received_at, retain_until, agent_id, reason)" +
			" SELECT event_hour, tenant, 'verifier', stream_created, stream_sequence, digest, received_at, retain_until, agent_id, 'forged' FROM kept WHERE trace_id = 'untouched-1'",
		"is 1 rows and 1 dead letters",
	},
	{ // a part of a session is sealed twice
		"INSERT INTO bundles SELECT * REPLACE(CAST(repeat('a', 32), 'FixedString(32)') AS sha256) FROM bundles WHERE session_id = 'untouched'",
		`session "untouched" of agent a has part 1 twice`,
	},
	{ // a bundle continues one that does not exist
		"INSERT INTO bundles SELECT * REPLACE(2 AS part, CAST(repeat('b', 32), 'FixedString(32)') AS sha256, repeat('cd', 32) AS previous_sha256)" +
			" FROM bundles WHERE session_id = 'edited'",
		`part 2 of session "edited" of agent a continues`,
	},
	{ // the traces of that bundle are in two bundles
		"", "trace edited-1 of agent a is sealed 2 times and stored 1 times",
	},
	{ // the ledger claims neither bundle
		"", "the ledger does not claim bundle " + strings.Repeat("62", 32),
	},
	{ // a point belongs to no trace
		"INSERT INTO drift_points SELECT * REPLACE('nobody' AS trace_id, CAST(repeat('n', 32), 'FixedString(32)') AS trace_digest) FROM drift_points WHERE drift_points.trace_id = 'deleted-1'",
		strings.Repeat("6e", 32) + " has a point, and is neither a row nor a dead letter",
	},
	{ // a trace has two points, from two engines
		"INSERT INTO drift_points SELECT * REPLACE('another' AS engine_version) FROM drift_points WHERE trace_id = 'deleted-2'",
		"points are visible, of",
	},
	{ // a streak has no alert
		"ALTER TABLE drift_points UPDATE status = 'drift', streak = 3 WHERE trace_id = 'inserted-1'" + at,
		"trace inserted-1 of agent a makes a streak sustained, and no alert ends with it",
	},
	{ // an alert has no streak
		"INSERT INTO drift_alerts (event_hour, tenant, agent_id, card_id, alert_id, trace_ids)" +
			" SELECT event_hour, tenant, agent_id, card_id, digest, [trace_id] FROM kept WHERE trace_id = 'inserted-2'",
		"1 alerts about agent a end with trace inserted-2, which makes 0 streaks sustained",
	},
	{ // a verdict is gone
		"ALTER TABLE verdicts DELETE WHERE trace_id = 'robbed-2'" + at,
		"verdicts: trace robbed-2 has no verdict",
	},
	{ // a session's verdict is gone
		"ALTER TABLE session_verdicts DELETE WHERE session_id = 'robbed'" + at,
		`session verdicts: part 1 of session "robbed" of agent a`,
	},
	{ // a record has two agents
		"INSERT INTO traces SELECT * REPLACE('b' AS agent_id) FROM kept WHERE trace_id = 'robbed-1'",
		"has 2: agent_id, session_id, trace_id, stream_partition",
	},
	{ // a series is in two partitions
		"INSERT INTO drift_state SELECT * REPLACE(toUInt16(stream_partition + 1) AS stream_partition) FROM drift_state",
		"drift's state of agent and card",
	},
}

// checkDamageIsSeen damages the data, and requires that the checker reports each damage: a
// checker that misses it would prove nothing in other tests. The site is unusable afterwards.
func (s *site) checkDamageIsSeen() {
	s.t.Helper()
	for _, d := range damages {
		if d.do != "" {
			s.exec(d.do)
		}
	}
	s.claimAgain("untouched")
	checker.AwaitRest(s.t, s.client)
	s.endDrift()
	s.publisher.publish([][]byte{trace("unmeasured", "unmeasured", 59)}, nil)
	pipelinetest.Await(s.t, "the verifier to come to rest", func() bool {
		progress, err := s.client.ConsumerProgress(s.t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.Pending == 0 && progress.Unacked == 0
	})
	recorder := &recorder{TB: s.t}
	seen := checker.Check(recorder, s.site(), s.publisher.acked)
	if seen.Lost != 1 || seen.Doubled == 0 {
		s.t.Errorf("the checker counts %d lost and %d doubled records", seen.Lost, seen.Doubled)
	}
	says := recorder.text.String()
	for _, d := range damages {
		if !strings.Contains(says, d.says) {
			s.t.Errorf("the checker does not say %q", d.says)
		}
	}
	for _, more := range []string{
		"is claimed as two bundles", "no process has the lease of drift", "on TRACES has 1 messages to come",
		"copies: bundles shows ", "drift: trace inserted-1 is drift (streak 3), the replay says ", " about agent a is not in the replay",
	} {
		if !strings.Contains(says, more) {
			s.t.Errorf("the checker does not say %q", more)
		}
	}
}

// endDrift removes drift's lease, so that drift does not measure what is published next.
func (s *site) endDrift() {
	s.t.Helper()
	leases, err := s.client.Bucket(s.t.Context(), stream.Leases)
	if err != nil {
		s.t.Fatal(err)
	}
	_, revision, err := leases.GetNewest(s.t.Context(), s.drift.name)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := leases.Delete(s.t.Context(), s.drift.name, revision); err != nil {
		s.t.Fatal(err)
	}
	pipelinetest.Await(s.t, "drift to end without its lease", s.drift.ended)
}

// claimAgain makes the ledger claim another bundle as the first part of a session.
func (s *site) claimAgain(session string) {
	s.t.Helper()
	event, err := events.Claim{AgentID: "a", SessionID: session, Part: 1, File: "elsewhere", SHA256: schema.DigestOf([]byte(session)).String()}.Event()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.client.AppendLedger(s.t.Context(), event); err != nil {
		s.t.Fatal(err)
	}
	pipelinetest.Await(s.t, "the claim to be chained", func() bool {
		return len(s.query(fmt.Sprintf("SELECT 1 FROM ledger WHERE position(data, '%s') > 0", schema.DigestOf([]byte(session))))) > 0
	})
}
