package trial

import (
	"maps"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/schema"
)

// mayBeNamed has the category that an alert about a change of recorded traces may have, where the change
// leaves no doubt; an alert may always have none. A change to another agent may be anything.
var mayBeNamed = map[string]schema.Direction{
	"half the actions become transfers": "",
	"70 % denials":                      "",
	"values replaced":                   schema.ValueDrift,
	"undeclared value in 60 %":          schema.ValueDrift,
	"a declared value vanishes":         schema.ValueDrift,
	"escalation stops":                  schema.AutonomyExpansion,
	"writes no longer escalated":        schema.AutonomyExpansion,
	"half the actions escalated":        "",
	"hand-overs in 90 %":                "",
	"new tool in 30 %":                  schema.AutonomyExpansion,
	"cost × 5":                          "",
	"errors × 5":                        "",
	"reasoning replaced":                schema.CommunicationDrift,
}

// On recorded traces the newest event of a condition does not name a category that its change is not. One in
// twenty may: it has a measure that joined by chance.
func TestChangesAreNamedTrulyOnTheCorpus(t *testing.T) {
	if raceEnabled {
		t.Skip("takes a minute with the race detector: make test runs it without")
	}
	named := map[string]map[schema.Direction]int{}
	for name := range mayBeNamed {
		named[name] = map[schema.Direction]int{}
	}
	afterEachChange(t, changes(slices.Collect(maps.Keys(mayBeNamed))...), 6, func(name string, c changed) {
		if direction := nameOf(t, c.before, c.samples); direction != "" {
			named[name][direction]++
		}
	})
	for name, own := range mayBeNamed {
		all, wrong := 0, 0
		for direction, n := range named[name] {
			if all += n; direction != own && direction != schema.UnknownDirection {
				wrong += n
			}
		}
		t.Logf("%s: %v", name, named[name])
		if all < 15 || 20*wrong > all {
			t.Errorf("%s: %d of %d alerts name another category: %v", name, wrong, all, named[name])
		}
		if own != "" && 2*named[name][own] < all {
			t.Errorf("%s: %d of %d alerts are named %s", name, named[name][own], all, own)
		}
	}
}

// nameOf returns the category of the newest event about an open condition, "" where none opens.
func nameOf(t *testing.T, before []byte, samples []drift.Sample) (direction schema.Direction) {
	t.Helper()
	state, err := drift.UnmarshalState(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range samples {
		if out := state.Step(x, drift.DefaultParams()); out.Alert != nil && out.Alert.State != schema.AlertClosed {
			direction = out.Alert.Analysis.DriftDirection
		}
	}
	return direction
}
