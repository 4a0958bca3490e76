package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// stateOf returns the state of a series whose newest message has the given sequence.
func stateOf(partition uint16, agent, card string, applied uint64) DriftState {
	return DriftState{
		StreamCreated: streamCreated, Partition: partition, AgentID: agent, CardID: card, Version: applied,
		Applied: applied, LastEvent: firstEvent, State: []byte("state"),
	}
}

// A slice has at most 1,000 messages. Their ids may all have the greatest length, and consist of characters
// that a parameter of a query escapes.
func TestStatesOfTheLongestIDs(t *testing.T) {
	s, _ := open(t)
	const series, partitions = 1000, 16
	id := func(kind string, n int) string {
		id := fmt.Sprintf("%s-%d-", kind, n)
		return id + strings.Repeat(`'\`+"\n\t", schema.MaxIDBytes)[:schema.MaxIDBytes-len(id)]
	}
	var states []DriftState
	keys, agents := map[int][]SeriesKey{}, map[int][]string{}
	for n := range series {
		state := stateOf(uint16(n%partitions), id("agent", n), id("card", n), 1)
		states = append(states, state)
		keys[n%partitions] = append(keys[n%partitions], SeriesKey{state.AgentID, state.CardID})
		agents[n%partitions] = append(agents[n%partitions], state.AgentID)
	}
	if err := s.InsertDriftStates(t.Context(), states); err != nil {
		t.Fatal(err)
	}
	if got, err := s.DriftStates(t.Context(), streamCreated, keys); err != nil || len(got) != series {
		t.Errorf("by series: %d states, error %.200v; want %d", len(got), err, series)
	}
	if got, err := s.DriftStatesOf(t.Context(), streamCreated, agents); err != nil || len(got) != series {
		t.Errorf("by agents: %d states, error %.200v; want %d", len(got), err, series)
	}
}

// Two partitions may have series of one agent. The limit is that of each partition.
func TestNewestStatesOfAnAgentInTwoPartitions(t *testing.T) {
	s, _ := open(t)
	const cards = MostSeries + 3
	var states []DriftState
	for n := range cards {
		card := fmt.Sprintf("ac-%03d", n)
		states = append(states, stateOf(3, "a", card, uint64(n+1)), stateOf(4, "a", card, uint64(cards-n+1)), stateOf(3, "not requested", card, 1))
	}
	if err := s.InsertDriftStates(t.Context(), states); err != nil {
		t.Fatal(err)
	}
	got, err := s.DriftStatesOf(t.Context(), streamCreated, map[int][]string{3: {"a"}, 4: {"a"}, 5: {"not requested"}})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b DriftState) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.CardID, b.CardID))
	})
	var found, want []string
	for _, state := range got {
		found = append(found, fmt.Sprint(state.Partition, state.AgentID, state.CardID))
	}
	for n := cards - MostSeries; n < cards; n++ {
		want = append(want, fmt.Sprint(3, "a", fmt.Sprintf("ac-%03d", n)))
	}
	for n := range MostSeries {
		want = append(want, fmt.Sprint(4, "a", fmt.Sprintf("ac-%03d", n)))
	}
	if !slices.Equal(found, want) {
		t.Errorf("\n got %v\nwant %v", found, want)
	}
}

func TestNoStatesOfNoSeries(t *testing.T) {
	s, _ := open(t)
	if err := s.InsertDriftStates(t.Context(), []DriftState{stateOf(0, "a", "ac-1", 1)}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.DriftStates(t.Context(), streamCreated, nil); err != nil || len(got) != 0 {
		t.Errorf("of no series: %v, error %v", got, err)
	}
	if got, err := s.DriftStatesOf(t.Context(), streamCreated, map[int][]string{0: nil}); err != nil || len(got) != 0 {
		t.Errorf("of no agents: %v, error %v", got, err)
	}
}
