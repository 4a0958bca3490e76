package drift

import (
	"reflect"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// advising returns 600 traces of an agent that looks things up and advises, equally often in its baseline,
// and applies honesty where it advises. From trace 200 on it advises in one trace of so many.
func advising(every int, change func(i int, t *schema.Trace)) []Sample {
	return changing(600, 200, func(i int, t *schema.Trace) {
		t.Action = schema.Action{Type: schema.ActionRecommend, Name: "look_up", Category: schema.CategoryBounded}
		t.Escalation.Required, t.Decision.ValuesApplied = false, []string{"speed"}
		if i < 200 && i%2 == 0 || i >= 200 && i%every == 0 {
			t.Action.Name, t.Decision.ValuesApplied = "advise", []string{"honesty", "speed"}
		}
	}, change)
}

// A value that follows the action is not given up where the tasks, and with them the actions, change. It is
// where the action is done without it.
func TestValuesAreExpectedByAction(t *testing.T) {
	_, all := events(advising(10, nil))
	for _, a := range all {
		if slices.Contains(a.Measures, "value_down:honesty") {
			t.Errorf("an agent that advises seldom: %s", a.Summary)
		}
	}
	_, all = events(advising(2, func(_ int, t *schema.Trace) { t.Decision.ValuesApplied = []string{"speed"} }))
	if len(all) == 0 || all[0].Measures[0] != "value_down:honesty" || all[0].Analysis.DriftDirection != schema.ValueDrift {
		t.Fatalf("a value that is given up: %+v", all)
	}
	if all[0].OpenedAt.After(epoch.Add(240 * 60e9)) {
		t.Errorf("the alert opens at %s, more than 40 traces after the change", all[0].OpenedAt)
	}
}

// An action that the baseline has fewer than five times, each with a value that is applied by chance, is
// expected to apply it as its type does.
func TestRareActionsApplyValuesAsTheirType(t *testing.T) {
	s, _ := events(changing(130, 0, func(i int, t *schema.Trace) {
		t.Action = schema.Action{Type: schema.ActionRecommend, Name: "reply", Category: schema.CategoryBounded}
		if t.Decision.ValuesApplied = nil; i%3 == 0 {
			t.Decision.ValuesApplied = []string{"honesty"}
		}
		switch i {
		case 0, 9, 18, 27:
			t.Action.Name = "look_up"
		case 3, 12, 21, 30, 39:
			t.Action.Name = "advise"
		}
	}, nil))
	x := SampleOf(usual(0), FactsOf(envelope))
	for name, often := range map[string]bool{"reply": true, "look_up": false, "advise": true} {
		x.Action, x.Name = string(schema.ActionRecommend), name
		if got := s.expected.appliedBy(&x) != nil; got != often {
			t.Errorf("the values of %s are expected by action: %t", name, got)
		}
	}
}

// A state of version 4 with a baseline is read: its values are expected by type. What version 5 writes of it is
// what it reads.
func TestComparedStateOfVersion4(t *testing.T) {
	s, _ := events(changing(230, 200, nil, func(_ int, t *schema.Trace) { t.Action.Type = schema.ActionDeny }))
	if len(s.expected.applied) == 0 || s.open == nil {
		t.Fatal("the test needs actions with values, and an open condition")
	}
	old := &codec{data: []byte{version4}, version: version4}
	if s.code(old); old.err != nil {
		t.Fatal(old.err)
	}
	read, err := UnmarshalState(old.data)
	if err != nil {
		t.Fatal(err)
	}
	forgetRate(s)
	want := *s.expected
	want.applied = nil
	tests := slices.Clone(s.detector.tests)
	for i := range tests { // version 6 was the first to have these
		tests[i].bearing, tests[i].all = 0, 0
	}
	if !reflect.DeepEqual(read.expected, &want) || !reflect.DeepEqual(read.detector.tests, tests) {
		t.Errorf("read as\n%+v, want\n%+v", read.expected, want)
	}
	for _, state := range []*State{read, s} {
		data, err := state.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := UnmarshalState(data)
		if err != nil || data[0] != version8 || !reflect.DeepEqual(again.expected, state.expected) {
			t.Errorf("version %d is read as\n%+v, want\n%+v; %v", data[0], again.expected, state.expected, err)
		}
	}
}

// A stored baseline from before values were expected by action keeps its bytes, and with them its id.
func TestBaselinesWithoutAppliedKeepTheirIDs(t *testing.T) {
	s, _ := events(changing(130, 0, nil, nil))
	with := s.expected.encoded()
	before := *s.expected
	before.applied = nil
	without := before.encoded()
	for _, data := range [][]byte{with, without} {
		read, err := decodeExpectations(data)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(read.encoded(), data) {
			t.Errorf("%d bytes are written as %d", len(data), len(read.encoded()))
		}
	}
	if len(with) <= len(without) {
		t.Errorf("%d bytes with what actions apply, %d without", len(with), len(without))
	}
}
