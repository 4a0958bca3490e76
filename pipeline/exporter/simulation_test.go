package exporter

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/sim"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// Whatever fails, hangs, is repeated or is killed, each session is in one chain of bundles with
// every trace once. Each bundle has the bytes that its plan and the rows determine, is recorded
// before it counts as sealed, and is in the ledger once.
func TestSimulation(t *testing.T) {
	sim.Run(t, 25, func(t *testing.T, w *sim.World) {
		s := newSimulation(t, w)
		w.Go(s.publish)
		var processes sync.WaitGroup
		for i := range 1 + w.Dice("processes").IntN(2) {
			processes.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				w.Live(s.done, func(ctx context.Context, p *sim.Process) error { return s.process(ctx, p, i == 0) })
			})
		}
		processes.Wait()
		w.Check(s.check)
	})
}

// simulation holds the durable state other than the streams.
type simulation struct {
	t *testing.T
	w *sim.World

	cfg                              Config
	rules                            redact.Rules
	judge                            *aap.Judge
	traces, receipts, alerts, ledger *sim.Stream
	verifier                         *sim.Consumer
	cards, revocations, seals        *sim.Bucket
	members                          *sim.Members

	tables    exported
	sessions  map[store.SessionKey][]*simulatedTrace
	published bool
}

// exported holds the tables that the exporter writes.
type exported struct {
	bundles  map[string]bool // SHA-256
	verdicts map[string]bool // by part of a session
	runs     map[string]bool // SHA-256 of the bundle
	sessions map[store.SessionKey]store.Session
	ledger   map[[2]uint64]string // hashes by file and number
	chained  uint64               // sequence of the newest chained event
}

// simulatedTrace is a trace that was published once or more often.
type simulatedTrace struct {
	row      store.StoredTrace
	verdict  schema.Verdict
	inserted bool
}

func newSimulation(t *testing.T, w *sim.World) *simulation {
	t.Helper()
	dice := w.Dice("configuration")
	s := &simulation{
		t: t, w: w, cfg: Default(),
		traces: w.Stream(stream.Traces), receipts: w.Stream(stream.Receipts), alerts: w.Stream(stream.Alerts), ledger: w.Stream(stream.Ledger),
		cards: w.Bucket(stream.Cards), revocations: w.Bucket(stream.Revocations), seals: w.Bucket(stream.Seals),
		tables: exported{
			bundles: map[string]bool{}, verdicts: map[string]bool{}, runs: map[string]bool{},
			sessions: map[store.SessionKey]store.Session{}, ledger: map[[2]uint64]string{},
		},
		sessions: map[store.SessionKey][]*simulatedTrace{},
	}
	s.verifier, s.seals.Written = s.traces.Consumer(stream.VerifierConsumer), s.written
	s.members = w.Members(stream.ExporterOwners, s.receipts)
	s.members.Finished = s.folded
	s.cfg.DataDir, s.cfg.Idle = t.TempDir(), time.Duration(10+dice.IntN(20))*time.Second
	s.cfg.RotateRows = 2 + dice.IntN(6)
	if err := os.MkdirAll(s.cfg.bundleDir(), 0o750); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.rules, err = redact.ParseRules(s.cfg.Redact); err != nil {
		t.Fatal(err)
	}
	if s.judge, err = aap.NewJudge(aap.DefaultThresholds()); err != nil {
		t.Fatal(err)
	}
	return s
}

func simulatedCard(agent string) []byte { return pipelinetest.Card("ac-"+agent, agent) }

