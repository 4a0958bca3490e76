package drift

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/plumbline/plumbline/schema"
)

// resident returns the bytes that a state keeps in memory: its structs, lists and texts.
func resident(s *State) (bytes int) {
	of := func(sizes ...uintptr) {
		for _, size := range sizes {
			bytes += int(size)
		}
	}
	counted := map[*byte]bool{} // a trace id may be in several lists, with the same bytes
	text := func(t string) {
		if start := unsafe.StringData(t); !counted[start] {
			counted[start] = true
			bytes += len(t)
		}
	}
	of(unsafe.Sizeof(*s))
	d := &s.detector
	of(uintptr(cap(d.tests))*unsafe.Sizeof(running{}), uintptr(cap(d.sessions))*unsafe.Sizeof(sessionSeen{}), uintptr(cap(d.traces))*16, uintptr(cap(s.within))*8)
	for _, id := range d.traces {
		text(id)
	}
	if e := s.expected; e != nil {
		of(unsafe.Sizeof(*e), uintptr(cap(e.centroid.keys))*8, uintptr(cap(e.centroid.weights))*4,
			uintptr(cap(e.actions))*unsafe.Sizeof(actionRates{}), uintptr(cap(e.values))*unsafe.Sizeof(valueRates{}),
			uintptr(cap(e.applied))*unsafe.Sizeof(appliedRates{}))
		for i := range e.values {
			text(e.values[i].key)
		}
	}
	if c := s.open; c != nil {
		of(unsafe.Sizeof(*c), uintptr(cap(c.joined))*unsafe.Sizeof(joined{}))
	}
	return bytes
}

// What a decoded state may take once it has a baseline: of an ordinary agent, and of one that has the most
// of everything. Of each partition few states are decoded: pipeline/drift bounds what all others take.
const (
	mostResident  = 4640
	worstResident = 5120
)

// The recorded agents, and one that has the most of everything, stay below their bounds.
func TestStateIsSmallInMemory(t *testing.T) {
	var worst State
	greatest := 0
	for _, x := range changing(2000, 0, nil, func(i int, t *schema.Trace) {
		t.TraceID = fmt.Sprintf("0f8fad5b-d9cb-469f-a165-%012d", i)
		t.Context.SessionID, t.Context.SessionEnd = fmt.Sprintf("7c9e6679-7425-40de-944b-%012d", i%40), false
		t.Action.Name = fmt.Sprint("action-", 12+i%600)
		if i%10 < 8 { // twelve actions that the baseline has often
			t.Action.Name, t.Action.Type = fmt.Sprint("action-", i%12), active[i%2]
		}
		t.Escalation.Required = i%2 == 0
		t.Decision.ValuesApplied = []string{"honesty", "speed", "principal_benefit", fmt.Sprint("value-", i%90)}
		if i > 500 {
			t.Action.Type, t.Context.Execution.Error, t.Context.Execution.CostCents = schema.ActionDeny, "failed", 9999
			t.Decision.ValuesApplied = []string{"profit"}
		}
	}) {
		x.Order = epoch
		worst.Step(x, DefaultParams())
		if worst.expected != nil {
			greatest = max(greatest, resident(&worst))
		}
	}
	t.Logf("the worst agent takes %d bytes, stored %d", greatest, stored(t, &worst))
	if greatest > worstResident {
		t.Errorf("the worst agent takes %d bytes, want at most %d", greatest, worstResident)
	}
	if n := stored(t, &worst); n > mostResident { // between two traces it is kept as it is stored
		t.Errorf("the worst agent is stored in %d bytes, want at most %d", n, mostResident)
	}
	if n := len(worst.expected.applied); n != maxApplied {
		t.Errorf("the worst agent has %d actions whose values are expected, want %d", n, maxApplied)
	}
	for _, r := range recordings(t) {
		var s State
		most := 0
		for _, x := range r.samples {
			s.Step(x, DefaultParams())
			if s.expected != nil {
				most = max(most, resident(&s))
			}
		}
		t.Logf("%s takes %d bytes, stored %d", r.agent, most, stored(t, &s))
		if most > mostResident {
			t.Errorf("%s takes %d bytes, want at most %d", r.agent, most, mostResident)
		}
	}
}

// mostLearning is what the state of an ordinary agent takes at most while it learns, as it is stored, and
// kept in memory between two traces.
const mostLearning = 4096

// The recorded agents stay below the bound at every trace of their baselines.
func TestLearningStateIsSmall(t *testing.T) {
	for _, r := range recordings(t) {
		var s State
		most, sum, learned := 0, 0, 0
		for _, x := range r.samples {
			if s.Step(x, DefaultParams()); s.learning == nil {
				continue
			}
			size := stored(t, &s)
			most, sum, learned = max(most, size), sum+size, learned+1
		}
		t.Logf("%s takes %d bytes in the mean of its %d traces, and at most %d", r.agent, sum/learned, learned, most)
		if most > mostLearning {
			t.Errorf("%s takes %d bytes, want at most %d", r.agent, most, mostLearning)
		}
	}
}

