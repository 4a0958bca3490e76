package verifier

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/sim"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/sink"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Whatever fails, hangs, is lost, repeated or killed, every trace has its row, its verdict, its
// receipt and its alerts, or a dead letter, and has them before its position is recorded. Two
// verifiers may share the partitions.
func TestSimulation(t *testing.T) {
	sim.Run(t, 80, func(t *testing.T, w *sim.World) {
		s := newSimulation(t, w)
		w.Go(s.publish)
		var verifiers sync.WaitGroup
		for i := range 1 + w.Dice("verifiers").IntN(2) {
			verifiers.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				w.Live(s.done, s.process)
			})
		}
		verifiers.Wait()
		w.Check(s.check)
	})
}

// simulation holds the durable state other than the streams, and the expected results.
type simulation struct {
	t *testing.T
	w *sim.World

	traces, receipts, alerts, letters, ledger *sim.Stream

	findings, verified *sim.Consumer // verified: of an earlier verifier
	cards, revocations *sim.Bucket
	members            *sim.Members

	rows     map[schema.Digest]bool                   // table traces
	verdicts map[schema.Digest]map[schema.Digest]bool // table verdicts: the digests of the verdicts' cards, by trace
	cardRows map[string]string                        // table cards: the agent of each card
	position uint64                                   // table card_positions

	receipted map[uint64]bool   // sequences with a receipt, as far as stream RECEIPTS was read
	listed    map[uint64]string // alert ids by sequence, as far as the ledger was read
	read      struct{ receipts, ledger int }

	wanted    []wanted // by message
	judge     workspace
	published bool
}

// wanted is the expected result of a message once its card is known.
type wanted struct {
	trace   *store.StoredTrace // nil: a dead letter
	card    schema.Digest      // of the verdict
	verdict schema.Verdict
	alerts  []string
}

func newSimulation(t *testing.T, w *sim.World) *simulation {
	t.Helper()
	s := &simulation{
		t: t, w: w,
		traces: w.Stream(stream.Traces), receipts: w.Stream(stream.Receipts), alerts: w.Stream(stream.Alerts), letters: w.Stream(stream.DeadLetters), ledger: w.Stream(stream.Ledger),
		cards: w.Bucket(stream.Cards), revocations: w.Bucket(stream.Revocations),
		rows: map[schema.Digest]bool{}, verdicts: map[schema.Digest]map[schema.Digest]bool{}, cardRows: map[string]string{},
		receipted: map[uint64]bool{}, listed: map[uint64]string{},
	}
	s.members = w.Members(stream.VerifierConsumer, s.traces)
	s.members.Finished = s.acked
	s.verified = s.traces.Consumer(stream.VerifierConsumer)
	s.findings = s.alerts.Consumer(stream.FindingsConsumer)
	s.findings.Acked = s.entered
	rules := DefaultRules()
	var err error
	if s.judge, err = newWorkspace(simulatedCards(), nil, &rules); err != nil {
		t.Fatal(err)
	}
	return s
}

// simulatedAgents are the agents of the simulation. The card of the second one is registered
// late.
var simulatedAgents = []string{"a", "b"}

func simulatedCard(agent string) []byte { return pipelinetest.Card("ac-"+agent, agent) }

// allCards is a registry that knows all cards.
type allCards map[string]*cards.Card

// simulatedCards returns the agents' cards, compiled once for all seeds.
var simulatedCards = sync.OnceValue(func() allCards {
	all := allCards{}
	for _, agent := range simulatedAgents {
		compiled, err := aap.Register(simulatedCard(agent))
		if err != nil {
			panic(err) // the card is part of this test
		}
		all[compiled.Card.CardID] = &cards.Card{Compiled: compiled}
	}
	return all
})

func (all allCards) Lookup(_ context.Context, cardID string) (*cards.Card, error) {
	return all[cardID], nil
}
func (allCards) Know(context.Context, string) error                   { return nil }
func (allCards) Knows(string) bool                                    { return false }
func (allCards) Ahead(context.Context, iter.Seq[string])              {}
func (allCards) Warm(context.Context, iter.Seq[string])               {}
func (allCards) Instead(*cards.Entry, string, time.Time) *cards.Entry { return nil }
func (allCards) RevokedAt(string) time.Time                           { return time.Time{} }
func (allCards) RetainUntil(string, time.Time) time.Time              { return time.Time{} }