// publish publishes traces and does what the verifier does with each: row, receipt, ack. Traces
// overtake one another, are repeated, and their receipts are repeated together with others.
func (s *simulation) publish() {
	dice := s.w.Dice("workload")
	for _, agent := range []string{"a", "b"} {
		s.cards.Register(subject.Token("ac-"+agent), simulatedCard(agent))
	}
	var all []*simulatedTrace
	for n := range 5 + dice.IntN(25) {
		time.Sleep(time.Duration(dice.Int64N(int64(time.Second))))
		trace := s.trace(n, []string{"a", "b"}[dice.IntN(2)], fmt.Sprint("s", dice.IntN(3)), dice.IntN(12) == 0)
		again := n > 0 && dice.IntN(12) == 0
		if again {
			trace = all[dice.IntN(n)]
		}
		all = append(all, trace)
		r := &trace.row
		sequence := s.traces.Publish(sim.Stored{Subject: subject.Trace(r.AgentID), Agent: r.AgentID, Partition: subject.Partition(r.AgentID), Data: r.Raw})
		if !again {
			s.w.Within(func() { s.enter(trace, sequence) })
		}
		receipts := []schema.Receipt{receiptOf(trace, sequence)}
		if dice.IntN(8) == 0 && n > 0 && all[n-1].row.AgentID == r.AgentID {
			receipts = append(receipts, receiptOf(all[n-1], sequence-1))
		}
		takes := time.Duration(dice.Int64N(int64(3 * time.Second)))
		s.w.Go(func() { s.verify(takes, trace, sequence, receipts) })
	}
	time.Sleep(5 * time.Second) // until the last of them is verified
	s.w.Within(func() { s.published = true })
}

// trace makes a trace; with end it is the last of its session.
func (s *simulation) trace(n int, agent, session string, end bool) *simulatedTrace {
	at := time.Now().UTC().Format(time.RFC3339Nano)
	raw := pipelinetest.Trace(fmt.Sprintf("tr-%d", n), agent, "ac-"+agent, session, at, "search").Data
	if end {
		raw = bytes.Replace(raw, []byte(`"context":{`), []byte(`"context":{"metadata":{"session_end":true},`), 1)
	}
	trace, err := schema.Admit(agent, raw)
	if err != nil {
		s.t.Error(err)
	}
	made := &simulatedTrace{row: store.StoredTrace{
		AgentID: agent, TraceID: trace.TraceID, Digest: trace.Digest, CardID: trace.CardID, SessionID: schema.SessionID(trace),
		SessionEnd: trace.Context.SessionEnd, EventTime: trace.Timestamp, Raw: raw, StreamCreated: s.traces.Created,
	}}
	compiled, err := aap.Register(simulatedCard(agent))
	if err != nil {
		s.t.Error(err)
	}
	s.judge.Verify(trace, compiled, aap.Facts{Received: time.Now()}, time.Now(), &made.verdict)
	return made
}

// enter records a trace that is published for the first time.
func (s *simulation) enter(trace *simulatedTrace, sequence uint64) {
	r := &trace.row
	r.Sequence, r.Received = sequence, s.traces.At(sequence).Received
	key := store.SessionKey{AgentID: r.AgentID, SessionID: r.SessionID}
	s.sessions[key] = append(s.sessions[key], trace)
}

func receiptOf(trace *simulatedTrace, sequence uint64) schema.Receipt {
	r := &trace.row
	return schema.Receipt{AgentID: r.AgentID, SessionID: r.SessionID, Sequence: sequence, Digest: r.Digest,
		EventTime: r.EventTime, Bytes: len(r.Raw), End: r.SessionEnd}
}

// verify does what the verifier does with one message.
func (s *simulation) verify(takes time.Duration, trace *simulatedTrace, sequence uint64, receipts []schema.Receipt) {
	time.Sleep(takes)
	s.w.Within(func() { trace.inserted = true })
	s.receipts.Publish(sim.Receipts(subject.Partition(trace.row.AgentID), receipts))
	s.w.Within(func() { s.verifier.Settle(sequence) })
}

// signing is the key of all simulated bundles.
var (
	signing   = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	signingID = aivs.KeyID(signing.Public().(ed25519.PublicKey))
)

// process runs the stage as Serve composes it. One of the processes keeps the ledger.
func (s *simulation) process(ctx context.Context, p *sim.Process, keeps bool) error {
	e := &exporter{
		env: p.Env, cfg: &s.cfg, broker: p.Broker(s.verifier), rows: &simulatedRows{s, p}, seals: p.Keys(s.seals),
		cards: cards.New(p.Keys(s.cards), p.Keys(s.revocations), s.cfg.Cards.CacheBytes), metrics: newMetrics(p.Env.Metrics), clock: newClock(time.Now),
		keptReceipts: 4 * s.cfg.RotateRows, rules: s.rules,
		key: signing, keyID: signingID,
		receiptsFrom: func(ctx context.Context, from uint64) (Reader, error) { return p.Read(ctx, s.receipts, from) },
	}
	e.keeper.Store(&keeper{cfg: &s.cfg, confirm: func(context.Context) error { return nil }})
	owners := s.members.Owners(ctx, p, s.cfg.TakeoverAfter)
	owners.Earlier = func(ctx context.Context, _ int) (stream.Progress, error) { return e.earlier(ctx, owners.Broker) }
	share := func(ctx context.Context) error { return e.share(ctx, owners) }
	if !keeps {
		return share(ctx)
	}
	return service.Group(ctx, share, s.keeper(p).Run)
}

