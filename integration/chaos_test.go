package integration_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/integration/checker"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// These flags are explained at make chaos.
var (
	chaos        = flag.Bool("chaos", false, "run TestChaos")
	chaosSeed    = flag.Uint64("seed", 0, "first seed of TestChaos; 0: a random one")
	chaosMinutes = flag.Float64("minutes", 0, "TestChaos repeats its scenarios with further seeds for this many minutes; each runs once at least")
	chaosTable   = flag.String("table", "", "file that TestChaos appends its table to")
)

// scenario is one fault, and the site on which it is made while a fleet publishes.
type scenario struct {
	name string

	// needs returns why the fault cannot be made on this machine, or "". nil: it always can be made.
	needs func() string
	// site starts the site. nil: newSite.
	site func(testing.TB) *site
	// agents and traces are the size of the fleet; 0: 40 and 3000.
	agents, traces int
	// publish sends lines until each has an answer. nil: once over HTTP. It runs concurrently
	// with strike.
	publish func(s *site, lines [][]byte) []outcome
	// strike makes the fault and undoes it, in the goroutine of the test. It begins when a
	// random part of the fleet's traces is stored. Until it returns, the fleet publishes
	// slowly, so the fault affects traces at every moment.
	strike func(s *site, r *rand.Rand)
	// then checks what only this fault requires, when the site has no work left. nil: nothing.
	then func(s *site)
	// instead replaces the whole scenario and sets its row.
	instead func(t *testing.T, r *result)
	// control marks a negative control: a mechanism of the guarantees is disabled, and
	// something that was acknowledged must be lost.
	control bool
	// reorders marks a fault that lets traces of one agent overtake each other. A trace that is
	// too late for drift is stored but not used, so planted alerts may change or be missing.
	reorders bool
}

// scenarios returns all scenarios, in the order in which they run.
func scenarios() []scenario {
	return slices.Concat(
		processScenarios(),
		stopScenarios(),
		nodeScenarios(),
		serverScenarios(),
		messageScenarios(),
		connectionScenarios(),
		diskScenarios(),
	)
}

// expectation is what a site must contain when it has no work left. A strike that publishes
// adds to it.
type expectation struct {
	traces, sessions, points, alerts, letters int
}

// TestChaos tests sites with every fault. After each fault the site must finish its work
// without help, with nothing lost and nothing doubled.
func TestChaos(t *testing.T) {
	if !*chaos {
		t.Skip("every scenario takes up to some minutes: run make chaos; TestFleetSurvivesKills is the selection that always runs")
	}
	seed := *chaosSeed
	for seed == 0 {
		seed = uint64(rand.Uint32())
	}
	end := time.Now().Add(time.Duration(*chaosMinutes * float64(time.Minute)))
	rows := []string{tableHead}
	for round := uint64(0); ; round++ {
		before := len(rows)
		for _, c := range scenarios() {
			if round > 0 && time.Now().After(end) {
				break
			}
			t.Run(c.name, func(t *testing.T) {
				if c.needs != nil && c.needs() != "" {
					t.Skip(c.needs())
				}
				t.Logf("seed %d: make chaos SEED=%d FAULTS='^%s$' repeats it", seed+round, seed+round, c.name)
				r := &result{scenario: &c, seed: seed + round}
				defer func() { rows = append(rows, r.record(t)) }()
				c.run(t, r)
			})
		}
		if len(rows) == before || time.Now().After(end) {
			break // no scenario has the requested name, or the time is over
		}
	}
	t.Logf("\n%s", strings.Join(rows, "\n"))
}

// run makes the fault once and checks the invariants.
func (c *scenario) run(t *testing.T, result *result) {
	if c.instead != nil {
		c.instead(t, result)
		return
	}
	start := newSite
	if c.site != nil {
		start = c.site
	}
	s, random := start(t), rand.New(rand.NewPCG(result.seed, 0))
	planned := s.plan(c, result.seed)
	s.strikeWhilePublishing(c, planned, random)
	rested := s.rest(c)
	result.seconds = time.Since(rested).Seconds()

	walker := &recorder{TB: t}
	result.seen = checker.Check(walker, s.site(), s.publisher.acked)
	result.acknowledged = distinct(s.publisher.acked)
	switch complaints := walker.text.String(); {
	case c.control && result.seen.Lost == 0:
		t.Errorf("nothing is lost although the mechanism is switched off: the check proves nothing")
	case !c.control && complaints != "":
		t.Error(complaints)
	}
	if c.reorders {
		s.expected.alerts = result.seen.Alerts
	}
	if !c.control {
		s.compareExpected(result.seen)
	}
	if c.then != nil {
		c.then(s)
	}
}

