package drift

import (
	"strings"
	"testing"
)

func BenchmarkStep(b *testing.B) {
	good, bad := series("g")[0], series("b")[0]
	b.Run("normal", func(b *testing.B) { benchmarkStep(b, good) })
	b.Run("low", func(b *testing.B) { benchmarkStep(b, bad) })
}

func benchmarkStep(b *testing.B, x Sample) {
	p := PublishedParams()
	var s State
	for _, first := range series("ggggggggggbbb") {
		s.Step(first, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Step(x, p)
	}
}

// BenchmarkSketchedStep measures the step of a trace whose text is sketched: one of the first
// baseline, or of a streak before its alert.
func BenchmarkSketchedStep(b *testing.B) {
	p := PublishedParams()
	x := series("b")[0]
	x.Reasoning = strings.Repeat("The user prefers the cheaper of two fares. ", 7)[:300]
	var s letter
	for _, first := range series("ggggggggggb") {
		first.Reasoning = x.Reasoning
		s.step(first, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Streak, s.Low = 0, s.Low[:0]
		s.step(x, p)
	}
}

// BenchmarkRollingStep measures the step in mode rolling, including the gathering of its
// baselines.
func BenchmarkRollingStep(b *testing.B) {
	p, x := PublishedParams(), series("g")[0]
	p.Mode = ModeRolling
	var s State
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
	for _, x := range series("ggggggggggbb") {
		s.Step(x, PublishedParams())
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Marshal(); err != nil {
			b.Fatal(err)
		}
	}
}
