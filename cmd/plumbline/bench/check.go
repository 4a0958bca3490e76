package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Tolerance is by how much a ratio may be lower than the recorded one, as a share of it.
const Tolerance = 0.15

// ReadRatios reads recorded results, at least one, a JSON object a line. Each can be measured again.
func ReadRatios(text []byte) (recorded []*Result, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r := new(Result)
		if err := json.Unmarshal(line, r); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if err := r.Options.Validate(r.Scenario); err != nil {
			return nil, fmt.Errorf("line %d, scenario %q: %w", number, r.Scenario, err)
		}
		recorded = append(recorded, r)
	}
	if len(recorded) == 0 {
		return nil, errors.New("no recorded result: write one with plumbline bench drain --json")
	}
	return recorded, nil
}

// Choose returns the results of some scenarios, in their order; of all if names is empty. Each name must have a result.
func Choose(recorded []*Result, names []string) (chosen []*Result, err error) {
	there := func(name string) bool {
		return slices.ContainsFunc(recorded, func(r *Result) bool { return r.Scenario == name })
	}
	for _, name := range names {
		if !there(name) {
			return nil, fmt.Errorf("no recorded result of scenario %q", name)
		}
	}
	for _, r := range recorded {
		if len(names) == 0 || slices.Contains(names, r.Scenario) {
			chosen = append(chosen, r)
		}
	}
	return chosen, nil
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