// plan registers a fleet's cards and sets what must result from its lines.
func (s *site) plan(c *scenario, seed uint64) *fleet.Fleet {
	s.t.Helper()
	planned := fleet.New(fleet.Config{
		Seed: seed, Agents: cmp.Or(c.agents, 40), Traces: cmp.Or(c.traces, 3000), Start: time.Now().UTC(),
	})
	planted := planned.Planted()
	s.lines = s.prepare(planned)
	s.expected = expectation{traces: planted.Stored, sessions: planted.Sessions, points: planted.Stored, alerts: len(planted.Drift)}
	return planned
}

// strikeWhilePublishing returns when the fault is undone and every line has its answer.
func (s *site) strikeWhilePublishing(c *scenario, planned *fleet.Fleet, random *rand.Rand) {
	s.t.Helper()
	undone, over := context.WithCancel(background)
	published := make(chan int, 1)
	defer func() { // in this order, also if the strike ends the test
		over()
		if refused := <-published; refused != len(planned.Planted().Refused) && !s.t.Failed() {
			s.t.Errorf("%d lines were refused, %d are planted", refused, len(planned.Planted().Refused))
		}
	}()
	go s.publishFleet(undone, c, published)
	begun := uint64(s.expected.traces) * uint64(10+random.IntN(30)) / 100
	s.await("the fleet's first traces", func(c store.Counts) bool { return c.Traces >= begun && c.DriftPoints > 0 })
	s.t.Logf("striking: %+v", s.counts())
	c.strike(s, random)
	s.t.Logf("the fault is undone: %+v", s.counts())
}

// pace is the interval at which the fleet sends a request of paced lines during a fault.
const (
	pace  = 100 * time.Millisecond
	paced = 10
)

// publishFleet publishes the fleet's lines: the first 40 per cent as fast as it can, the
// others slowly until the fault is undone, then fast again. It sends the number of refused lines.
func (s *site) publishFleet(undone context.Context, c *scenario, published chan<- int) {
	refused := 0
	defer func() { published <- refused }() // also if publish ends the goroutine
	publish := c.publish
	if publish == nil {
		publish = func(s *site, lines [][]byte) []outcome { return s.publisher.publish(lines, nil) }
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for sent := 0; sent < len(s.lines) && !s.t.Failed(); {
		n := chunk
		if sent > len(s.lines)*4/10 && undone.Err() == nil {
			n = paced
			select {
			case <-tick.C:
			case <-undone.Done():
			}
		}
		part := s.lines[sent:min(sent+n, len(s.lines))]
		for _, o := range publish(s, part) {
			if o.Status == "refused" {
				refused++
			}
		}
		sent += len(part)
	}
}

// rest waits until everything is stored and sealed and every consumer is idle. It returns
// the time when it began to wait.
func (s *site) rest(c *scenario) time.Time {
	s.t.Helper()
	if s.t.Failed() {
		s.t.FailNow()
	}
	began := time.Now()
	s.awaitUp()
	if c.control { // lost data never arrives, and the service that misses it may end
		s.supervised(func() { checker.AwaitAcked(s.t, s.client) })
		return began
	}
	s.awaitWithin(10*time.Minute, "all traces, points and bundles", func(c store.Counts) bool {
		return c.Traces >= uint64(s.expected.traces) && c.DriftPoints >= uint64(s.expected.points) && s.sealed() >= uint64(s.expected.traces)
	})
	checker.AwaitRest(s.t, s.client)
	return began
}

// sealed counts the traces in bundles; zero while the database is unavailable.
func (s *site) sealed() (n uint64) {
	bundles, err := s.store.Bundles(background, "", "")
	if err != nil {
		return 0
	}
	for i := range bundles {
		n += bundles[i].TraceCount
	}
	return n
}

// compareExpected requires exactly what the fleet and the strike have published.
func (s *site) compareExpected(seen checker.Seen) {
	s.t.Helper()
	got := expectation{traces: seen.Traces, sessions: seen.Sessions, points: seen.Points, alerts: seen.Alerts, letters: seen.DeadLetters}
	if got != s.expected || seen.Sealed != s.expected.traces || seen.Unjudged != 0 {
		s.t.Errorf("seen %+v, expected %+v, each trace sealed", seen, s.expected)
	}
}

// guest is an agent outside the fleet, with a publisher of its own and traces of one session.
type guest struct {
	publisher
	agent string
	lines [][]byte
}

// guest registers the card of a guest with so many traces.
func (s *site) guest(agent string, traces int) *guest {
	s.t.Helper()
	g := &guest{publisher: publisher{t: s.t, url: s.publisher.url}, agent: agent}
	g.register(pipelinetest.Card("ac-"+agent, agent))
	began := time.Now().UTC().Add(-time.Duration(traces) * time.Millisecond)
	for i := range traces {
		at := began.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339Nano)
		g.lines = append(g.lines, pipelinetest.Trace(fmt.Sprintf("tr-%s-%d", agent, i), agent, "ac-"+agent, "s-"+agent, at, "search").Data)
	}
	return g
}

