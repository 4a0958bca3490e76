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

// Difference is a recorded ratio to the floor and the present one. Of a given rate both are 1 if it
// was held, 0 otherwise: there the ratio says nothing.
type Difference struct {
	Name          string
	Recorded, Now float64
}

// Compare returns every recorded ratio beside the present one, which is 0 if it is missing.
func Compare(recorded, now *Result) []Difference {
	if rate := recorded.Options.Rate; rate > 0 {
		return []Difference{{fmt.Sprintf("%s at %.0f/s in posts of %d, held", recorded.Scenario, rate, recorded.Options.Lines), one(recorded.Held), one(now.Held)}}
	}
	all := []Difference{{recorded.Scenario, recorded.Ratio, now.Ratio}}
	for _, name := range slices.Sorted(maps.Keys(recorded.Ratios)) {
		all = append(all, Difference{recorded.Scenario + ", " + name, recorded.Ratios[name], now.Ratios[name]})
	}
	return all
}

func one(held bool) float64 {
	if held {
		return 1
	}
	return 0
}

// Slower reports whether the ratio is lower by more than Tolerance.
func (d Difference) Slower() bool { return d.Now < d.Recorded*(1-Tolerance) }

// String returns what a person should know about the difference.
func (d Difference) String() string {
	verdict := "good"
	switch {
	case d.Slower():
		verdict = "FAIL: lower by more than 15 %"
	case d.Now > d.Recorded*(1+Tolerance):
		verdict = "higher by more than 15 %: record the new result"
	}
	return fmt.Sprintf("%s: the recorded ratio is %.3f, the measured one %.3f: %s", d.Name, d.Recorded, d.Now, verdict)
}
