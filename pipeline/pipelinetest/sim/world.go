package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
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

// event is one line of the history.
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

// calm reports whether the time of faults is over.
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
