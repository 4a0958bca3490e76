package drift

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/walk"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// scene is a rig with a fleet's lines on the broker.
type scene struct {
	*pipelinetest.Rig
	t     *testing.T
	fleet *fleet.Fleet
	lines []fleet.Line // of the fleet: with the race detector, to write and sign them takes long
	cfg   Config
	loops []string // ids of the traces that make loops, besides the fleet's
}

func newScene(t *testing.T, cfg fleet.Config) *scene { return sceneOn(pipelinetest.New(t), t, cfg) }

func sceneOn(rig *pipelinetest.Rig, t *testing.T, cfg fleet.Config) *scene {
	cfg.Start = time.Now()
	s := &scene{Rig: rig, t: t, fleet: fleet.New(cfg), cfg: Default()}
	s.lines = slices.Collect(s.fleet.Lines())
	s.cfg.Common, s.cfg.ClickHouse = s.Common(), s.ClickHouse()
	var raw [][]byte
	for _, card := range s.fleet.Cards() {
		raw = append(raw, card.Raw)
	}
	s.Register(t, raw...)
	return s
}

// publish publishes the fleet's lines.
func (s *scene) publish() { s.publishLines(s.lines) }

func (s *scene) publishLines(lines []fleet.Line) {
	var records []stream.Record
	for _, line := range lines {
		records = append(records, pipelinetest.Record(line.Agent, line.Raw))
	}
	s.Publish(s.t, records...)
}

// stage returns a stage on the scene. A test may replace its parts.
func (s *scene) stage(client *stream.Client) *stage {
	cfg := s.cfg
	env := pipelinetest.Env(s.t, "drift")
	env.DrainBudget = cfg.DrainBudget
	return newStage(&cfg, env, client, s.Store, s.registry(client), s.pins())
}

// sharing returns what a process does that runs a stage: it owns all partitions if it is the only one.
func (s *scene) sharing(process *stage) func(ctx context.Context) error {
	return s.sharingBy(process, stream.DriftOwners)
}

// sharingBy is sharing with the record under another key.
func (s *scene) sharingBy(process *stage, record string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		owners, err := ownersOn(ctx, process.cfg, process.env, process.outlet.(*stream.Client))
		if err != nil {
			return err
		}
		owners.Stage = record
		return process.share(ctx, owners)
	}
}

func (s *scene) pins() Pins {
	s.t.Helper()
	pins, err := s.cfg.pins()
	if err != nil {
		s.t.Fatal(err)
	}
	return pins
}

func (s *scene) registry(client *stream.Client) *cards.Registry {
	registry, err := cards.Open(s.t.Context(), client, config.DefaultCardCacheBytes)
	if err != nil {
		s.t.Fatal(err)
	}
	return registry
}

