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

// BenchmarkSessionsStep measures the step in mode sessions: of a series that learns, and of one that is
// compared with its baseline.
func BenchmarkSessionsStep(b *testing.B) {
	samples, p := changing(400, 0, nil, nil), DefaultParams()
	b.Run("learning", func(b *testing.B) {
		b.ReportAllocs()
		var s State
		for i := 0; b.Loop(); i++ {
			if i%100 == 0 {
				s = State{}
			}
			p := p
			p.Sessions = maxSessions
			s.Step(samples[i%100], p)
		}
	})
	b.Run("compared", func(b *testing.B) {
		var s State
		for _, x := range samples {
			s.Step(x, p)
		}
		if s.expected == nil {
			b.Fatal("the series has no baseline")
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s.Step(samples[i%len(samples)], p)
		}
	})
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

// BenchmarkMarshal measures the encoding of a state of the published rule, and of states in mode
// sessions; BenchmarkUnmarshal the decoding.
func BenchmarkMarshal(b *testing.B) {
	for _, state := range benchStates() {
		b.Run(state.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := state.Marshal(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	for _, state := range benchStates() {
		b.Run(state.name, func(b *testing.B) {
			data, err := state.Marshal()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := UnmarshalState(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type benchState struct {
	name string
	*State
}

func benchStates() []benchState {
	states := []benchState{{"published", new(State)}, {"learning", new(State)}, {"compared", new(State)}}
	for _, x := range series("ggggggggggbb") {
		states[0].Step(x, PublishedParams())
	}
	p := DefaultParams()
	p.Sessions = maxSessions
	for _, x := range changing(150, 0, nil, nil) {
		states[1].Step(x, p)
	}
	for _, x := range changing(400, 0, nil, nil) {
		states[2].Step(x, DefaultParams())
	}
	return states
}

// BenchmarkLearningState measures how a state that learns its baseline is written and read.
func BenchmarkLearningState(b *testing.B) {
	var s State
	for _, x := range changing(190, 200, nil, nil) {
		if s.Step(x, DefaultParams()); s.learning != nil && len(s.learning.traces) == 95 {
			break
		}
	}
	data, err := s.Marshal()
	if err != nil || s.learning == nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.ReportMetric(float64(len(data)), "bytes")
		for b.Loop() {
			if data, err = s.Append(data[:0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := UnmarshalState(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