// publish registers the cards and publishes traces, some of them invalid.
func (s *simulation) publish() {
	dice := s.w.Dice("workload")
	registered := time.Duration(dice.Int64N(int64(s.w.Stormy())))
	s.cards.Register(subject.Token("ac-a"), simulatedCard("a"))
	time.AfterFunc(registered, func() { s.cards.Register(subject.Token("ac-b"), simulatedCard("b")) })
	n := 5 + dice.IntN(25)
	var records []stream.Record
	for i := range n {
		time.Sleep(time.Duration(dice.Int64N(int64(time.Second))))
		agent := simulatedAgents[dice.IntN(2)]
		record := pipelinetest.Trace(fmt.Sprintf("tr-%d", i), agent, "ac-"+agent, "s", "2026-02-01T00:00:00Z", []string{"search", "pay"}[dice.IntN(2)])
		switch kind := dice.IntN(12); {
		case kind == 0:
			record = pipelinetest.Record(agent, []byte("{}"))
		case kind == 1:
			record = pipelinetest.Trace(unstorable+strconv.Itoa(i), agent, "ac-"+agent, "s", "2026-02-01T00:00:00Z", "pay")
		case kind == 2 && i > 0:
			record = records[dice.IntN(i)]
		}
		records = append(records, record)
		message := sim.Stored{Subject: subject.Trace(record.Agent), Data: record.Data, Agent: record.Agent, Partition: subject.Partition(record.Agent)}
		sequence := s.traces.Publish(message)
		s.w.Within(func() { s.wanted = append(s.wanted, s.want(sequence)) })
	}
	time.Sleep(registered)
	s.w.Within(func() { s.published = true })
}

// unstorable is the prefix of ids of traces that the database never accepts.
const unstorable = "unstorable-"

// want returns the expected result of a message, which depends on the message alone.
func (s *simulation) want(sequence uint64) wanted {
	stored := s.traces.At(sequence)
	m := stream.Message{Data: stored.Data, Agent: stored.Agent, Partition: stored.Partition, Sequence: sequence, Received: stored.Received}
	in := &batch{rows: new(store.Store).NewTraceBatch(), unknown: map[string]bool{}}
	var j judgement
	err := s.judge.judge(s.t.Context(), &j, &m, s.traces.Created, stored.Received)
	if err == nil {
		err = in.add(m, &j, stored.Received)
	}
	if err != nil {
		s.w.Wrong("judge message %d alone: %v", sequence, err)
	}
	var want wanted
	for _, alert := range in.alerts { // also of a trace that no table accepts
		want.alerts = append(want.alerts, alert.ID)
	}
	if j.refusal == nil && !isUnstorable(stored.Data) {
		id, t := in.rows.ID(0), &j.trace
		want.card, want.verdict = id.Card, cloned(&j.verdict)
		want.trace = &store.StoredTrace{
			AgentID: strings.Clone(t.AgentID), TraceID: strings.Clone(t.TraceID), CardID: strings.Clone(t.CardID), SessionID: strings.Clone(schema.SessionID(t)),
			Digest: id.Digest, Raw: stored.Data, Received: stored.Received, Sequence: sequence, StreamCreated: s.traces.Created,
		}
	}
	return want
}

func isUnstorable(data []byte) bool { return strings.Contains(string(data), `"`+unstorable) }

// process runs the stage as Serve composes it.
func (s *simulation) process(ctx context.Context, p *sim.Process) error {
	alerts, err := p.Open(ctx, s.findings, false)
	if err != nil {
		return err
	}
	rules, cfg := DefaultRules(), Default()
	registry := cards.New(p.Keys(s.cards), p.Keys(s.revocations), cfg.Cards.CacheBytes)
	judging, err := newWorkspace(registry, nil, &rules)
	if err != nil {
		return err
	}
	lateJudging, err := newWorkspace(registry, nil, &rules)
	if err != nil {
		return err
	}
	rechecking, err := newWorkspace(registry, nil, &rules)
	if err != nil {
		return err
	}
	rows, outlet := &simulatedRows{s, p}, p.Broker()
	var bucket stream.State
	err = p.Env.Retry.Do(ctx, "read the position of table cards", func() error {
		err := p.Do(ctx, sim.Operation{Name: "state of bucket cards"}, func() error { bucket = s.cards.State(); return nil })
		if err != nil {
			return err
		}
		return registry.Rely(ctx, rows, bucket)
	})
	if err != nil {
		return err
	}
	late := &lateCards{env: p.Env, registry: registry, created: bucket.Created, rows: rows, outlet: outlet, workspace: lateJudging, rechecking: rechecking, wake: make(chan struct{}, 1)}
	v := &verifier{
		env: p.Env, cfg: &cfg, rows: rows, outlet: outlet, metrics: newMetrics(p.Env.Metrics),
		workspaces: []workspace{judging}, newRows: new(store.Store).NewTraceBatch, late: late, sliceRows: 3, aheadRows: 12,
	}
	known := make(chan struct{})
	return service.Group(ctx,
		func(ctx context.Context) error { return late.watch(ctx, known) },
		late.run,
		func(ctx context.Context) error { return (&sink.Findings{Env: p.Env, Ledger: outlet}).Run(ctx, alerts) },
		after(known, func(ctx context.Context) error {
			broker, owners := p.Broker(s.verified), s.members.Owners(ctx, p, cfg.TakeoverAfter)
			owners.Earlier = func(ctx context.Context, _ int) (stream.Progress, error) {
				return broker.ConsumerProgress(ctx, stream.Traces, stream.VerifierConsumer)
			}
			return v.judgeShare(ctx, owners)
		}))
}

