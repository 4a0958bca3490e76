package integration_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
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

var (
	soakMinutes = flag.Float64("soak", 0, "minutes that TestSoak publishes for after it has found the maximum; 0 leaves it out")
	soakRate    = flag.Float64("rate", 0, "traces a second that TestSoak publishes; 0 is 60 % of the maximum")
)

// The load of TestSoak: a fixed set of agents, with sessions that begin and end.
const (
	soakAgents  = 200
	soakSession = 20               // traces per session
	soakRequest = 1000             // traces per request, while the maximum is measured
	soakShare   = 0.6              // of the maximum
	soakProbe   = time.Minute      // how long the maximum is measured
	soakTick    = time.Second / 10 // between requests at that share
	soakIdle    = 20 * time.Second // after which a session is sealed
	soakParts   = 3                // of the time; the first is the warm-up
	soakLooks   = 10               // at what waits to be sealed, in the second half of a part
	soakLag     = 0.03             // permitted growth of what waits, of each trace that is published
	soakPerHour = 0.01             // permitted growth of memory in every part
	// Memory at rest varies by so much without any growth. A leak of one byte per trace is more than
	// that after half a million traces.
	soakResolution = 1 << 19
)

// TestSoak measures how many traces per second a whole site with the default batch ages can process
// until they are stored, measured for drift and sealed. It then publishes 60 % of that for a long
// time, in parts. Sealing must keep up within each part. After each part everything is sealed, and the
// site is at rest. From the first rest on, neither the goroutines of a service nor its resident memory nor its heap may grow in every
// part, memory by more than 1 % per hour. Memory is compared at rest because under load the work
// in progress changes it by tens of percent within seconds. Growth in every part is what a
// leak does, while a part with the largest batch so far leaves more memory once.
func TestSoak(t *testing.T) {
	if *soakMinutes == 0 {
		t.Skip("takes more than half an hour: make soak")
	}
	s := newSiteAt(t, place{defaultBatches: true, settings: map[string][]string{"exporter": {"PLUMBLINE_SEAL_IDLE=" + soakIdle.String()}}})
	l := &soakLoad{site: s}
	for agent := range soakAgents {
		s.publisher.register(pipelinetest.Card(soakCard(agent), soakAgent(agent)))
	}
	began := time.Now()
	for time.Since(began) < soakProbe {
		l.publish(soakRequest)
	}
	l.rest()
	carried := time.Since(began) - soakIdle // of the last session
	maximum := float64(l.sent) / carried.Seconds()
	rate := cmp.Or(*soakRate, soakShare*maximum)
	t.Logf("%d traces were stored, measured and sealed in %s: %.0f a second; publishing %.0f a second", l.sent, carried.Round(time.Second), maximum, rate)

	part := time.Duration(*soakMinutes * float64(time.Minute) / soakParts)
	settled := l.keepsUp(rate, part)
	l.rest()
	traces, rests := l.sent, []idle{s.atRest()}
	for range soakParts - 1 {
		if unsealed := l.keepsUp(rate, part); unsealed > 2*settled {
			t.Errorf("%d traces wait to be sealed, and %d did after the warm-up: sealing is slower", unsealed, settled)
		}
		l.rest()
		rests = append(rests, s.atRest())
	}
	s.compareRests(rests, l.sent-traces)
	counts, err := l.counts()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := l.sealed()
	if sent := uint64(l.sent); counts.Traces != sent || counts.DriftPoints != sent || sealed != sent || counts.DeadLetters != 0 {
		t.Errorf("%d traces were acknowledged: %+v, %d are sealed, error %v", sent, counts, sealed, err)
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

// keepsUp publishes a part and requires that sealing keeps up in its second half. It returns how many
// traces wait at the end. In the first half, what waits grows until the first sessions were idle for long
// enough. Each part begins at rest, so the parts alone do not differ if each of them falls behind.
func (l *soakLoad) keepsUp(rate float64, part time.Duration) uint64 {
	l.site.t.Helper()
	looks := l.steadily(rate, part)
	last := looks[len(looks)-1]
	if part < 4*soakIdle {
		l.site.t.Logf("parts of %s are too short to tell whether sealing keeps up: at least %s are needed", part, 4*soakIdle)
		return last.unsealed
	}
	grew := growth(looks)
	l.site.t.Logf("of each trace published in the second half, %+.4f more wait to be sealed", grew)
	if grew > soakLag {
		l.site.t.Errorf("sealing falls behind: what waits to be sealed grew by %.1f %% of what was published; %.1f %% are permitted: %+v", 100*grew, 100*soakLag, looks)
	}
	return last.unsealed
}

// look is one look at what waits to be sealed.
type look struct {
	sent     int // traces published in all
	unsealed uint64
}

// steadily publishes at a rate for a time. In its second half it looks at regular intervals at what waits
// to be sealed; the last look is at the end.
func (l *soakLoad) steadily(rate float64, d time.Duration) (looks []look) {
	l.slow = 0
	began, from, before := time.Now(), l.sent, l.site.cpu()
	tick := time.NewTicker(soakTick)
	defer tick.Stop()
	ask := func() {
		if sealed, err := l.sealed(); err != nil {
			l.site.t.Logf("ask what is sealed: %v", err)
		} else {
			looks = append(looks, look{l.sent, uint64(l.sent) - sealed})
		}
	}
	for next := d / 2; time.Since(began) < d; {
		<-tick.C
		due := int(rate * time.Since(began).Seconds())
		if n := from + due - l.sent; n > 0 {
			l.publish(min(n, soakRequest))
		}
		if time.Since(began) >= next {
			ask()
			next += d / 2 / soakLooks
		}
	}
	ask()
	if len(looks) < soakLooks/2 {
		l.site.t.Fatalf("the database told only %d of %d times what is sealed", len(looks), soakLooks+1)
	}
	behind, err := l.site.client.Backlog(background, stream.Traces, stream.VerifierConsumer)
	for _, process := range slices.Sorted(maps.Keys(before)) {
		spent := l.site.cpu()[process] - before[process]
		l.site.t.Logf("%-8s %6.1f µs of CPU a trace", process, float64(spent.Microseconds())/float64(l.sent-from))
	}
	l.site.t.Logf("%d traces in %s, %.0f a second; the slowest request took %s; behind: %d traces to store, %d to seal; %v",
		l.sent-from, d.Round(time.Second), float64(l.sent-from)/time.Since(began).Seconds(), l.slow.Round(time.Millisecond),
		behind, looks[len(looks)-1].unsealed, err)
	return looks
}

// growth returns by how many traces what waits grows with each trace that is published: the slope of the
// line through the looks (least squares). Sealing is uneven: sessions end together, and a merge delays it
// for seconds. A line through ten looks tells a lasting lag from that; the difference of two does not.
func growth(looks []look) float64 {
	var sent, unsealed float64 // the means
	for _, l := range looks {
		sent += float64(l.sent) / float64(len(looks))
		unsealed += float64(l.unsealed) / float64(len(looks))
	}
	var together, square float64
	for _, l := range looks {
		d := float64(l.sent) - sent
		together += d * (float64(l.unsealed) - unsealed)
		square += d * d
	}
	return together / square
}

// rest waits until everything is sealed and every consumer is idle: then everything is also
// stored and measured. Counting millions of rows repeatedly would be an additional load.
func (l *soakLoad) rest() {
	l.site.t.Helper()
	pipelinetest.AwaitWithin(l.site.t, 10*time.Minute, "all traces in bundles", func() bool {
		sealed, err := l.sealed()
		return err == nil && sealed >= uint64(l.sent)
	})
	checker.AwaitAcked(l.site.t, l.site.client)
}

// sealed counts the traces in bundles.
func (l *soakLoad) sealed() (n uint64, err error) {
	result, err := l.site.store.Query(background, "SELECT sum(trace_count) FROM bundles")
	if err != nil {
		return 0, err
	}
	for row, err := range result.Rows {
		if err != nil {
			return 0, err
		}
		n = row[0].(uint64)
	}
	return n, nil
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

// idle is what the services use when they have nothing to do.
type idle struct {
	at         time.Time
	goroutines map[string]float64
	memory     map[string]float64 // bytes: resident; of services also the heap, and resident without freed heap
}

// atRest waits until each service has collected its garbage twice: what a collection leaves in
// pools is freed by the next one. An idle service does so every two minutes. atRest returns the
// minimum of each figure within the next half minute: the number of idle connections
// varies, and so does the memory of a query.
func (s *site) atRest() idle {
	s.t.Helper()
	for _, service := range s.services() {
		collections := metric(s.t, service, "go_gc_duration_seconds_count")
		pipelinetest.AwaitWithin(s.t, 6*time.Minute, "two collections of "+service.name, func() bool {
			return metric(s.t, service, "go_gc_duration_seconds_count") >= collections+2
		})
	}
	r := idle{at: time.Now(), goroutines: map[string]float64{}, memory: map[string]float64{}}
	least := func(of map[string]float64, name string, value float64) {
		of[name] = min(value, cmp.Or(of[name], value))
	}
	for range 60 {
		for _, service := range s.services() {
			least(r.goroutines, service.name, metric(s.t, service, "go_goroutines"))
			// The next collection is due when the heap is twice as large as after the last one (GOGC).
			least(r.memory, service.name+" heap", metric(s.t, service, "go_memstats_next_gc_bytes")/2)
			// The runtime keeps pages of freed heap for reuse and returns them to the system slowly.
			freed := metric(s.t, service, "go_memstats_heap_idle_bytes") - metric(s.t, service, "go_memstats_heap_released_bytes")
			least(r.memory, service.name+" resident without freed heap", resident(s.t, service.cmd.Process.Pid)-freed)
		}
		for name, pid := range s.pids() {
			least(r.memory, name+" resident", resident(s.t, pid))
		}
		time.Sleep(time.Second / 2)
	}
	return r
}

// compareRests requires that no service uses more at each rest than at the one before. Resident
// memory as a whole is only shown: that of a service includes freed heap, and broker and engine hold
// more data with each part.
func (s *site) compareRests(rests []idle, traces int) {
	s.t.Helper()
	first, last := rests[0], rests[len(rests)-1]
	for _, name := range slices.Sorted(maps.Keys(last.goroutines)) {
		var counts []float64
		for _, rest := range rests {
			counts = append(counts, rest.goroutines[name])
		}
		s.t.Logf("%s goroutines at the rests: %v", name, counts)
		if leaks(counts) {
			s.t.Errorf("%s has more goroutines at each rest", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(last.memory)) {
		var at []time.Time
		var bytes []float64
		shown := ""
		for _, rest := range rests {
			at, bytes = append(at, rest.at), append(bytes, rest.memory[name])
			shown += fmt.Sprintf(" %.2f", rest.memory[name]/1e6)
		}
		s.t.Logf("%s at the rests:%s MB, %+.3f bytes a trace", name, shown, (last.memory[name]-first.memory[name])/float64(traces))
		if !strings.HasSuffix(name, " resident") && grows(at, bytes) {
			s.t.Errorf("%s grows", name)
		}
	}
}

// leaks reports whether there were more goroutines at each rest than at the one before, and at the
// last more than the number varies: the metric includes two to five that gather the
// metrics.
func leaks(goroutines []float64) bool {
	for i := range len(goroutines) - 1 {
		if goroutines[i+1] <= goroutines[i] {
			return false
		}
	}
	return goroutines[len(goroutines)-1]-goroutines[0] > 2
}

// grows reports whether memory grew from each rest to the next by more than is permitted, and
// by more than it varies.
func grows(at []time.Time, bytes []float64) bool {
	for i := range len(bytes) - 1 {
		hours := at[i+1].Sub(at[i]).Hours()
		if bytes[i+1]-bytes[i] <= max(soakResolution, soakPerHour*bytes[0]*hours) {
			return false
		}
	}
	return true
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

// A service that leaks one byte of each of six million traces grows; one whose memory varies by
// half a megabyte does not, nor one that grows by half a percent an hour, nor one that grew once.
func TestGrowthIsDistinguishedFromNoise(t *testing.T) {
	now := time.Now()
	rests := []time.Time{now, now.Add(10 * time.Minute), now.Add(20 * time.Minute)}
	for name, c := range map[string]struct {
		bytes []float64
		want  bool
	}{
		"a byte a trace":         {[]float64{50e6, 53e6, 56e6}, true},
		"unevenly":               {[]float64{50e6, 51e6, 56e6}, true},
		"noise":                  {[]float64{10e6, 10.5e6, 11e6}, false},
		"half a percent an hour": {[]float64{1e9, 1.0008e9, 1.0016e9}, false},
		"three percent an hour":  {[]float64{1e9, 1.005e9, 1.010e9}, true},
		"once, then noise":       {[]float64{50e6, 55e6, 55.1e6}, false},
		"once, then less":        {[]float64{50e6, 55e6, 54e6}, false},
		"less than at first":     {[]float64{50e6, 45e6, 44e6}, false},
		"no more than noise":     {[]float64{10e6, 10e6 + soakResolution, 10e6 + 2*soakResolution}, false},
	} {
		if got := grows(rests, c.bytes); got != c.want {
			t.Errorf("%s: grows is %v", name, got)
		}
	}
}

func TestLeaksAreDistinguishedFromGathering(t *testing.T) {
	for name, c := range map[string]struct {
		goroutines []float64
		want       bool
	}{
		"one every three minutes":    {[]float64{43, 46, 49}, true},
		"unevenly":                   {[]float64{43, 44, 50}, true},
		"those that gather":          {[]float64{43, 44, 45}, false},
		"once, with the first burst": {[]float64{43, 60, 60}, false},
		"constant":                   {[]float64{43, 43, 43}, false},
	} {
		if got := leaks(c.goroutines); got != c.want {
			t.Errorf("%s: leaks is %v", name, got)
		}
	}
}

// The figures of a part of ten minutes with 4,000 traces a second: a look each 30 seconds.
func TestFallingBehindIsDistinguishedFromWaiting(t *testing.T) {
	const published = 120_000
	for name, c := range map[string]struct {
		unsealed []uint64 // of thousands
		want     bool
	}{
		"those of the last 20 seconds":     {[]uint64{80, 80, 80, 80, 80, 80, 80, 80, 80, 80}, false},
		"sessions that end together":       {[]uint64{84, 81, 83, 80, 82, 84, 81, 83, 80, 84}, false},
		"uneven":                           {[]uint64{81, 92, 84, 109, 79, 88, 102, 81, 90, 98}, false},
		"a slow merge at the end":          {[]uint64{80, 80, 80, 80, 80, 80, 80, 80, 80, 125}, false},
		"a slow merge, then as before":     {[]uint64{80, 80, 150, 120, 90, 80, 80, 80, 80, 80}, false},
		"behind, then catches up":          {[]uint64{400, 360, 320, 280, 240, 200, 160, 120, 80, 80}, false},
		"seals one of a hundred less":      {[]uint64{92, 93, 94, 95, 97, 98, 99, 100, 101, 103}, false},
		"seals one of twenty less":         {[]uint64{140, 146, 152, 158, 164, 170, 176, 182, 188, 194}, true},
		"seals one of twenty less, uneven": {[]uint64{141, 158, 147, 187, 158, 178, 198, 180, 198, 212}, true},
		"seals half":                       {[]uint64{680, 740, 800, 860, 920, 980, 1040, 1100, 1160, 1220}, true},
		"seals nothing":                    {[]uint64{1200, 1320, 1440, 1560, 1680, 1800, 1920, 2040, 2160, 2280}, true},
	} {
		var looks []look
		for i, n := range c.unsealed {
			looks = append(looks, look{sent: 5_000_000 + i*published, unsealed: n * 1000})
		}
		if grew := growth(looks); (grew > soakLag) != c.want {
			t.Errorf("%s: what waits grows by %.4f a trace", name, grew)
		}
	}
}
