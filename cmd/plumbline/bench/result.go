package bench

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// Result is the result of a scenario: the medians of its rounds, but for memory, of which it is the
// highest. A member that the scenario does not measure is null, or missing if it is not one of the first ten.
type Result struct {
	Scenario  string   `json:"scenario"`
	Traces    int      `json:"traces"`     // in each round
	Rate      float64  `json:"rate"`       // traces a second; docs/bench/README.md says until when
	FloorRate float64  `json:"floor_rate"` // likewise, of the floor in the same run; 0: it was left out
	Ratio     float64  `json:"ratio"`      // of both, in the same round
	CPU       figures  `json:"cpu_us"`     // of each process, µs a trace
	RSS       figures  `json:"rss_mib"`    // of each process, highest resident memory
	P50       *float64 `json:"p50_ms"`     // from when a post is due until its answer; of Rows, of the questions
	P99       *float64 `json:"p99_ms"`
	Held      bool     `json:"held"` // the given rate of Steady, a second for each question of Rows; otherwise true

	P999      *float64  `json:"p999_ms,omitempty"`
	Queryable figures   `json:"queryable_ms,omitempty"` // from when a trace is due until it is queryable
	Seconds   figures   `json:"seconds,omitempty"`      // from the start of the clock until what the name says
	Rates     figures   `json:"rates,omitempty"`        // traces a second until what the name says
	Ratios    figures   `json:"ratios,omitempty"`       // of these rates and the floor's
	Lag       figures   `json:"lag_s,omitempty"`        // from the last due time until what the name says
	CPUSum    float64   `json:"cpu_us_sum"`
	FloorCPU  figures   `json:"floor_cpu_us,omitempty"`
	FloorSum  float64   `json:"floor_cpu_us_sum,omitempty"`
	Written   figures   `json:"written_bytes"` // to disk by each process, a trace; 0 for a file system in memory
	Stored    figures   `json:"stored_bytes"`  // size of the files when the clock stops, a trace
	Bytes     float64   `json:"trace_bytes"`
	Asked     figures   `json:"asked_ms,omitempty"`  // middle time of each question of Rows
	Row       figures   `json:"row_bytes,omitempty"` // size on disk of a row of each table, of Rows
	Other     figures   `json:"other,omitempty"`     // of this scenario alone
	Options   Config    `json:"options"`
	Rounds    []figures `json:"rounds"`             // rate, floor_rate and ratio of each round
	Warnings  []string  `json:"warnings,omitempty"` // what the processes logged
}

// figures are numbers by name.
type figures map[string]float64

func (f figures) sum() (sum float64) {
	for _, v := range f {
		sum += v
	}
	return sum
}

// measured is one measurement.
type measured struct {
	load      *load
	took      time.Duration            // the time of the rate
	until     map[string]time.Duration // from the start of the clock
	lag       map[string]time.Duration // from the last due time
	answered  []time.Duration          // of each trace, from when its post was due
	queryable []time.Duration          // of each trace
	used      map[string]usage
	stored    map[string]int64
	asked     figures // see Result
	row       figures
	other     figures
	warnings  []string
	late      bool // the given rate was not held
}

// result returns the measurement beside that of the floor, nil if there is none.
func (m *measured) result(scenario string, floor *measured) *Result {
	n := float64(len(m.load.records))
	rate := func(d time.Duration) float64 { return n / d.Seconds() }
	r := &Result{
		Scenario: scenario, Traces: len(m.load.records), Rate: rate(m.took), Held: !m.late, Bytes: float64(m.load.bytes) / n, Warnings: m.warnings, Asked: m.asked, Row: m.row, Other: m.other,
		CPU: m.cpu(), RSS: figures{}, Written: figures{}, Stored: figures{}, Seconds: figures{}, Rates: figures{}, Ratios: figures{}, Lag: figures{},
	}
	r.CPUSum = r.CPU.sum()
	for name, u := range m.used {
		r.RSS[name], r.Written[name] = float64(u.peak)/(1<<20), float64(u.written)/n
	}
	for name, size := range m.stored {
		r.Stored[name] = float64(size) / n
	}
	if floor != nil {
		r.FloorRate = float64(len(floor.load.records)) / floor.took.Seconds()
		r.Ratio, r.FloorCPU = r.Rate/r.FloorRate, floor.cpu()
		r.FloorSum = r.FloorCPU.sum()
	}
	for name, d := range m.until {
		r.Seconds[name], r.Rates[name] = d.Seconds(), rate(d)
		if floor != nil {
			r.Ratios[name] = rate(d) / r.FloorRate
		}
	}
	for name, d := range m.lag {
		r.Lag[name] = d.Seconds()
	}
	if m.answered != nil {
		r.P50, r.P99, r.P999 = quantile(m.answered, 0.5), quantile(m.answered, 0.99), quantile(m.answered, 0.999)
	}
	if m.queryable != nil {
		r.Queryable = figures{"p50": *quantile(m.queryable, 0.5), "p99": *quantile(m.queryable, 0.99), "p999": *quantile(m.queryable, 0.999)}
	}
	r.Rounds = []figures{{"rate": r.Rate, "floor_rate": r.FloorRate, "ratio": r.Ratio}}
	return r
}

// cpu returns the CPU time of each process in µs a trace.
func (m *measured) cpu() figures {
	f := figures{}
	for name, u := range m.used {
		f[name] = float64(u.cpu.Microseconds()) / float64(len(m.load.records))
	}
	return f
}

// quantile sorts durations, of which there is at least one, and returns a quantile in milliseconds: the
// smallest duration that the share q of all does not exceed.
func quantile(all []time.Duration, q float64) *float64 {
	slices.Sort(all)
	at := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
	v := at.Seconds() * 1000
	return &v
}

