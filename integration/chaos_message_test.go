package integration_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// messageScenarios are faults of messages: they arrive several times, late or in another
// order, and some can never be stored.
func messageScenarios() []scenario {
	return []scenario{
		{name: "duplicates", publish: (*site).publishThrice, strike: (*site).noDuplicateWindow},
		{name: "redelivery", traces: 6000, strike: (*site).redeliver},
		{name: "forged-ids", site: sealsIdleSessions, publish: (*site).publishForged, strike: (*site).awaitForgeries, reorders: true},
		poisonScenario(),
	}
}

// jetStream returns the broker's JetStream API with an administrator's rights.
func (s *site) jetStream() jetstream.JetStream {
	s.t.Helper()
	if s.admin != nil {
		return s.admin
	}
	conn, err := nats.Connect(s.place.nats.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	if s.admin, err = jetstream.New(conn); err != nil {
		s.t.Fatal(err)
	}
	return s.admin
}

// publishThrice publishes lines three times over HTTP, and the accepted ones three times
// over NATS.
func (s *site) publishThrice(lines [][]byte) []outcome {
	outcomes := s.publisher.publish(lines, nil)
	for range 2 {
		s.publisher.publish(lines, nil)
	}
	var records []stream.Record
	for i, o := range outcomes {
		if o.Status != "refused" {
			records = append(records, recordOf(s.t, lines[i]))
		}
	}
	for range 3 {
		s.publishOverNATS(records)
	}
	return outcomes
}

// recordOf returns a valid line as its agent would publish it on NATS.
func recordOf(t testing.TB, line []byte) stream.Record {
	trace, err := schema.Admit("", line)
	if err != nil {
		t.Error(err)
	}
	return pipelinetest.Record(trace.AgentID, trace.Raw)
}

// publishOverNATS publishes records until each is acknowledged.
func (s *site) publishOverNATS(records []stream.Record) {
	committer := s.client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	pipelinetest.Await(s.t, "an acknowledgement of each record", func() bool {
		outcomes, err := committer.Publish(s.t.Context(), records)
		return err == nil && !slices.ContainsFunc(outcomes, func(o stream.Outcome) bool { return o.Err != nil })
	})
	for i := range records {
		s.publisher.acknowledged(records[i].Digest)
	}
}

// noDuplicateWindow makes the broker forget message ids and publishes the fleet's
// first lines again, including those of sealed sessions: each is then a new message.
// Merges are stopped, so duplicate rows remain in the tables, and readers must not see them.
func (s *site) noDuplicateWindow(random *rand.Rand) {
	s.t.Helper()
	s.exec("SYSTEM STOP MERGES traces", "SYSTEM STOP MERGES verdicts", "SYSTEM STOP MERGES drift_points")
	streams := []string{stream.Traces, stream.Receipts, stream.Alerts, stream.Ledger, stream.DeadLetters}
	broker, windows := s.jetStream(), map[string]time.Duration{}
	for _, name := range streams {
		windows[name] = s.setDuplicateWindow(broker, name, 100*time.Millisecond)
	}
	var again []stream.Record
	for _, line := range s.lines[:1000] {
		if trace, err := schema.Admit("", line); err == nil {
			again = append(again, pipelinetest.Record(trace.AgentID, trace.Raw))
		}
	}
	for range 3 {
		pause(random, 2*time.Second)
		before := s.messages()
		pipelinetest.Await(s.t, "the lines to be in the stream once more", func() bool {
			s.publishOverNATS(again)
			return s.messages() >= before+uint64(len(again))
		})
	}
	for name, window := range windows {
		s.setDuplicateWindow(broker, name, window)
	}
	s.t.Logf("%d messages of %d traces", s.messages(), s.counts().Traces)
}

// setDuplicateWindow sets how long a stream remembers message ids, and returns the previous
// value.
func (s *site) setDuplicateWindow(broker jetstream.JetStream, name string, window time.Duration) (before time.Duration) {
	s.t.Helper()
	info, err := broker.Stream(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := info.CachedInfo().Config
	before, cfg.Duplicates = cfg.Duplicates, window
	if _, err := broker.UpdateStream(s.t.Context(), cfg); err != nil {
		s.t.Fatal(err)
	}
	return before
}

// messages counts the messages of stream TRACES.
func (s *site) messages() uint64 {
	state, err := s.client.StreamState(s.t.Context(), stream.Traces)
	if err != nil {
		return 0
	}
	return state.Messages
}

// redeliver lets three verifiers and three drifts take partitions from one another: one of each is stopped
// in turn until the others have taken its partitions over, while the engine hangs, and then continues with
// what it had in hand. So several processes work on one trace at the same time, and the order changes.
func (s *site) redeliver(random *rand.Rand) {
	s.t.Helper()
	owners := [][]*service{{s.verifier, s.drift}}
	for range 2 {
		var another []*service
		for _, stage := range []string{"verifier", "drift"} {
			process := s.service(stage, "PLUMBLINE_BATCH_AGE=50ms", "PLUMBLINE_TAKEOVER_AFTER=1s")
			process.awaitReady()
			another = append(another, process)
		}
		owners = append(owners, another)
	}
	for i := range 6 {
		pause(random, 3*time.Second)
		stopped, before := owners[i%len(owners)], map[string]uint64{}
		for _, owner := range stopped {
			before[owner.name] = s.epochs(owner.name)
			s.check(syscall.Kill(owner.cmd.Process.Pid, syscall.SIGSTOP))
		}
		s.stop("engine", 2*time.Second+time.Duration(random.Int64N(int64(3*time.Second))))
		for _, owner := range stopped {
			pipelinetest.Await(s.t, "partitions taken over", func() bool { return s.epochs(owner.name) > before[owner.name] })
			s.check(syscall.Kill(owner.cmd.Process.Pid, syscall.SIGCONT))
		}
	}
}

// sealsIdleSessions returns a site that soon seals a session again after a late trace.
func sealsIdleSessions(t testing.TB) *site {
	return newSiteAt(t, place{settings: map[string][]string{"exporter": {"PLUMBLINE_SEAL_IDLE=10s"}}})
}

// publishForged publishes, for every tenth line, a message from another publisher with the id
// that the line's trace will have, and then the lines. The broker reports these traces
// as duplicates.
func (s *site) publishForged(lines [][]byte) []outcome {
	broker := s.jetStream()
	for i := 0; i < len(lines); i += 10 {
		forged := fmt.Appendf(nil, `{"in place of":"%s"}`, schema.DigestOf(lines[i]))
		message := nats.NewMsg(subject.Trace("forger"))
		message.Data = forged
		message.Header.Set(jetstream.MsgIDHeader, schema.DigestOf(lines[i]).String())
		pipelinetest.Await(s.t, "a forged id to be stored", func() bool {
			ack, err := broker.PublishMsg(s.t.Context(), message)
			if err == nil && !ack.Duplicate { // one of the fleet's own repetitions was there first
				s.publisher.acknowledged(schema.DigestOf(forged))
				s.expected.letters++
			}
			return err == nil
		})
	}
	return s.publisher.publish(lines, nil)
}

func (s *site) awaitForgeries(*rand.Rand) {
	s.t.Helper()
	s.await("forged messages among the dead letters", func(c store.Counts) bool { return c.DeadLetters > 100 })
}

// malformed returns records that are not valid traces of the agent on whose subject they are
// published.
func malformed(n int) []stream.Record {
	foreign := pipelinetest.Trace(fmt.Sprintf("foreign-%d", n), "poisoner", "ac-poison", "poisoned", "2026-02-01T00:00:00Z", "search")
	return []stream.Record{
		pipelinetest.Record("poisoner", fmt.Appendf(nil, `{"trace_id":"cut-%d",`, n)),
		pipelinetest.Record("poisoner", fmt.Appendf(nil, "{\"trace_id\":\"\xff%d\"}", n)),
		pipelinetest.Record("poisoner", fmt.Appendf(nil, `{"trace_id":"none-%d"}`, n)),
		pipelinetest.Record("somebody", foreign.Data),
	}
}

// poisonScenario publishes 10,000 traces. Each request is accompanied by malformed records, and
// each fifth one also by a valid trace that the database refuses because of its id.
func poisonScenario() scenario {
	n := 0
	return scenario{
		name: "poison", traces: 10_000,
		site: func(t testing.TB) *site {
			n = 0
			s := newSite(t)
			s.exec("ALTER TABLE traces ADD CONSTRAINT poison CHECK NOT startsWith(trace_id, 'poison-')")
			s.publisher.register(pipelinetest.Card("ac-poison", "poisoner"))
			return s
		},
		publish: func(s *site, lines [][]byte) []outcome {
			poison := malformed(n)
			if n%5 == 0 {
				poison = append(poison, pipelinetest.Trace(fmt.Sprintf("poison-%d", n), "poisoner", "ac-poison", "poisoned", "2026-02-01T00:00:00Z", "search"))
				s.expected.points++ // drift measures the published trace
			}
			n++
			s.publishOverNATS(poison)
			s.expected.letters += len(poison)
			return s.publisher.publish(lines, nil)
		},
		strike: func(s *site, _ *rand.Rand) {
			s.await("dead letters", func(c store.Counts) bool { return c.DeadLetters > 100 })
			s.checkReasons()
		},
	}
}

// checkReasons requires that each dead letter of the verifier has its reason.
func (s *site) checkReasons() {
	s.t.Helper()
	reasons := map[string]uint64{}
	for _, row := range s.query("SELECT reason, count() FROM dead_letters WHERE stage = 'verifier' AND notEmpty(faults.message) GROUP BY reason") {
		reasons[row[0].(string)] = row[1].(uint64)
	}
	text, err := json.Marshal(reasons)
	s.check(err)
	s.t.Logf("dead letters by reason: %s", text)
	for _, reason := range []string{"unstorable", schema.ReasonForeignAgent} {
		if reasons[reason] == 0 {
			s.t.Errorf("no dead letter has the reason %s: %s", reason, text)
		}
	}
}