// What is written of a learning state is what is read, at every trace of a baseline.
func TestLearningStateIsReadAsWritten(t *testing.T) {
	card := *envelope
	card.Values.Declared = append(slices.Clone(card.Values.Declared), principalBenefit)
	facts := FactsOf(&card)
	var s State
	for i := range 150 {
		trace := usual(i)
		trace.Context.SessionID = fmt.Sprintf("7c9e6679-7425-40de-944b-%012x", i/20)
		if i%3 == 0 {
			trace.Context.SessionID = fmt.Sprint("session ", i/20)
		}
		trace.Context.SessionEnd, trace.Context.Execution.CostCents = false, int64(i%7)
		x := SampleOf(trace, facts)
		x.Order = epoch
		x.Confidence, x.Benefit, x.HasBenefit = float64(i%40)/39, float64(i%11)/10, true
		if s.Step(x, DefaultParams()); s.learning == nil {
			t.Fatal("the baseline is formed: the test needs traces that are learned")
		}
		data, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		read, err := UnmarshalState(data)
		if err != nil {
			t.Fatal(err)
		}
		want := *s.learning
		want.firstTexts = [kinds]*textSum{} // is computed when it is needed
		if !reflect.DeepEqual(read.learning, &want) {
			t.Fatalf("after %d traces the state is read as\n%+v, want\n%+v", i+1, read.learning, want)
		}
	}
}

// States that older versions have stored continue as those that this one stores. testdata/learning-3.bin is a state
// after 90 traces, as fd1c58c wrote it, and learning-6.bin as b10c45f5 did. Without a file it is a state with an open
// condition, whose baseline follows the rules of today, in the encoding of a version that had no rate of escalations. Its
// measures are of those whose numbers changed then.
func TestStatesOfOlderVersionsContinue(t *testing.T) {
	odd := func(_ int, t *schema.Trace) {
		t.Action = schema.Action{Type: schema.ActionDeny, Name: "cancel", Category: schema.CategoryForbidden}
		t.Decision.ValuesApplied, t.Decision.Confidence, t.Escalation = nil, 0.4, schema.Escalation{}
	}
	asks := func(i int, t *schema.Trace) { t.Escalation.Required = t.Escalation.Required || i%2 == 0 }
	givesUp := func(_ int, t *schema.Trace) { t.Decision.ValuesApplied, t.Escalation.Required = nil, false }
	for _, old := range []struct {
		file     string
		version  uint8
		samples  []Sample
		after    int
		measures []string // of the open condition
	}{
		{"learning-3.bin", version3, changing(130, 120, nil, nil), 90, nil},
		{"learning-6.bin", version6, changing(130, 120, nil, nil), 90, nil},
		{"", version6, changing(260, 200, nil, odd), 215, []string{"denials", similarityName}},
		{"", version7, changing(260, 200, nil, odd), 215, []string{"denials", similarityName}},
		{"", version7, changing(460, 200, asks, givesUp), 250, []string{"escalations_down", "value_down:honesty"}},
	} {
		data, err := os.ReadFile("testdata/" + old.file)
		if old.file == "" {
			data, err = inVersion(old.version, old.samples[:old.after])
		}
		if err != nil {
			t.Fatal(err)
		}
		read, err := UnmarshalState(data)
		if err != nil {
			t.Fatal(err)
		}
		var stepped State
		for i, x := range old.samples {
			if i == old.after && stepped.expected != nil {
				forgetRate(&stepped)
				for _, measure := range old.measures {
					if !slices.ContainsFunc(stepped.open.joined, func(j joined) bool { return stepped.name(j.test) == measure }) {
						t.Fatalf("the test needs a condition with %s", measure)
					}
				}
			}
			want := stepped.Step(x, DefaultParams())
			if i < old.after {
				continue
			}
			if got := read.Step(x, DefaultParams()); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, trace %d: %+v, want %+v", old.file, i, got, want)
			}
		}
		want, err := stepped.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read.Marshal(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s after the same traces: the state has %d bytes, want %d; %v", old.file, len(got), len(want), err)
		}
	}
}

// forgetRate removes what states of versions before 8 lack.
func forgetRate(s *State) {
	e := s.expected
	e.rates[escalationRate], e.shares[escalationRate], e.alike = [kinds]bounds{}, share{}, 0
	for _, t := range [...]test{test(escalationRate), escalationRateFalls} {
		s.detector.tests[t], s.detector.examples[t] = running{}, examples{}
	}
	for i := range s.detector.sessions {
		s.detector.sessions[i].seen[escalationRate] = seen{}
	}
	if s.open != nil {
		s.open.joined = slices.DeleteFunc(s.open.joined, func(j joined) bool { m, _ := j.test.of(); return m == escalationRate })
	}
}

// inVersion returns the state after samples, in the encoding of a version.
func inVersion(version uint8, samples []Sample) ([]byte, error) {
	var s State
	for _, x := range samples {
		s.Step(x, DefaultParams())
	}
	if s.expected != nil {
		forgetRate(&s)
	}
	c := &codec{data: []byte{version}, version: version}
	s.code(c)
	return c.data, c.err
}

func stored(t *testing.T, s *State) int {
	t.Helper()
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}

// A binary state that is cut short, or changed, is refused or read, and never leads to a panic.
func TestDamagedStates(t *testing.T) {
	for _, n := range []int{50, 130, 230} { // learning, compared, with an open condition
		var s State
		samples := changing(n, 120, nil, func(_ int, t *schema.Trace) { t.Action.Type = schema.ActionDeny })
		for _, x := range samples {
			s.Step(x, DefaultParams())
		}
		data, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		for end := range data {
			if _, err := UnmarshalState(data[:end]); err == nil {
				t.Fatalf("%d of %d bytes are accepted as a state", end, len(data))
			}
		}
		if _, err := UnmarshalState(append(bytes.Clone(data), 0)); err == nil {
			t.Error("a state with one more byte is accepted")
		}
		for at := range data {
			changed := bytes.Clone(data)
			changed[at] ^= 0x81
			if read, err := UnmarshalState(changed); err == nil {
				for _, x := range samples[n-3:] {
					read.Step(x, DefaultParams())
				}
			}
		}
	}
}
