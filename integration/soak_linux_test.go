package integration_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/integration/checker"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

var soakMinutes = flag.Float64("soak", 0, "minutes that TestSoak publishes for after it has found the maximum; 0 leaves it out")

// The load of TestSoak: a fixed set of agents, with sessions that begin and end.
const (
	soakAgents  = 200
	soakSession = 20               // traces per session
	soakRequest = 1000             // traces per request, while the maximum is measured
	soakShare   = 0.6              // of the maximum
	soakWarmUp  = 1. / 3           // of the time: then goroutines are counted, when idle
	soakSettle  = 1. / 6           // of the time: after that count, until memory is measured
	soakProbe   = time.Minute      // how long the maximum is measured
	soakTick    = time.Second / 10 // between requests at that share
	soakSample  = 5 * time.Second
	soakPerHour = 0.01 // permitted growth of memory
	soakBlocks  = 12   // from which the growth is calculated
	// The quantile of Student's t, with soakBlocks-2 degrees of freedom, below which all of eight
	// series, two for each service, stay in 97.5 % of runs: a site without growth fails once in
	// forty runs.
	soakStudent = 3.45
)

// TestSoak measures how many traces per second a whole site with the default batch ages can process
// until they are stored, measured for drift and sealed. It then publishes 60 % of that for a long time. In the
// second half, neither the resident memory of a service nor its heap may measurably grow by
// more than 1 % per hour. At the end, each service has as many goroutines when idle as after
// the first third.
func TestSoak(t *testing.T) {
	if *soakMinutes == 0 {
		t.Skip("takes half an hour: make soak")
	}
	s := newSiteAt(t, place{defaultBatches: true, settings: map[string][]string{"exporter": {"PLUMBLINE_IDLE=20s"}}})
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

	whole := *soakMinutes * float64(time.Minute)
	settled := l.steadily(rate, time.Duration(whole*soakWarmUp), nil)
	l.rest()
	before := s.goroutines()
	l.steadily(rate, time.Duration(whole*soakSettle), nil)
	series := &growth{bytes: map[string][]float64{}}
	unsealed := l.steadily(rate, time.Duration(whole*(1-soakWarmUp-soakSettle)), func() { series.sample(s) })
	if unsealed > 2*settled {
		t.Errorf("%d traces wait to be sealed, and %d did after the warm-up: sealing falls behind", unsealed, settled)
	}
	if err := series.enough(); err != nil {
		t.Fatal(err)
	}
	l.rest()
	after := s.goroutines()
	t.Logf("goroutines at rest: %v after the warm-up, %v at the end", before, after)
	for name := range after {
		if after[name] > before[name] {
			t.Errorf("%s has %d goroutines more than before", name, after[name]-before[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(series.bytes)) {
		mean, slope, sure := series.slope(name)
		t.Logf("%s: %.0f MB, %+.1f %% an hour ± %.1f; %.0f", name, mean/1e6, 100*slope, 100*sure, series.megabytes(name))
		process, _, _ := strings.Cut(name, " ")
		if ours := process != "broker" && process != "engine"; ours && slope-sure > soakPerHour {
			t.Errorf("%s grows", name)
		}
	}
	counts, err := l.counts()
	if err != nil {
		t.Fatal(err)
	}
	if sent := uint64(l.sent); counts.Traces != sent || counts.DriftPoints != sent || l.sealed() != sent || counts.DeadLetters != 0 {
		t.Errorf("%d traces were acknowledged: %+v, %d are sealed", sent, counts, l.sealed())
	}
}

func soakAgent(n int) string { return fmt.Sprintf("did:web:soak.example:%d", n) }
func soakCard(n int) string  { return fmt.Sprintf("ac-soak-%d", n) }

// soakLoad makes traces that differ from all earlier ones.
type soakLoad struct {
	site *site
	sent int
	slow time.Duration // the longest duration of a request
}

// publish publishes n traces. An agent's next session begins when the previous one is full.
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
	l.site.publisher.acked = l.site.publisher.acked[:0] // only counts are compared
}

// steadily publishes at a rate for a time. It calls sample, if not nil, at intervals. It returns
// how many traces are not sealed at the end.
func (l *soakLoad) steadily(rate float64, d time.Duration, sample func()) (unsealed uint64) {
	l.slow = 0
	began, from, sampled, before := time.Now(), l.sent, time.Now(), l.site.cpu()
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
	behind, err := l.site.client.Backlog(background, stream.Traces, stream.VerifierConsumer)
	for _, process := range slices.Sorted(maps.Keys(before)) {
		spent := l.site.cpu()[process] - before[process]
		l.site.t.Logf("%-8s %6.1f µs of CPU a trace", process, float64(spent.Microseconds())/float64(l.sent-from))
	}
	unsealed = uint64(l.sent) - l.sealed()
	l.site.t.Logf("%d traces in %s, %.0f a second; the slowest request took %s; behind: %d traces to store, %d to seal; %v",
		l.sent-from, d.Round(time.Second), float64(l.sent-from)/time.Since(began).Seconds(), l.slow.Round(time.Millisecond),
		behind, unsealed, err)
	return unsealed
}

// rest waits until everything is sealed and every consumer is idle: then everything is also
// stored and measured. Counting millions of rows repeatedly would be an additional load.
func (l *soakLoad) rest() {
	l.site.t.Helper()
	pipelinetest.AwaitWithin(l.site.t, 10*time.Minute, "all traces in bundles", func() bool { return l.sealed() >= uint64(l.sent) })
	checker.AwaitRest(l.site.t, l.site.client)
}

// sealed counts the traces in bundles; 0 if the database does not answer.
func (l *soakLoad) sealed() (n uint64) {
	result, err := l.site.store.Query(background, "SELECT sum(trace_count) FROM bundles")
	if err != nil {
		return 0
	}
	for row, err := range result.Rows {
		if err == nil {
			n, _ = row[0].(uint64)
		}
	}
	return n
}

// counts repeats the query while the database takes too long.
func (l *soakLoad) counts() (counts store.Counts, err error) {
	for range 10 {
		if counts, err = l.site.store.Counts(background); err == nil {
			return counts, nil
		}
	}
	return counts, err
}

// goroutines returns the number of goroutines of each service, the minimum within ten seconds:
// the number of idle connections varies.
func (s *site) goroutines() map[string]int {
	fewest := map[string]int{}
	for range 20 {
		for _, service := range s.services() {
			n := int(metric(s.t, service, "go_goroutines"))
			fewest[service.name] = min(n, cmp.Or(fewest[service.name], n))
		}
		time.Sleep(time.Second / 2)
	}
	return fewest
}

// metric returns the value of a metric without labels.
func metric(t testing.TB, s *service, name string) (value float64) {
	t.Helper()
	_, text, _ := strings.Cut(metricsOf(t, s), "\n"+name+" ")
	if _, err := fmt.Sscan(text, &value); err != nil {
		t.Fatalf("%s has no metric %s: %v", s.name, name, err)
	}
	return value
}

// growth is the memory of processes over time.
type growth struct {
	at    []float64            // hours
	bytes map[string][]float64 // resident; for services also the heap after its last collection
}

func (g *growth) sample(s *site) {
	g.at = append(g.at, float64(time.Now().UnixNano())/float64(time.Hour))
	for name, pid := range s.pids() {
		g.bytes[name+" resident"] = append(g.bytes[name+" resident"], resident(s.t, pid))
	}
	for _, service := range s.services() {
		// The next collection is due when the heap is twice as large as after the last one (GOGC).
		g.bytes[service.name+" heap"] = append(g.bytes[service.name+" heap"], metric(s.t, service, "go_memstats_next_gc_bytes")/2)
	}
}

// enough returns an error where no growth can be calculated: it would be no number, and pass.
func (g *growth) enough() error {
	if len(g.at) < soakBlocks {
		return fmt.Errorf("memory was sampled %d times, once each %s, and its growth needs %d: give flag -soak more minutes", len(g.at), soakSample, soakBlocks)
	}
	return nil
}

// megabytes returns the minimum of each block of a series.
func (g *growth) megabytes(name string) (minima []float64) {
	for _, block := range blocks(g.bytes[name]) {
		minima = append(minima, slices.Min(block)/1e6)
	}
	return minima
}

// slope returns the mean in bytes and, as shares of it, the growth an hour by least squares
// with the half of its interval. It uses the minimum of each of soakBlocks blocks: memory that is
// never freed raises the minimum, and work in progress does not.
func (g *growth) slope(name string) (mean, slope, sure float64) {
	var at, bytes [soakBlocks]float64
	for i, block := range blocks(g.at) {
		at[i] = (block[0] + block[len(block)-1]) / 2
	}
	for i, block := range blocks(g.bytes[name]) {
		bytes[i] = slices.Min(block)
	}
	var hours float64
	for i, y := range bytes {
		mean, hours = mean+y/soakBlocks, hours+at[i]/soakBlocks
	}
	var xx, xy, rest float64
	for i, y := range bytes {
		xx += (at[i] - hours) * (at[i] - hours)
		xy += (at[i] - hours) * (y - mean)
	}
	for i, y := range bytes {
		d := y - mean - xy/xx*(at[i]-hours)
		rest += d * d
	}
	return mean, xy / xx / mean, soakStudent * math.Sqrt(rest/(soakBlocks-2)/xx) / mean
}

// blocks divides a series into equal parts.
func blocks(series []float64) (parts [soakBlocks][]float64) {
	for i := range parts {
		parts[i] = series[i*len(series)/soakBlocks : (i+1)*len(series)/soakBlocks]
	}
	return parts
}

// pids returns the process ids of the site.
func (s *site) pids() map[string]int {
	all := map[string]int{"broker": s.broker.Pid(), "engine": s.engine.Pid()}
	for _, service := range s.services() {
		all[service.name] = service.cmd.Process.Pid
	}
	return all
}

// cpu returns the CPU time that each process of the site has used.
func (s *site) cpu() map[string]time.Duration {
	used := map[string]time.Duration{}
	for name, pid := range s.pids() {
		used[name] = cpuOf(s.t, pid)
	}
	return used
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

// Two samples a minute for an hour: a process that grows by a tenth is found to, and one
// whose memory only goes up and down is not. The first samples are too few to say.
func TestGrowthIsDistinguishedFromWaves(t *testing.T) {
	g := &growth{bytes: map[string][]float64{}}
	for i := range 120 {
		if err := g.enough(); (err == nil) != (i >= soakBlocks) {
			t.Errorf("after %d samples: %v", i, err)
		}
		hour, wave := float64(i)/120, 5*math.Sin(float64(i))
		g.at = append(g.at, hour)
		g.bytes["grows"] = append(g.bytes["grows"], 100+10*hour+wave)
		g.bytes["waves"] = append(g.bytes["waves"], 100+wave)
	}
	if mean, slope, sure := g.slope("grows"); math.Abs(mean-100) > 1 || slope-sure < soakPerHour || slope+sure < 10./100 {
		t.Errorf("mean %.1f, growth %.3f ± %.3f, want 100 and 0.1", mean, slope, sure)
	}
	if _, slope, sure := g.slope("waves"); slope-sure > soakPerHour || slope+sure < 0 {
		t.Errorf("growth %.3f ± %.3f of a process that does not grow", slope, sure)
	}
}
