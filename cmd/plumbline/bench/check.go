package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Tolerance is by how much a ratio may be lower than the recorded one, as a share of it.
const Tolerance = 0.15

// ReadRatios reads recorded results, a JSON object a line.
func ReadRatios(text []byte) (recorded []*Result, err error) {
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r := new(Result)
		if err := json.Unmarshal(line, r); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(recorded)+1, err)
		}
		recorded = append(recorded, r)
	}
	return recorded, nil
}

// Difference is a recorded ratio to the floor and the present one.
type Difference struct {
	Name          string
	Recorded, Now float64
}

// Compare returns the ratios that both results have. At a given rate the ratio says nothing.
func Compare(recorded, now *Result) []Difference {
	if recorded.Options.Rate > 0 {
		return nil
	}
	all := []Difference{{recorded.Scenario, recorded.Ratio, now.Ratio}}
	for _, name := range slices.Sorted(maps.Keys(recorded.Ratios)) {
		if ratio, measured := now.Ratios[name]; measured {
			all = append(all, Difference{recorded.Scenario + ", " + name, recorded.Ratios[name], ratio})
		}
	}
	return all
}

// Slower reports whether the ratio is lower by more than Tolerance.
func (d Difference) Slower() bool { return d.Now < d.Recorded*(1-Tolerance) }

// Verdict returns what a person should know about the difference.
func (d Difference) Verdict() string {
	switch {
	case d.Slower():
		return "SLOWER by more than 15 %"
	case d.Now > d.Recorded*(1+Tolerance):
		return "faster by more than 15 %: record the new result"
	default:
		return "good"
	}
}