// read returns the messages of a stream.
func (s *scene) read(name string) (messages []stream.Message) {
	s.t.Helper()
	state, err := s.Client.StreamState(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	for m, err := range walk.Messages(s.t.Context(), s.Client, name, state) {
		if err != nil {
			s.t.Fatal(err)
		}
		messages = append(messages, *m)
	}
	return messages
}

// expected folds the stream in memory.
func (s *scene) expected() *table {
	all := newTable()
	traces, registry := s.read(stream.Traces), s.registry(s.Client)
	for p := range subject.Partitions {
		messages := slices.DeleteFunc(slices.Clone(traces), func(m stream.Message) bool { return m.Partition != p })
		if len(messages) > 0 {
			part := foldAll(s.cfg, registry, messages)
			for id, baseline := range part.baselines {
				all.baselines[id] = baseline
			}
			for key, point := range part.points {
				all.points[key] = point
			}
			for id, alert := range part.alerts {
				all.alerts[id] = alert
			}
			for id, loop := range part.loops {
				all.loops[id] = loop
			}
			for key, state := range part.states {
				all.states[key] = state
			}
		}
	}
	return all
}

// done reports whether every message of every partition is acked.
func (s *scene) done() bool {
	for p := range subject.Partitions {
		progress, err := s.Client.ConsumerProgress(s.t.Context(), stream.Traces, stream.DriftConsumer(p))
		if err != nil {
			s.t.Fatal(err)
		}
		if progress.Pending > 0 || progress.Unacked > 0 {
			return false
		}
	}
	return true
}

// check makes the checks of checkReplay, and requires that alerts and loops are those planted.
func (s *scene) check() {
	s.t.Helper()
	replayed := s.checkReplay()
	newest := map[schema.Digest]*schema.DriftAlert{}
	for _, a := range replayed.alerts {
		if before := newest[a.AlertID]; before == nil || before.Revision < a.Revision {
			newest[a.AlertID] = &a.DriftAlert
		}
	}
	planted := s.fleet.Planted()
	if missing, strange := planted.CompareDrift(slices.Collect(maps.Values(newest))); len(missing)+len(strange) > 0 || len(planted.Drift) == 0 {
		s.t.Errorf("of %d planted changes %v raised no alert; not planted are %+v", len(planted.Drift), missing, strange)
	}
	var loops []string
	for _, l := range replayed.loops {
		loops = append(loops, l.Finding.TraceID)
	}
	slices.Sort(loops)
	want := append(slices.Clone(planted.SessionFindings[schema.ActionLoop]), s.loops...)
	slices.Sort(want)
	if !slices.Equal(loops, want) || len(want) == 0 {
		s.t.Errorf("loops %q, planted %q", loops, want)
	}
}

// checkReplay requires that baselines, points, alerts, loops, their messages and states equal those of
// an uninterrupted fold of the stream, which it returns.
func (s *scene) checkReplay() *table {
	s.t.Helper()
	want := s.expected()
	compare(s.t, s.stored(), want.listing())
	var published []string
	for _, a := range want.alerts {
		published = append(published, wire.DriftAlertID(&a.DriftAlert))
	}
	for id := range want.loops {
		published = append(published, id)
	}
	var messages []string
	for _, m := range s.read(stream.Alerts) {
		messages = append(messages, m.Header("Nats-Msg-Id"))
	}
	slices.Sort(published)
	slices.Sort(messages)
	if !slices.Equal(messages, published) {
		s.t.Errorf("%d alert messages, want %d: %q", len(messages), len(published), difference(messages, published))
	}
	finished := newTable()
	state, err := s.Client.StreamState(s.t.Context(), stream.Traces)
	if err != nil {
		s.t.Fatal(err)
	}
	series := map[int][]seriesKey{}
	for p := range subject.Partitions {
		series[p] = slices.Collect(maps.Keys(want.states))
	}
	rows, err := s.Store.DriftStates(s.t.Context(), state.Created, series)
	if err != nil {
		s.t.Fatal(err)
	}
	finished.insertStates(rows)
	if finished.finished() != want.finished() {
		s.t.Errorf("the states name %d messages, want %d", finished.finished(), want.finished())
	}
	return want
}

// stored returns the points and alerts of the database as lines.
func (s *scene) stored() (lines []string) {
	s.t.Helper()
	result, err := s.Store.Query(s.t.Context(), `SELECT agent_id, card_id, trace_id, lower(substring(digest, 1, 8)), status,
		if(similarity IS NULL, '-', toDecimalString(assumeNotNull(similarity), 9)), toString(streak),
		mode, substring(baseline_id, 1, 8) FROM visible_drift_points`)
	if err != nil {
		s.t.Fatal(err)
	}
	for row, err := range result.Rows {
		if err != nil {
			s.t.Fatal(err)
		}
		words := []string{"point"}
		for _, value := range row {
			words = append(words, value.(string))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	lines = append(lines, s.storedBaselines()...)
	alerts, err := s.Store.DriftAlertEvents(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range alerts {
		lines = append(lines, alertLine(&alerts[i].DriftAlert))
	}
	loops, err := s.Store.LoopAlerts(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range loops {
		lines = append(lines, loopLine(&loops[i]))
	}
	slices.Sort(lines)
	return lines
}

// storedBaselines returns the baselines of the series that have begun as lines.
func (s *scene) storedBaselines() (lines []string) {
	s.t.Helper()
	agents := map[string]bool{}
	for _, card := range s.fleet.Cards() {
		if agents[card.AgentID] {
			continue
		}
		agents[card.AgentID] = true
		reports, err := s.Store.DriftOf(s.t.Context(), card.AgentID, "", 0)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range reports {
			for i := range r.Baselines {
				lines = append(lines, baselineLine(&r.Baselines[i]))
			}
		}
	}
	return lines
}

// Also on three nodes, traces of a partition whose agents are silent become due.
func TestQuietPartitionsOfAClusterComeDue(t *testing.T) {
	rig, _ := pipelinetest.NewCluster(t, 3)
	s := sceneOn(rig, t, fleet.Config{Seed: 7, Agents: 24, Traces: 600})
	s.publish()
	env := pipelinetest.Env(t, "drift")
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &s.cfg, env) })
	pipelinetest.Await(t, "every message acknowledged", s.done)
	stage.Stop(t)
	s.check()
}

// The whole stage as in a deployment: the traces published last become due although nothing
// follows them. Half of the cards are known to be rows. These are not read from the broker: what is measured
// by them is as without rows, and their commitments count all the same.
func TestPlantedDriftIsFound(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 7, Agents: 24, Traces: 1500})
	s.settleHalf()
	s.publish()
	env := pipelinetest.Env(t, "drift")
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &s.cfg, env) })
	pipelinetest.Await(t, "every message acknowledged", s.done)
	stage.Stop(t)
	s.check()
	planted := s.fleet.Planted()
	for name, want := range map[string]int{
		"plumbline_drift_refused_total":    len(planted.Refused),
		"plumbline_drift_alerts_total":     len(planted.Drift),
		"plumbline_drift_loops_total":      len(planted.SessionFindings[schema.ActionLoop]),
		"plumbline_drift_points_total":     planted.Stored,
		"plumbline_drift_waiting_traces":   0,
		"plumbline_drift_duplicates_total": len(planted.Duplicates) - s.deduplicated(),
	} {
		if got := pipelinetest.Metric(t, env, name, ""); got != float64(want) {
			t.Errorf("%s is %v, want %d", name, got, want)
		}
	}
	if read := pipelinetest.Metric(t, env, "plumbline_card_fetches_total", ""); read > 0 {
		t.Errorf("%v cards that are rows were read from the broker", read)
	}
	if n := s.Number(t, "SELECT count() FROM drift_points AS p INNER JOIN (SELECT agent_id, max(retention_days) AS days FROM cards GROUP BY agent_id) AS c "+
		"ON p.agent_id = c.agent_id WHERE toDate(p.retain_until) != toDate(p.received_at + toIntervalDay(c.days))"); n > 0 {
		t.Errorf("%d points are kept for another time than their agents' cards commit to", n)
	}
}