// folded requires that every trace with a receipt in a message that is recorded as done is in a bundle. Of
// a trace that was published twice, that is the first message.
func (s *simulation) folded(sequence uint64) {
	receipts, _, err := wire.DecodeReceipts(s.receipts.At(sequence).Data, nil)
	if err != nil {
		s.w.Wrong("%v", err)
	}
	for _, r := range receipts {
		revisions := s.seals.Revisions(seal.Key(r.AgentID, r.SessionID))
		if len(revisions) == 0 {
			s.w.Wrong("message %d of RECEIPTS is done, and session %s has no plan", sequence, r.SessionID)
			continue
		}
		last, err := seal.Decode(revisions[len(revisions)-1])
		covered := last.Covered(s.traces.Created)
		sealed := slices.ContainsFunc(s.sessions[store.SessionKey{AgentID: r.AgentID, SessionID: r.SessionID}], func(t *simulatedTrace) bool {
			return t.row.Digest == r.Digest && t.row.Sequence <= covered
		})
		if err != nil || !sealed {
			s.w.Wrong("message %d of RECEIPTS is done, and session %s is sealed up to %d, without trace %d: %v", sequence, r.SessionID, covered, r.Sequence, err)
		}
	}
}

// written requires that all results of a bundle are durable when it is marked as sealed.
func (s *simulation) written(key string, value []byte) {
	switch key {
	case checkpointKey:
		return
	case seal.SignerKey:
		if string(value) != signingID {
			s.w.Wrong("bundles are said to be signed by %q", value)
		}
		return
	}
	record, err := seal.Decode(value)
	if err != nil {
		s.w.Wrong("%s: %v", key, err)
	}
	if record.State != seal.Sealed {
		return
	}
	if _, err := os.Stat(filepath.Join(s.cfg.bundleDir(), record.File)); err != nil {
		s.w.Wrong("%s is sealed: %v", key, err)
	}
	t := &s.tables
	if !t.bundles[record.SHA256] || !t.runs[record.SHA256] || len(s.claims()[record.SHA256]) == 0 {
		s.w.Wrong("%s, part %d is sealed: in table bundles %v, in seal_runs %v, in the ledger %d times",
			key, record.Part, t.bundles[record.SHA256], t.runs[record.SHA256], len(s.claims()[record.SHA256]))
	}
}

// claims returns the files that the ledger claims, by digest.
func (s *simulation) claims() map[string][]events.Claim {
	found := map[string][]events.Claim{}
	for i := range s.ledger.Stored {
		var claim events.Claim
		if err := json.Unmarshal(s.ledger.Stored[i].Data, &claim); err != nil {
			s.w.Wrong("the ledger: %v", err)
		}
		if !slices.Contains(found[claim.SHA256], claim) { // the book skips repeated events
			found[claim.SHA256] = append(found[claim.SHA256], claim)
		}
	}
	return found
}

// done reports whether every trace is in a bundle, and every event in the ledger.
func (s *simulation) done() bool {
	if !s.published || s.tables.chained < uint64(len(s.ledger.Stored)) {
		return false
	}
	for key, traces := range s.sessions {
		revisions := s.seals.Revisions(seal.Key(key.AgentID, key.SessionID))
		if len(revisions) == 0 {
			return false
		}
		last, err := seal.Decode(revisions[len(revisions)-1])
		if err != nil || last.State != seal.Sealed || slices.ContainsFunc(traces, func(t *simulatedTrace) bool { return t.row.Sequence > last.Cut }) {
			return false
		}
	}
	return true
}
