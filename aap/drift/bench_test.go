package drift

import (
	"runtime"
	"testing"
)

func BenchmarkStep(b *testing.B) {
	good, bad := course("g")[0], course("b")[0]
	b.Run("normal", func(b *testing.B) { benchmarkStep(b, good) })
	b.Run("low", func(b *testing.B) { benchmarkStep(b, bad) })
}

func benchmarkStep(b *testing.B, x Sample) {
	p := DefaultParams()
	var s State
	for _, first := range course("ggggggggggbbb") {
		s.Step(first, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Step(x, p)
	}
}

func BenchmarkSampleOf(b *testing.B) {
	trace, facts := goodTrace(0), FactsOf(testCard)
	b.ReportAllocs()
	for b.Loop() {
		SampleOf(trace, facts)
	}
}

func BenchmarkMarshal(b *testing.B) {
	var s State
	for _, x := range course("ggggggggggbb") {
		s.Step(x, DefaultParams())
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Marshal(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStateMemory reports what an agent in a streak costs in memory.
func BenchmarkStateMemory(b *testing.B) {
	const agents = 20_000
	for b.Loop() {
		before := heap()
		states := make([]State, agents)
		for i := range states {
			for _, x := range course("ggggggggggbb") {
				states[i].Step(x, DefaultParams())
			}
		}
		b.ReportMetric(float64(heap()-before)/agents, "bytes/agent")
		runtime.KeepAlive(states)
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
