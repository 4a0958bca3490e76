package integration_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
)

var soakMinutes = flag.Float64("soak", 0, "minutes that TestSoak publishes for after it has found the maximum; 0 leaves it out")

// The load of TestSoak: agents that never change, and sessions that come and go.
const (
	soakAgents  = 200
	soakSession = 20   // traces of a session
	soakRequest = 1000 // traces of a request, while the maximum is found
	soakShare   = 0.6  // of the maximum
	soakWarmUp  = 1. / 3
	soakProbe   = time.Minute      // how long the maximum is looked for
	soakTick    = time.Second / 10 // between requests at the share
	soakSample  = 5 * time.Second
	soakPerHour = 0.01 // growth of resident memory that is allowed
)

// TestSoak finds how many traces a second a whole site carries until they are stored,
// measured for drift and sealed. It then publishes 60 % of that for a long time. After the
// first third, the resident memory of no service may grow by more than 1 % an hour, and
// each has as many goroutines at rest as before.
func TestSoak(t *testing.T) {
	if *soakMinutes == 0 {
		t.Skip("takes half an hour: make soak")
	}
	s := newSiteAt(t, place{settings: map[string][]string{"exporter": {"PLUMBLINE_IDLE=20s"}}})
	l := &soakLoad{site: s}
	for agent := range soakAgents {
		s.publisher.register(pipelinetest.Card(soakCard(agent), soakAgent(agent)))
	}
	began := time.Now()
	for time.Since(began) < soakProbe {
		l.publish(soakRequest)
	}
	l.rest()
	carried := time.Since(began) - 20*time.Second // the last session was idle for so long
	rate := soakShare * float64(l.sent) / carried.Seconds()
	t.Logf("%d traces were stored, measured and sealed in %s: %.0f a second; 60 %% are %.0f a second", l.sent, carried.Round(time.Second), rate/soakShare, rate)

	whole := time.Duration(*soakMinutes * float64(time.Minute))
	warmUp := time.Duration(float64(whole) * soakWarmUp)
	l.steadily(rate, warmUp, nil)
	l.rest()
	before := s.goroutines()
	series := &growth{}
	l.steadily(rate, whole-warmUp, func() { series.sample(s) })
	l.rest()
	after := s.goroutines()
	t.Logf("goroutines at rest: %v after the warm-up, %v at the end", before, after)
	for name := range after {
		if after[name] > before[name] {
			t.Errorf("%s has %d goroutines more than before", name, after[name]-before[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(series.resident)) {
		mean, slope, sure := series.slope(name)
		t.Logf("%s: %.0f MB resident, %+.2f %% an hour ± %.2f", name, mean/1e6, 100*slope, 100*sure)
		if ours := name != "broker" && name != "engine"; ours && slope-sure > soakPerHour {
			t.Errorf("%s grows", name)
		}
	}
	counts := s.counts()
	if sent := uint64(l.sent); counts.Traces != sent || counts.DriftPoints != sent || s.sealed() != sent || counts.DeadLetters != 0 {
		t.Errorf("%d traces were acknowledged: %+v, %d are sealed", sent, counts, s.sealed())
	}
}

func soakAgent(n int) string { return fmt.Sprintf("did:web:soak.example:%d", n) }
func soakCard(n int) string  { return fmt.Sprintf("ac-soak-%d", n) }

// soakLoad makes traces that differ from all before.
type soakLoad struct {
	site *site
	sent int
	slow time.Duration // the longest that a request took
}

// publish publishes n traces. Each agent's next session begins when its last is full.
func (l *soakLoad) publish(n int) {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	lines := make([][]byte, n)
	for i := range lines {
		agent, round := l.sent%soakAgents, l.sent/soakAgents
		session := fmt.Sprintf("s-%d-%d", agent, round/soakSession)
		lines[i] = pipelinetest.Trace(fmt.Sprintf("tr-%d", l.sent), soakAgent(agent), soakCard(agent), session, now, "search").Data
		l.sent++
	}
	began := time.Now()
	for i, outcome := range l.site.publisher.publish(lines, nil) {
		if outcome.Status != "accepted" {
			l.site.t.Fatalf("%s: %+v", lines[i], outcome)
		}
	}
	l.slow = max(l.slow, time.Since(began))
	l.site.publisher.acked = l.site.publisher.acked[:0] // counts are compared
}

// steadily publishes at a rate for a while. It calls sample, where given, at intervals.
func (l *soakLoad) steadily(rate float64, d time.Duration, sample func()) {
	l.slow = 0
	began, from, sampled := time.Now(), l.sent, time.Now()
	tick := time.NewTicker(soakTick)
	defer tick.Stop()
	for time.Since(began) < d {
		<-tick.C
		due := int(rate * time.Since(began).Seconds())
		if n := from + due - l.sent; n > 0 {
			l.publish(min(n, soakRequest))
		}
		if sample != nil && time.Since(sampled) > soakSample {
			sampled = time.Now()
			sample()
		}
	}
	counts := l.site.counts()
	l.site.t.Logf("%d traces in %s, %.0f a second; the slowest request took %s; behind: %d traces to store, %d to measure",
		l.sent-from, d.Round(time.Second), float64(l.sent-from)/time.Since(began).Seconds(), l.slow.Round(time.Millisecond),
		uint64(l.sent)-counts.Traces, uint64(l.sent)-counts.DriftPoints)
}

// rest waits until everything is stored, measured and sealed.
func (l *soakLoad) rest() {
	l.site.t.Helper()
	l.site.awaitWithin(10*time.Minute, "all traces, points and bundles", func(c store.Counts) bool {
		return c.Traces >= uint64(l.sent) && c.DriftPoints >= uint64(l.sent) && l.site.sealed() >= uint64(l.sent)
	})
}

// goroutines are those of each service, the fewest that it has within ten seconds: idle
// connections come and go.
func (s *site) goroutines() map[string]int {
	fewest := map[string]int{}
	for range 20 {
		for _, service := range s.services() {
			_, value, _ := strings.Cut(metricsOf(s.t, service), "\ngo_goroutines ")
			var n int
			if _, err := fmt.Sscan(value, &n); err != nil {
				s.t.Fatalf("%s tells no goroutines: %v", service.name, err)
			}
			fewest[service.name] = min(n, orDefault(fewest[service.name], n))
		}
		time.Sleep(time.Second / 2)
	}
	return fewest
}

// growth is the resident memory of processes over time.
type growth struct {
	at       []float64 // hours
	resident map[string][]float64
}

func (g *growth) sample(s *site) {
	if g.resident == nil {
		g.resident = map[string][]float64{}
	}
	g.at = append(g.at, float64(time.Now().UnixNano())/float64(time.Hour))
	for name, pid := range s.pids() {
		g.resident[name] = append(g.resident[name], resident(s.t, pid))
	}
}

// slope returns the mean of a process in bytes and, as shares of it, the growth an hour by
// least squares, with twice its standard error.
func (g *growth) slope(name string) (mean, slope, sure float64) {
	n := float64(len(g.at))
	var hours float64
	for i, y := range g.resident[name] {
		mean, hours = mean+y/n, hours+g.at[i]/n
	}
	var xx, xy, rest float64
	for i, y := range g.resident[name] {
		xx += (g.at[i] - hours) * (g.at[i] - hours)
		xy += (g.at[i] - hours) * (y - mean)
	}
	for i, y := range g.resident[name] {
		d := y - mean - xy/xx*(g.at[i]-hours)
		rest += d * d
	}
	return mean, xy / xx / mean, 2 * math.Sqrt(rest/(n-2)/xx) / mean
}

// pids are the processes of the site.
func (s *site) pids() map[string]int {
	all := map[string]int{"broker": s.broker.Pid(), "engine": s.engine.Pid()}
	for _, service := range s.services() {
		all[service.name] = service.cmd.Process.Pid
	}
	return all
}

// resident returns the resident memory of a process in bytes (proc(5), statm).
func resident(t testing.TB, pid int) float64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return float64(pages * os.Getpagesize())
}
