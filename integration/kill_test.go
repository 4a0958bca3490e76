package integration_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/integration/checker"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// kills is how often each process is killed: see make chaos.
var kills = flag.Int("kills", 1, "how often TestFleetSurvivesKills kills each process")

// chunk is how many lines go into a request.
const chunk = 100

// fault is a SIGKILL during the work.
type fault struct {
	what     string
	kill     func() error
	underWay func(store.Counts) bool // reports whether the victim has begun its work
}

// faults returns faults that kill each process once. The test restarts services as a supervisor
// would; broker and engine restart by themselves.
func (s *site) faults() []fault {
	return []fault{
		{"broker", func() error { return kill(s.broker.Pid()) }, func(c store.Counts) bool { return c.Traces > 0 }},
		{"verifier", func() error { return s.verifier.restart() }, func(c store.Counts) bool { return c.Verdicts > 0 }},
		{"ingest", func() error { return s.ingest.restart() }, func(c store.Counts) bool { return c.Traces > 0 }},
		{"exporter", func() error { return s.exporter.restart() }, func(c store.Counts) bool { return c.Bundles > 0 }},
		{"engine", func() error { return kill(s.engine.Pid()) }, func(c store.Counts) bool { return c.Traces > 0 }},
		{"drift", func() error { return s.drift.restart() }, func(c store.Counts) bool { return c.DriftPoints > 0 }},
	}
}

// publishUnderFaults publishes lines in order. At regular distances it kills a process
// while a request is in flight and the traces before it are being processed. It first waits
// until the previous fault is overcome.
func (s *site) publishUnderFaults(lines [][]byte, faults []fault, published func(outcomes []outcome)) {
	s.t.Helper()
	every, accepted := len(lines)/(len(faults)+1), 0
	next := every
	for part := range slices.Chunk(lines, chunk) {
		var sent func()
		if len(faults) > 0 && accepted >= next {
			f := faults[0]
			faults, next = faults[1:], next+every
			s.await(f.what+" to be under way", func(c store.Counts) bool {
				return f.underWay(c) && int(c.Traces) > accepted-every/2
			})
			sent = func() {
				s.t.Logf("killing %s after %d lines", f.what, accepted)
				s.check(f.kill())
			}
		}
		published(s.publisher.publish(part, sent))
		accepted += len(part)
	}
	if len(faults) > 0 {
		s.t.Fatalf("%d faults were never made", len(faults))
	}
}

// awaitSealed waits until everything is stored and sealed.
func (s *site) awaitSealed(traces, bundles int) {
	s.t.Helper()
	s.await("all traces", func(c store.Counts) bool { return c.Traces >= uint64(traces) })
	s.await("all bundles", func(c store.Counts) bool { return c.Bundles >= uint64(bundles) })
}

// nth divides the corpus: 1 is the whole of it.
var nth = flag.Int("nth", 0, "TestCorpusSurvivesKills publishes every n-th recorded session: see make corpus")

// The recorded corpus goes through all stages while each process is killed once. TestFleetSurvivesKills has the
// same kills under a fleet, and in integration/queries recorded sessions go through all stages without kills.
func TestCorpusSurvivesKills(t *testing.T) {
	if *nth == 0 {
		t.Skip("it takes a minute: run make corpus; TestFleetSurvivesKills always runs")
	}
	t.Parallel()
	corpus := pipelinetest.ReadCorpus(t).Part(t, *nth)
	s := newSite(t)
	for _, card := range corpus.Cards {
		s.publisher.register(card)
	}
	lines := make([][]byte, len(corpus.Records))
	last := map[store.SessionKey]int{}
	keys := make([]store.SessionKey, len(lines))
	for i, r := range corpus.Records {
		trace, err := schema.Admit(r.Agent, r.Data)
		if err != nil {
			t.Fatal(err)
		}
		lines[i], keys[i] = r.Data, store.SessionKey{AgentID: r.Agent, SessionID: schema.SessionID(trace)}
		last[keys[i]] = i
	}
	line := 0
	s.publishUnderFaults(lines, s.faults(), func(outcomes []outcome) {
		for range outcomes {
			if last[keys[line]] == line {
				s.publisher.end(keys[line].AgentID, keys[line].SessionID)
			}
			line++
		}
	})
	s.awaitSealed(len(lines), len(last))
	seen := s.checkAtRest(s.publisher.acked)
	if n := len(lines); seen.Traces != n || seen.Sessions != len(last) || seen.Bundles != len(last) || seen.Sealed != n ||
		seen.DeadLetters != 0 || seen.Unjudged != 0 || seen.Late != 0 || seen.Points != n {
		t.Errorf("seen %+v, want %d traces in %d sessions", seen, n, len(last))
	}
	found, err := s.store.Violations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	corpus.CheckViolations(t, found)
	t.Logf("seen %+v", seen)
	s.terminate()
}