// settleHalf makes all cards rows, as the verifier does, and records that for half of them.
func (s *scene) settleHalf() {
	s.t.Helper()
	var rows []*schema.Card
	for _, card := range s.fleet.Cards() {
		decoded, err := schema.DecodeCard(card.Raw)
		if err != nil {
			s.t.Fatal(err)
		}
		rows = append(rows, decoded)
	}
	state, err := s.Client.StreamState(s.t.Context(), stream.CardRecords)
	if err == nil {
		err = s.Store.InsertCards(s.t.Context(), time.Now(), rows)
	}
	if err == nil {
		err = s.Store.InsertCardPosition(s.t.Context(), state.Created, uint64(len(rows)/2))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// deduplicated returns how many lines the broker recognised as copies.
func (s *scene) deduplicated() int {
	state, err := s.Client.StreamState(s.t.Context(), stream.Traces)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.fleet.Planted().Lines - int(state.Messages)
}

// connect returns a connection of a process of its own, closed when the test ends.
func (s *scene) connect() *stream.Client {
	s.t.Helper()
	client := s.dial()
	s.t.Cleanup(func() {
		if err := client.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return client
}

func (s *scene) dial() *stream.Client {
	s.t.Helper()
	client, err := stream.Connect(s.t.Context(), stream.Config{URL: s.Broker.URL(), Name: "drift"})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// inHand returns how many messages are applied and not stored.
func (s *stage) inHand() (n int) {
	for _, p := range s.partitions {
		p.mu.Lock()
		n += p.fold.out.messages
		p.mu.Unlock()
	}
	return n
}

// A stage that is stopped stores and acks what is applied, before the next tick.
func TestStopDrains(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 3, Agents: 12, Traces: 600})
	s.cfg.BatchAge = time.Hour
	s.publish()
	before := goleak.IgnoreCurrent()
	client := s.dial()
	applied := s.stage(client)
	applied.now = func() time.Time { return time.Now().Add(time.Hour) }
	worker := pipelinetest.Go(t, s.sharing(applied))
	pipelinetest.Await(t, "every trace applied", func() bool { return applied.inHand() == s.fleet.Planted().Lines-s.deduplicated() })
	if s.done() {
		t.Error("acknowledged before it was stored")
	}
	worker.Stop(t)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, append(brokertest.LeftBehind(), before)...)
	pipelinetest.Await(t, "the broker to have handled the acks", s.done)
	s.check()
}

// A broker that restarts loses deliveries, and the reader continues after the last one.
func TestBrokerRestartChangesNothing(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 13, Agents: 12, Traces: 600})
	s.cfg.BatchAge, s.cfg.BatchRows, s.cfg.Lateness = 20*time.Millisecond, 25, time.Millisecond
	s.publish()
	process := s.stage(s.connect())
	worker := pipelinetest.Go(t, s.sharing(process))
	pipelinetest.Await(t, "progress", func() bool { return pipelinetest.Metric(t, process.env, "plumbline_drift_points_total", "") > 0 })
	s.Broker.Restart()
	pipelinetest.Await(t, "the broker", func() bool { return s.Client.Ping(t.Context()) == nil })
	worker.Stop(t)
	s.finish()
	s.check()
}