// combine returns the medians of the rounds.
func combine(rounds []*Result) *Result {
	r := *rounds[0]
	number := func(of func(*Result) float64) float64 {
		var values []float64
		for _, round := range rounds {
			values = append(values, of(round))
		}
		return median(values)
	}
	pointer := func(of func(*Result) *float64) *float64 {
		if of(&r) == nil {
			return nil
		}
		v := number(func(r *Result) float64 { return *of(r) })
		return &v
	}
	byName := func(of func(*Result) figures) figures {
		all := figures{}
		for name := range of(&r) {
			all[name] = number(func(r *Result) float64 { return of(r)[name] })
		}
		return all
	}
	r.Rate, r.FloorRate = number(func(r *Result) float64 { return r.Rate }), number(func(r *Result) float64 { return r.FloorRate })
	r.Ratio = number(func(r *Result) float64 { return r.Ratio })
	r.CPUSum, r.FloorSum = number(func(r *Result) float64 { return r.CPUSum }), number(func(r *Result) float64 { return r.FloorSum })
	r.P50, r.P99 = pointer(func(r *Result) *float64 { return r.P50 }), pointer(func(r *Result) *float64 { return r.P99 })
	r.P999 = pointer(func(r *Result) *float64 { return r.P999 })
	r.CPU, r.FloorCPU = byName(func(r *Result) figures { return r.CPU }), byName(func(r *Result) figures { return r.FloorCPU })
	r.Seconds, r.Lag = byName(func(r *Result) figures { return r.Seconds }), byName(func(r *Result) figures { return r.Lag })
	r.Rates, r.Ratios = byName(func(r *Result) figures { return r.Rates }), byName(func(r *Result) figures { return r.Ratios })
	r.Written, r.Stored = byName(func(r *Result) figures { return r.Written }), byName(func(r *Result) figures { return r.Stored })
	r.Queryable, r.Other = byName(func(r *Result) figures { return r.Queryable }), byName(func(r *Result) figures { return r.Other })
	r.Asked, r.Row = byName(func(r *Result) figures { return r.Asked }), byName(func(r *Result) figures { return r.Row })
	for _, round := range rounds[1:] {
		r.Held = r.Held && round.Held
		r.Warnings, r.Rounds = append(r.Warnings, round.Warnings...), append(r.Rounds, round.Rounds...)
		for name, peak := range round.RSS {
			r.RSS[name] = max(r.RSS[name], peak)
		}
	}
	return &r
}

// median returns the middle value, or the mean of the two middle values.
func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %d traces of %.0f bytes, medians of %d rounds\n\n", r.Scenario, r.Traces, r.Bytes, len(r.Rounds))
	fmt.Fprintf(t, "\ttraces/s\tof the floor\n")
	if r.FloorRate > 0 {
		fmt.Fprintf(t, "floor\t%.0f\t1.00\n", r.FloorRate)
	}
	ratio := func(v float64) string { // without a floor there is none
		if r.FloorRate == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", v)
	}
	fmt.Fprintf(t, "%s\t%.0f\t%s\n", r.Scenario, r.Rate, ratio(r.Ratio))
	for _, name := range slices.Sorted(maps.Keys(r.Rates)) {
		fmt.Fprintf(t, "  until %s\t%.0f\t%s\tafter %.1f s\n", name, r.Rates[name], ratio(r.Ratios[name]), r.Seconds[name])
	}
	if r.P50 != nil && len(r.Asked) == 0 {
		fmt.Fprintf(t, "\n\tp50\tp99\tp999\nanswered, ms\t%.0f\t%.0f\t%.0f\n", *r.P50, *r.P99, *r.P999)
	}
	if len(r.Queryable) > 0 {
		fmt.Fprintf(t, "queryable, ms\t%.0f\t%.0f\t%.0f\n", r.Queryable["p50"], r.Queryable["p99"], r.Queryable["p999"])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Lag)) {
		fmt.Fprintf(t, "%s after the last post was due\t%.1f s\n", name, r.Lag[name])
	}
	if !r.Held {
		fmt.Fprintf(t, "\nNOT HELD\n")
	}
	fmt.Fprintf(t, "\n\tCPU µs a trace\tof the floor\tMiB\tbytes written a trace\n")
	if v, ok := r.FloorCPU[floorName]; ok {
		fmt.Fprintf(t, "floor\t\t%.1f\n", v)
	}
	for _, name := range slices.Sorted(maps.Keys(r.CPU)) {
		fmt.Fprintf(t, "%s\t%.1f\t%s\t%.0f\t%.0f\n", name, r.CPU[name], r.floorCPU(name), r.RSS[name], r.Written[name])
	}
	fmt.Fprintf(t, "all\t%.1f\t%.1f\n\n", r.CPUSum, r.FloorSum)
	for _, name := range slices.Sorted(maps.Keys(r.Stored)) {
		fmt.Fprintf(t, "bytes kept a trace: %s\t%.0f\n", name, r.Stored[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Row)) {
		fmt.Fprintf(t, "bytes on disk a row: %s\t%.0f\n", name, r.Row[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Asked)) {
		fmt.Fprintf(t, "ms: %s\t%.0f\n", name, r.Asked[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Other)) {
		fmt.Fprintf(t, "%s\t%.2f\n", name, r.Other[name])
	}
	for _, line := range r.Warnings {
		fmt.Fprintf(t, "LOGGED %s\n", line)
	}
	return t.Flush()
}

// floorCPU returns the CPU time of a server below the floor, as text.
func (r *Result) floorCPU(name string) string {
	if v, ok := r.FloorCPU[name]; ok {
		return fmt.Sprintf("%.1f", v)
	}
	return ""
}