func TestFleetSurvivesKills(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	planned := fleet.New(fleet.Config{Seed: 2, Agents: 40, Traces: 3000 * *kills, Start: time.Now().UTC()})
	verifier, drift, exporter := s.secondOwner("verifier"), s.secondOwner("drift"), s.secondOwner("exporter")
	s.deliver(planned, slices.Repeat(append(s.faults(),
		fault{"one of two verifiers", func() error { return s.killOwner(s.verifier, verifier) }, func(c store.Counts) bool { return c.Verdicts > 0 }},
		fault{"one of two drifts", func() error { return s.killOwner(s.drift, drift) }, func(c store.Counts) bool { return c.DriftPoints > 0 }},
		fault{"one of two exporters", func() error { return s.killOwner(s.exporter, exporter) }, func(c store.Counts) bool { return c.Bundles > 0 }},
	), *kills))
	s.compare(planned)
	verifier.terminate()
	drift.terminate()
	exporter.terminate()
	s.terminate()
}

// prepare registers and revokes the cards of a fleet and returns its lines.
func (s *site) prepare(planned *fleet.Fleet) (lines [][]byte) {
	s.t.Helper()
	for _, card := range planned.Cards() {
		s.publisher.register(card.Raw)
	}
	for _, cardID := range planned.Planted().Revoked {
		s.publisher.revoke(cardID)
	}
	for line := range planned.Lines() {
		lines = append(lines, line.Raw)
	}
	return lines
}

// deliver publishes a fleet under faults and waits until everything is sealed.
func (s *site) deliver(planned *fleet.Fleet, faults []fault) {
	s.t.Helper()
	planted := planned.Planted()
	lines, refused := s.prepare(planned), 0
	s.publishUnderFaults(lines, faults, func(outcomes []outcome) {
		for _, o := range outcomes {
			if o.Status == "refused" {
				refused++
			}
		}
	})
	if refused != len(planted.Refused) {
		s.t.Errorf("%d lines were refused, %d are planted", refused, len(planted.Refused))
	}
	s.awaitSealed(planted.Stored, planted.Sessions)
}

// compare checks the invariants, and requires that what is found is what was planted.
func (s *site) compare(planned *fleet.Fleet) checker.Seen {
	t, planted := s.t, planned.Planted()
	t.Helper()
	seen := s.compareCounts(planned)
	found, err := s.store.Violations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	comparePlanted(t, found, planted.Violations)
	if found, err = s.store.Findings(t.Context()); err != nil {
		t.Fatal(err)
	}
	comparePlanted(t, found, planted.Findings)
	return seen
}

// compareCounts checks the invariants, and requires the counts of what was planted.
func (s *site) compareCounts(planned *fleet.Fleet) checker.Seen {
	s.t.Helper()
	seen, planted := s.checkAtRest(s.publisher.acked), planned.Planted()
	if seen.Traces != planted.Stored || seen.Sessions != planted.Sessions || seen.Sealed != planted.Stored ||
		seen.Alerts != len(planted.Drift) || seen.Points != planted.Stored || seen.DeadLetters != 0 || seen.Unjudged != 0 {
		s.t.Errorf("seen %+v, planted %d traces in %d sessions and %d drifts", seen, planted.Stored, planted.Sessions, len(planted.Drift))
	}
	return seen
}

// comparePlanted requires that what is found is what was planted, id for id.
func comparePlanted(t testing.TB, found, planted map[string][]string) {
	t.Helper()
	for kind, want := range planted {
		got := slices.Clone(found[kind])
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s is found on %v, planted on %v", kind, got, want)
		}
	}
	for kind := range found {
		if len(planted[kind]) == 0 {
			t.Errorf("%s is found on %v and not planted", kind, found[kind])
		}
	}
}
