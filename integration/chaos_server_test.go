package integration_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
)

// serverScenarios are faults of connections, and of servers that answer late or
// refuse.
func serverScenarios() []scenario {
	return []scenario{
		resetScenario("reset-insert", 300_000, func(p *proxy) place { return place{throughEngine: p.through} }),
		resetScenario("reset-broker", 300_000, func(p *proxy) place { return place{throughNATS: p.through} }),
		{name: "too-many-parts", strike: (*site).tooManyParts},
		{name: "slow-fsync", needs: needsStrace, strike: (*site).slowFsync},
	}
}

// resets is how many connections a scenario resets.
const resets = 40

// resetScenario resets connections of all services to one server in the middle of the
// data: of an insert's rows, of its answer, of a message. Before each reset, up to most bytes pass.
func resetScenario(name string, most int, at func(*proxy) place) scenario {
	var p *proxy
	return scenario{
		name: name, traces: 8000,
		site: func(t testing.TB) *site {
			p = newProxy(t)
			return newSiteAt(t, at(p))
		},
		strike: func(s *site, random *rand.Rand) {
			for done := p.done(); done < resets; done = p.done() {
				p.cutAfter(1 + random.IntN(most))
				pipelinetest.Await(s.t, "the next connection to be cut", func() bool { return p.done() > done })
			}
		},
	}
}

// tooManyParts makes one table after the other refuse every insert into a month that has
// a part, with ClickHouse's own error for merges that do not keep up.
func (s *site) tooManyParts(random *rand.Rand) {
	s.t.Helper()
	tables := []string{"traces", "verdicts", "drift_points", "drift_alerts", "loop_alerts", "drift_state", "bundles", "session_verdicts", "ledger", "dead_letters"}
	random.Shuffle(len(tables), func(i, j int) { tables[i], tables[j] = tables[j], tables[i] })
	for some := range slices.Chunk(tables, 3) {
		for _, table := range some {
			s.exec("ALTER TABLE " + table + " MODIFY SETTING parts_to_throw_insert = 1, parts_to_delay_insert = 1")
		}
		pause(random, 6*time.Second)
		for _, table := range some {
			s.exec("ALTER TABLE " + table + " RESET SETTING parts_to_throw_insert, parts_to_delay_insert")
		}
	}
	refused := s.query("SELECT sum(value) FROM system.errors WHERE name = 'TOO_MANY_PARTS'")[0][0]
	if refused == uint64(0) {
		s.t.Error("no insert was refused")
	}
	s.t.Logf("%d inserts were refused", refused)
}

func needsStrace() string {
	if _, err := exec.LookPath("strace"); err != nil {
		return "strace is not installed (apt-get install strace)"
	}
	return ""
}

// slowFsync makes every sync of engine and broker take 300 ms longer for at least 10 seconds, and
// until further traces are rows. An insert syncs about twenty files, one after the other, so the
// traces must share inserts.
func (s *site) slowFsync(random *rand.Rand) {
	s.t.Helper()
	const delay = 300 * time.Millisecond
	before := s.counts().Traces
	engine := s.delayed(s.engine.Pid(), "fsync,fdatasync", delay)
	broker := s.delayed(s.broker.Pid(), "fsync,fdatasync,pwrite64", delay) // it opens its files with O_SYNC
	pause(random, 10*time.Second)
	time.Sleep(10 * time.Second)
	s.await("further rows while syncs are slow", func(c store.Counts) bool { return c.Traces >= before+chunk })
	engine()
	broker()
}

// delayed delays system calls of a process until the returned function is called.
func (s *site) delayed(pid int, calls string, delay time.Duration) (end func()) {
	s.t.Helper()
	tracer := exec.Command("strace", "-f", "-p", fmt.Sprint(pid), "-o", "/dev/null", "-e", "trace="+calls,
		"-e", fmt.Sprintf("inject=%s:delay_enter=%d", calls, delay.Microseconds()))
	bind(tracer)
	output, err := tracer.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() || !strings.Contains(lines.Text(), "attached") {
		s.t.Fatalf("strace does not trace process %d: %q", pid, lines.Text())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() { // a full pipe would block strace
		}
	}()
	return func() {
		s.check(tracer.Process.Signal(syscall.SIGTERM))
		<-ended
		_ = tracer.Wait() // its status only says that it was terminated
	}
}