// deliverGuest publishes a guest's traces and ends its session.
func (s *site) deliverGuest(g *guest) {
	s.t.Helper()
	g.publish(g.lines, nil)
	g.end(g.agent, "s-"+g.agent)
	s.publisher.acknowledged(g.acked...)
	s.expected.traces += len(g.lines)
	s.expected.points += len(g.lines)
	s.expected.sessions++
}

// result is a row of the table of results.
type result struct {
	*scenario
	seed         uint64
	acknowledged int
	seen         checker.Seen
	seconds      float64
}

const tableHead = "| fault | seed | acknowledged | rows | dead letters | points | alerts | bundles | lost | doubled | seconds to lag zero |\n" +
	"|---|---|---|---|---|---|---|---|---|---|---|"

// record returns the row and appends it to the file of flag -table.
func (r *result) record(t testing.TB) string {
	row := fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %.1f |", r.name, r.seed, r.acknowledged, r.seen.Traces,
		r.seen.DeadLetters, r.seen.Points, r.seen.Alerts, r.seen.Bundles, r.seen.Lost, r.seen.Doubled, r.seconds)
	if t.Failed() && r.acknowledged == 0 {
		row = fmt.Sprintf("| %s | %d | did not come to rest |", r.name, r.seed)
	}
	t.Log(row)
	if *chaosTable == "" {
		return row
	}
	file, err := os.OpenFile(*chaosTable, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return row
	}
	defer file.Close()
	if _, err := fmt.Fprintln(file, row); err != nil {
		t.Error(err)
	}
	return row
}

func distinct(digests []schema.Digest) int {
	seen := map[schema.Digest]bool{}
	for _, digest := range digests {
		seen[digest] = true
	}
	return len(seen)
}

// pause waits for a random time up to most, so the next fault begins at a random moment.
func pause(random *rand.Rand, most time.Duration) {
	time.Sleep(time.Duration(random.Int64N(int64(most))))
}

// awaitUp waits until every service and the engine work again. It restarts a service that has
// ended, as any supervisor does.
func (s *site) awaitUp() {
	s.t.Helper()
	defer func() {
		for _, service := range s.services() {
			if s.t.Failed() {
				s.t.Logf("%s: %s", service.name, service.readiness())
			}
		}
	}()
	for _, service := range s.services() {
		pipelinetest.Await(s.t, service.name+" to be ready again", func() bool {
			s.startIfEnded(service)
			return service.ready()
		})
	}
	s.await("the engine to answer", func(c store.Counts) bool { return c.Traces > 0 })
}

// startIfEnded restarts a service that has ended.
func (s *site) startIfEnded(service *service) {
	if service.ended() {
		s.t.Logf("%s has ended (%s) and is restarted", service.name, service.cmd.ProcessState)
		s.check(service.start())
	}
}

// supervised calls wait, and meanwhile restarts services that end.
func (s *site) supervised(wait func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			for _, service := range s.services() {
				s.startIfEnded(service)
			}
		}
	}()
	defer func() { close(over); <-ended }()
	wait()
}