// acked requires that all results of a message are durable.
func (s *simulation) acked(sequence uint64) {
	want := &s.wanted[sequence-1]
	if want.trace == nil {
		if s.lettersOf(sequence) == 0 {
			s.w.Wrong("message %d is called done and no dead letter", sequence)
		}
		return
	}
	s.readStreams()
	digest := want.trace.Digest
	switch {
	case !s.rows[digest]:
		s.w.Wrong("message %d is called done and its trace has no row", sequence)
	case len(s.verdicts[digest]) == 0:
		s.w.Wrong("message %d is called done and has no verdict", sequence)
	case !s.receipted[sequence]:
		s.w.Wrong("message %d is called done and not receipted", sequence)
	}
	if !s.verdicts[digest][schema.Digest{}] {
		s.demandAlerts(sequence, want)
	}
}

func (s *simulation) demandAlerts(sequence uint64, want *wanted) {
	for _, id := range want.alerts {
		if !slices.ContainsFunc(s.alerts.Stored, func(m sim.Stored) bool { return m.ID == id }) {
			s.w.Wrong("message %d: alert %s is not there", sequence, id)
		}
	}
}

// entered requires that the ledger lists an alert.
func (s *simulation) entered(sequence uint64) {
	s.readStreams()
	if s.listed[sequence] != s.alerts.At(sequence).ID {
		s.w.Wrong("alert %d is acknowledged and not in the ledger", sequence)
	}
}

func (s *simulation) lettersOf(sequence uint64) (n int) {
	for i := range s.letters.Stored {
		if strings.HasSuffix(s.letters.Stored[i].Subject, "."+strconv.FormatUint(sequence, 10)) {
			n++
		}
	}
	return n
}

// readStreams reads the new messages of streams RECEIPTS and LEDGER.
func (s *simulation) readStreams() {
	for ; s.read.receipts < len(s.receipts.Stored); s.read.receipts++ {
		receipts, _, err := wire.DecodeReceipts(s.receipts.Stored[s.read.receipts].Data, nil)
		if err != nil {
			s.w.Wrong("read the receipts: %v", err)
		}
		for i := range receipts {
			s.receipted[receipts[i].Sequence] = true
		}
	}
	for ; s.read.ledger < len(s.ledger.Stored); s.read.ledger++ {
		var found events.Findings
		if err := json.Unmarshal(s.ledger.Stored[s.read.ledger].Data, &found); err != nil {
			s.w.Wrong("read the ledger: %v", err)
		}
		for _, alert := range found.Alerts {
			s.listed[alert.Sequence] = alert.ID
		}
	}
}

// done reports whether everything is acked and judged.
func (s *simulation) done() bool {
	return s.published && s.members.Done() && s.findings.Done() && len(s.unjudged([]string{"ac-a", "ac-b"})) == 0 &&
		len(s.cardRows) == len(simulatedAgents) && s.position == s.cards.State().LastSequence
}

// check compares the durable state with what the messages require.
func (s *simulation) check() {
	s.readStreams()
	alerts, rows := map[string]bool{}, map[schema.Digest]bool{}
	for i := range s.wanted {
		want, sequence := &s.wanted[i], uint64(i+1)
		for _, id := range want.alerts {
			alerts[id] = true
		}
		isLetter := want.trace == nil
		if letters := s.lettersOf(sequence); isLetter != (letters > 0) {
			s.w.Wrong("message %d has %d dead letters", sequence, letters)
		}
		if s.receipted[sequence] == isLetter {
			s.w.Wrong("message %d: receipted %v", sequence, s.receipted[sequence])
		}
		if isLetter {
			continue
		}
		rows[want.trace.Digest] = true
		if !s.verdicts[want.trace.Digest][want.card] {
			s.w.Wrong("message %d has no verdict by its card", sequence)
		}
		s.demandAlerts(sequence, want)
	}
	if len(rows) != len(s.rows) || len(s.receipted) > len(s.wanted) {
		s.w.Wrong("%d rows, want %d; %d sequences are receipted", len(s.rows), len(rows), len(s.receipted))
	}
	for i := range s.alerts.Stored {
		if id := s.alerts.Stored[i].ID; !alerts[id] {
			s.w.Wrong("alert %s belongs to no trace", id)
		}
	}
}
