package sim

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/bubble"
)

// World is what survives the processes of a simulation: the broker's streams, the test's tables,
// the plan of faults, and the history.
type World struct {
	seed   uint64
	chance int           // of a fault, in thousandths of the operations
	kills  int           // probability that a fault kills a process, in thousandths
	stormy time.Duration // how long faults happen
	began  time.Time

	// The operations of all processes are applied one after another, under mu. So they may use
	// the test's own tables safely.
	mu      sync.Mutex
	counts  map[string]uint64 // how often random numbers were requested, by name
	history []*event
	streams map[string]*Stream
	lives   int
	wrong   []string
	others  sync.WaitGroup // work in addition to the processes

	networked bool // the broker's client library was used
}

type event struct {
	at        time.Duration
	life      int // 0: not of a process
	operation string
	fault     fault
	answer    string // empty if there is none yet
}

// newWorld returns a world whose time begins now.
func newWorld(seed uint64) *World {
	w := &World{seed: seed, began: time.Now(), counts: map[string]uint64{}, streams: map[string]*Stream{}}
	dice := w.Dice("world")
	w.chance = dice.IntN(200)
	w.kills = dice.IntN(30)
	w.stormy = time.Duration(5+dice.IntN(40)) * time.Second
	return w
}

// Dice returns a source of random numbers for a name. Each call with the same name returns a
// different source.
func (w *World) Dice(name string) *rand.Rand {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice(name)
}

func (w *World) dice(name string) *rand.Rand {
	w.counts[name]++
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	return rand.New(rand.NewPCG(w.seed+w.counts[name]<<32, sum.Sum64())) // a simulation is to be repeated
}

// Within calls do while no operation is applied.
func (w *World) Within(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// Stormy returns how long faults happen.
func (w *World) Stormy() time.Duration { return w.stormy }

func (w *World) calm() bool { return time.Since(w.began) > w.stormy }

// Wrong records, at the current place of the history, that an invariant does not hold. It may be
// called within an operation.
func (w *World) Wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.wrong = append(w.wrong, text)
	w.note(0, "WRONG: "+text, "")
}

// Go runs work in addition to the processes. The simulation waits for it.
func (w *World) Go(work func()) { w.others.Go(work) }

// Check calls check at the end of the simulation, unless an invariant has already failed. No
// operation is applied meanwhile.
func (w *World) Check(check func()) {
	if !w.Failed() {
		w.Within(check)
	}
}

// Failed reports whether an invariant did not hold.
func (w *World) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wrong) > 0
}

// note adds a line to the history. The caller holds w.mu.
func (w *World) note(life int, operation string, f fault) *event {
	e := &event{at: time.Since(w.began), life: life, operation: operation, fault: f}
	w.history = append(w.history, e)
	return e
}

// History returns what happened, with a numbered line for each operation.
func (w *World) History() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d: faults for %s, %d of 1,000 operations fail, %d kill\n", w.seed, w.stormy, w.chance, w.kills)
	for i, e := range w.history {
		fmt.Fprintf(&text, "%5d %10.6f ", i+1, e.at.Seconds())
		if e.life > 0 {
			fmt.Fprintf(&text, "life %d: ", e.life)
		}
		text.WriteString(e.operation)
		if e.fault != none {
			text.WriteString(" [" + string(e.fault) + "]")
		}
		if e.answer != "" {
			text.WriteString(" → " + e.answer)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

var (
	oneSeed = flag.Uint64("seed", 0, "the one seed to simulate, with its history; 0 for -seeds of them")
	seeds   = flag.Int("seeds", 0, "how many seeds to simulate; 0 for a quick selection")
)

// mostFailures limits the failing seeds of a test: each prints its history.
const mostFailures = 3

// Run simulates seed after seed, usual of them unless the command line says otherwise, each in
// its own bubble (testing/synctest). They do not run in parallel, because a seed must behave the
// same when it runs alone.
func Run(t *testing.T, usual int, simulate func(t *testing.T, w *World)) {
	first, last := uint64(1), uint64(usual)
	switch {
	case *oneSeed > 0:
		first, last = *oneSeed, *oneSeed
	case *seeds > 0:
		last = uint64(*seeds)
	}
	for seed, failures := first, 0; seed <= last && failures < mostFailures; seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { one(t, seed, simulate) }) {
			failures++
		}
	}
}

// today is the time at which simulations begin.
var today = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func one(t *testing.T, seed uint64, simulate func(t *testing.T, w *World)) {
	var w *World
	defer func() {
		if w.networked {
			emptyPools()
		}
	}()
	bubble.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(today)) // a bubble begins in the year 2000
		w = newWorld(seed)
		simulate(t, w)
		w.report(t)
		w.others.Wait()
	})
}

// emptyPools drops the timers that the broker's client library keeps in a sync.Pool. Timers that
// were created in a bubble must not be used outside it.
func emptyPools() {
	runtime.GC()
	runtime.GC() // the first one spares some
}

// report fails the test if an invariant did not hold, with the history and the command that
// repeats it.
func (w *World) report(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	wrong := w.wrong
	w.mu.Unlock()
	if len(wrong) == 0 && !t.Failed() {
		if *oneSeed > 0 {
			t.Logf("history:\n%s", w.History())
		}
		return
	}
	for _, text := range wrong {
		t.Error(text)
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	t.Errorf("history:\n%srepeat with: go test -run '^%s$' -seed %d, in this directory", w.History(), name, w.seed)
}