// Two processes that both take themselves for the owner of all partitions corrupt nothing.
func TestSecondProcessCorruptsNothing(t *testing.T) {
	s := newScene(t, fleet.Config{Seed: 5, Agents: 12, Traces: 800})
	s.cfg.BatchAge, s.cfg.BatchRows = 20*time.Millisecond, 25
	s.cfg.Lateness, s.cfg.ResidentBytes = time.Millisecond, 0 // each series leaves memory as soon as it may
	first, second := s.stage(s.connect()), s.stage(s.connect())
	rivals := []*pipelinetest.Stage{pipelinetest.Go(t, s.sharingBy(first, "one")), pipelinetest.Go(t, s.sharingBy(second, "another"))}
	s.publish()
	pipelinetest.Await(t, "progress of either", func() bool {
		return pipelinetest.Metric(t, first.env, "plumbline_drift_points_total", "")+pipelinetest.Metric(t, second.env, "plumbline_drift_points_total", "") > 0
	})
	for _, rival := range rivals {
		rival.Stop(t)
	}
	s.finish()
	s.check()
}

// finish runs a process until everything is acked.
func (s *scene) finish() {
	s.t.Helper()
	last := s.stage(s.connect())
	last.now = func() time.Time { return time.Now().Add(time.Hour) }
	worker := pipelinetest.Go(s.t, s.sharing(last))
	pipelinetest.Await(s.t, "every message acknowledged", s.done)
	worker.Stop(s.t)
}
