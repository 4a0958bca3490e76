package drift

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// benchMessages are what a fleet publishes.
func benchMessages() (messages []stream.Message) {
	for line := range fleet.New(fleet.Config{Seed: 1, Traces: 5000, Start: noon}).Lines() {
		messages = append(messages, message(0, line.Agent, noon, line.Raw))
	}
	return messages
}

// BenchmarkReduce is the way from a message to what waits of it.
func BenchmarkReduce(b *testing.B) {
	messages, r := benchMessages(), newReducer(noCards{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := r.reduce(b.Context(), messages[i%len(messages)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFold is all that happens to a trace outside broker and database, at
// 50,000 traces a second: reducing, ordering, the step, its point and, four
// times a second, the states.
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
		if !e.refused { // made anew: the lines repeat
			e.order, e.future = m.Received.UnixNano(), false
			binary.BigEndian.PutUint64(e.id[:], m.Sequence)
		}
		bench.fold.receive(e)
		if i%commit == commit-1 {
			bench.take()
		}
	}
}

// BenchmarkWaitingMemory reports what a trace costs in memory while it waits.
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
			binary.BigEndian.PutUint64(e.id[:], m.Sequence)
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
