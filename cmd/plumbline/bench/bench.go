package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/plumbline/plumbline/machine"
)

// Config configures the measurements.
type Config struct {
	Traces  int            // published in each measurement
	Rounds  int            // measurements of each kind
	Machine machine.Config // the benchmark sets DataDir, Listen and Stages itself
}

// Figures are traces per second, medians of the rounds. A ratio is the median of
// the rounds' ratios to their floor.
type Figures struct {
	Traces int     `json:"traces"`
	Rounds int     `json:"rounds"`
	Bytes  float64 `json:"bytes_per_trace"`

	Floor    float64 `json:"floor_traces_per_s"`
	Verifier float64 `json:"verifier_traces_per_s"`
	All      float64 `json:"all_traces_per_s"`
	Sealed   float64 `json:"sealed_traces_per_s"`  // all stages, until every bundle is signed and on disk
	Measured float64 `json:"watched_traces_per_s"` // all stages, until drift detection has applied every trace

	VerifierRatio float64 `json:"verifier_ratio"`
	AllRatio      float64 `json:"all_ratio"`
	SealedRatio   float64 `json:"sealed_ratio"`
}

// round is one measurement of each kind.
type round struct{ floor, verifier, all took }

// Run measures. main must have called child.Dispatch first.
func Run(ctx context.Context, cfg Config) (*Figures, error) {
	progress := cfg.Machine.Progress
	cfg.Machine.Progress = nil // three machines in each round would report too much
	progress(fmt.Sprintf("making %d traces", cfg.Traces))
	l := newLoad(cfg.Traces, time.Now())
	rounds := make([]round, cfg.Rounds)
	for i := range rounds {
		r := &rounds[i]
		for _, m := range []struct {
			name    string
			measure func(context.Context, machine.Config, *load) (took, error)
			into    *took
		}{{"floor", measureFloor, &r.floor}, {"verifier alone", measureVerifier, &r.verifier}, {"all stages", measureAll, &r.all}} {
			t, err := m.measure(ctx, cfg.Machine, l)
			if err != nil {
				return nil, fmt.Errorf("round %d, %s: %w", i+1, m.name, err)
			}
			*m.into = t
			progress(fmt.Sprintf("round %d of %d, %s: %.0f traces/s", i+1, cfg.Rounds, m.name, l.rate(t.queryable)))
		}
	}
	return l.figures(rounds), nil
}

// rate returns traces per second.
func (l *load) rate(d time.Duration) float64 { return float64(len(l.records)) / d.Seconds() }

func (l *load) figures(rounds []round) *Figures {
	rate := func(of func(*round) time.Duration) float64 {
		return median(rounds, func(r *round) float64 { return l.rate(of(r)) })
	}
	ratio := func(of func(*round) time.Duration) float64 {
		return median(rounds, func(r *round) float64 { return r.floor.queryable.Seconds() / of(r).Seconds() })
	}
	floor := func(r *round) time.Duration { return r.floor.queryable }
	verifier := func(r *round) time.Duration { return r.verifier.queryable }
	all := func(r *round) time.Duration { return r.all.queryable }
	sealed := func(r *round) time.Duration { return r.all.sealed }
	measured := func(r *round) time.Duration { return r.all.measured }
	return &Figures{
		Traces: len(l.records), Rounds: len(rounds), Bytes: float64(l.bytes) / float64(len(l.records)),
		Floor: rate(floor), Verifier: rate(verifier), All: rate(all), Sealed: rate(sealed), Measured: rate(measured),
		VerifierRatio: ratio(verifier), AllRatio: ratio(all), SealedRatio: ratio(sealed),
	}
}

// median returns the middle value, or the mean of the two middle values.
func median(rounds []round, value func(*round) float64) float64 {
	values := make([]float64, len(rounds))
	for i := range rounds {
		values[i] = value(&rounds[i])
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// WriteText writes the figures for people.
func (f *Figures) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d traces of %.0f bytes, publish to queryable, medians of %d rounds\n\n", f.Traces, f.Bytes, f.Rounds)
	fmt.Fprintf(t, "\ttraces/s\tof the floor\n")
	fmt.Fprintf(t, "floor: sequence and bytes, no judgement\t%.0f\t1.00\n", f.Floor)
	fmt.Fprintf(t, "verifier alone\t%.0f\t%.2f\n", f.Verifier, f.VerifierRatio)
	fmt.Fprintf(t, "all stages, over HTTP\t%.0f\t%.2f\n", f.All, f.AllRatio)
	fmt.Fprintf(t, "  until every session is sealed\t%.0f\t%.2f\n", f.Sealed, f.SealedRatio)
	fmt.Fprintf(t, "  until drift is measured for every trace\t%.0f\twaits some seconds for late traces\n", f.Measured)
	return t.Flush()
}
