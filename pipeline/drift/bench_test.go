package drift

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// benchMessages returns the messages that a fleet publishes.
func benchMessages() (messages []stream.Message) {
	for line := range fleet.New(fleet.Config{Seed: 1, Traces: 5000, Start: noon}).Lines() {
		messages = append(messages, message(0, line.Agent, noon, line.Raw))
	}
	return messages
}

// BenchmarkReduce measures the conversion of a message to an entry.
func BenchmarkReduce(b *testing.B) {
	messages, r := benchMessages(), newReducer(noCards{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := r.reduce(b.Context(), messages[i%len(messages)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFold measures all processing of a trace outside broker and database, at 50,000 traces
// a second: reducing, ordering, the step, its point and, four times a second, the states.
func BenchmarkFold(b *testing.B) {
	const gap, commit = 20 * time.Microsecond, 12_500
	messages, bench := benchMessages(), newBench(Default(), noCards{}, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m := messages[i%len(messages)]
		m.Sequence, m.Received = uint64(i+1), noon.Add(time.Duration(i)*gap)
		e, err := bench.reducer.reduce(b.Context(), m)
		if err != nil {
			b.Fatal(err)
		}
		if !e.refused { // new entries each time: the lines repeat
			e.order, e.future = m.Received.UnixNano(), false
			copy(e.id[:], binary.LittleEndian.AppendUint64(nil, m.Sequence))
		}
		bench.fold.receive(e)
		if i%commit == commit-1 {
			bench.take()
		}
	}
}

// BenchmarkSeriesMemory reports the memory that a resting series takes, and the size of its state in
// the database: of agents that still learn their baseline, and of agents that are compared with it.
func BenchmarkSeriesMemory(b *testing.B) {
	b.Run("learning", func(b *testing.B) { benchmarkSeriesMemory(b, 150) })
	b.Run("compared", func(b *testing.B) { benchmarkSeriesMemory(b, 250) })
}

func benchmarkSeriesMemory(b *testing.B, traces int) {
	const agents = 2000
	behaviours := benchBehaviours(b, traces)
	cfg := Default()
	cfg.WaitingTraces = 1
	for b.Loop() {
		before, bench := heapInUse(), newBench(cfg, noCards{}, nil)
		stored := 0
		for n := range agents {
			bench.walk(behaviours[n%len(behaviours)], n)
			bench.fold.idle(time.Minute)
			for _, row := range bench.take().states {
				stored += len(row.State)
			}
			bench.fold.stored()
		}
		b.ReportMetric(float64(heapInUse()-before)/agents, "bytes/series")
		b.ReportMetric(float64(stored)/agents, "stored-bytes/series")
		if len(bench.fold.series) != agents || bench.fold.queue.waiting != 0 {
			b.Fatalf("%d series, %d traces wait", len(bench.fold.series), bench.fold.queue.waiting)
		}
		runtime.KeepAlive(bench)
	}
}

// benchBehaviours returns the traces of a fleet's agents that have this many.
func benchBehaviours(b *testing.B, traces int) (behaviours [][]*schema.Trace) {
	of := map[string][]*schema.Trace{}
	for line := range fleet.New(fleet.Config{Seed: 1, Agents: 20, Traces: 6000, Start: noon}).Lines() {
		if trace, err := schema.Admit(line.Agent, line.Raw); err == nil && len(of[line.Agent]) < traces {
			of[line.Agent] = append(of[line.Agent], trace)
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(of)) {
		if list := of[agent]; len(list) == traces {
			behaviours = append(behaviours, list)
		}
	}
	if len(behaviours) == 0 {
		b.Fatalf("no agent has %d traces", traces)
	}
	return behaviours
}

// walk applies traces as those of the n-th agent.
func (b *bench) walk(behaviour []*schema.Trace, n int) {
	for i, behaved := range behaviour {
		trace := *behaved
		trace.AgentID = fmt.Sprintf("did:web:agents.example:fleet:agent-%06d", n)
		trace.TraceID = fmt.Sprintf("tr-%06d-%016d", n, i)
		sequence := b.fold.position + 1
		e := &entry{message: place{Sequence: sequence, Received: noon}, bytes: len(trace.Raw), order: noon.UnixNano() + int64(i)}
		e.sample = aapdrift.SampleOf(&trace, aapdrift.CardFacts{CardID: fmt.Sprintf("ac-%06d-%08x", n, n)})
		e.id, e.act = fingerprintOf(e.sample.TraceID), b.reducer.acts.Of(&trace)
		b.fold.receive(e)
	}
}

// BenchmarkColdFold measures what BenchmarkFold does for series that rest in memory: each trace is of
// another of 20,000 agents, and its state is decoded and encoded for it alone.
func BenchmarkColdFold(b *testing.B) {
	const agents, commit = 20_000, 1000
	behaviour, cfg := benchBehaviours(b, 250)[0], Default()
	cfg.WaitingTraces = 1
	for _, phase := range []struct {
		name   string
		traces int
	}{{"learning", 150}, {"compared", 249}} {
		b.Run(phase.name, func(b *testing.B) {
			one := newBench(cfg, noCards{}, nil)
			one.walk(behaviour[:phase.traces], 0)
			one.fold.idle(time.Minute)
			row := one.take().states[0]
			bench := newBench(cfg, noCards{}, nil)
			rows := make([]store.DriftState, agents)
			for n := range rows {
				rows[n] = row
				rows[n].AgentID, rows[n].Applied = fmt.Sprintf("did:web:agents.example:fleet:agent-%06d", n), 0
			}
			for part := range slices.Chunk(rows, commit) {
				if err := bench.fold.resume(part); err != nil {
					b.Fatal(err)
				}
				bench.take()
			}
			trace := *behaviour[phase.traces]
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e := &entry{message: place{Sequence: uint64(i + 1), Received: noon}, order: row.LastEvent.UnixNano() + int64(i)}
				trace.AgentID, trace.TraceID = rows[i%agents].AgentID, strconv.Itoa(i)
				e.sample = aapdrift.SampleOf(&trace, aapdrift.CardFacts{CardID: row.CardID})
				e.id, e.act = fingerprintOf(trace.TraceID), bench.reducer.acts.Of(&trace)
				bench.fold.receive(e)
				if i%commit == commit-1 {
					bench.take()
					bench.fold.stored()
				}
			}
		})
	}
}

// BenchmarkWaitingMemory reports the memory for a waiting trace.
func BenchmarkWaitingMemory(b *testing.B) {
	messages, cfg := benchMessages(), Default()
	cfg.WaitingBytes = math.MaxInt
	for b.Loop() {
		before, bench := heapInUse(), newBench(cfg, noCards{}, nil)
		for i := range mostWaiting {
			m := messages[i%len(messages)]
			m.Sequence, m.Data = uint64(i+1), bytes.Clone(m.Data)
			e, err := bench.reducer.reduce(b.Context(), m)
			if err != nil {
				b.Fatal(err)
			}
			e.order += int64(i)
			copy(e.id[:], binary.LittleEndian.AppendUint64(nil, m.Sequence))
			bench.fold.receive(e)
		}
		b.ReportMetric(float64(heapInUse()-before)/float64(bench.fold.queue.waiting), "bytes/trace")
		runtime.KeepAlive(bench)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
