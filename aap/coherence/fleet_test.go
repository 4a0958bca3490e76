package coherence

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func fleetOf(t tester, drafts ...draft) []Member {
	t.Helper()
	var members []Member
	for i, d := range drafts {
		members = append(members, Member{ID: string(rune('p' + i)), Party: d.party(t)})
	}
	return members
}

// Two that fit and one that does not.
func TestFleet(t *testing.T) {
	pair := draft{declared: []string{"a", "b", "c"}}
	members := fleetOf(t, pair, pair, draft{declared: []string{"x"}, refuses: []string{"b"}})
	f, err := assessor(t).Fleet(members, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	f.Pairs = nil
	const want = `{"fleet_score":0.3333,"min_pair_score":0,"max_pair_score":1,"agent_count":3,"pair_count":3,"compatible":false,` +
		`"weakest_pair":{"agent_a":"p","agent_b":"r","score":0},"pairwise_matrix":null,` +
		`"outliers":[{"agent_id":"r","agent_mean_score":0,"fleet_mean_score":0.3333,"deviation":1.4142,"primary_conflicts":["b"]}],` +
		`"clusters":[{"cluster_id":0,"agent_ids":["p","q"],"internal_coherence":1,"shared_values":["a","b","c"],"distinguishing_values":["a","b","c"]},` +
		`{"cluster_id":1,"agent_ids":["r"],"internal_coherence":1,"shared_values":["x"],"distinguishing_values":["x"]}],` +
		`"divergence_report":[{"value":"b","agents_declaring":["p","q"],"agents_missing":["r"],"agents_conflicting":["r"],"impact_on_fleet_score":0.6667},` +
		`{"value":"x","agents_declaring":["r"],"agents_missing":["p","q"],"agents_conflicting":[],"impact_on_fleet_score":0.6667},` +
		`{"value":"a","agents_declaring":["p","q"],"agents_missing":["r"],"agents_conflicting":[],"impact_on_fleet_score":0.3333},` +
		`{"value":"c","agents_declaring":["p","q"],"agents_missing":["r"],"agents_conflicting":[],"impact_on_fleet_score":0.3333}],` +
		`"agent_summaries":[{"agent_id":"p","mean_score":0.5,"compatible_count":1,"conflict_count":1,"cluster_id":0,"is_outlier":false},` +
		`{"agent_id":"q","mean_score":0.5,"compatible_count":1,"conflict_count":1,"cluster_id":0,"is_outlier":false},` +
		`{"agent_id":"r","mean_score":0,"compatible_count":0,"conflict_count":2,"cluster_id":1,"is_outlier":true}],` +
		`"coherence_metadata":{"engine_version":"plumbline-coherence/2","profile":"spec","min_coherence":0.7,"assessed_at":"2026-03-01T12:00:00Z"}}`
	if got := text(t, f); got != want {
		t.Errorf("%s", got)
	}
}

func TestFleetOnATask(t *testing.T) {
	members := fleetOf(t, draft{declared: []string{"a", "b"}}, draft{declared: []string{"a", "c"}})
	f, err := assessor(t).Fleet(members, []string{"a"}, now)
	if err != nil || !f.Compatible || f.Score != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	members[1].Party.RevokedAt = now.Add(-time.Hour)
	if f, err = assessor(t).Fleet(members, []string{"a"}, now); err != nil || f.Compatible || f.Score != 0 || f.Pairs[0].Result.Reasons[0].Code != "card_revoked" {
		t.Errorf("with a revoked card: %+v, %v", f, err)
	}
}

func TestFleetsThatCannotBeJudged(t *testing.T) {
	one := fleetOf(t, draft{declared: []string{"a"}})
	large := slices.Repeat(one, MaxFleet+1)
	for name, c := range map[string]struct {
		members []Member
		want    error
	}{
		"none": {nil, ErrFleetTooSmall}, "one": {one, ErrFleetTooSmall},
		"twice the same": {append(slices.Clone(one), one...), ErrDuplicateMember}, "too many": {large, ErrFleetTooLarge},
	} {
		if _, err := assessor(t).Fleet(c.members, nil, now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Members of one mind leave nobody out, whatever sums round to.
func TestAnEvenFleetHasNoOutlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []Member
		n := rapid.IntRange(3, 9).Draw(t, "members")
		for i := range n { // every two share one value of three
			d := draft{declared: []string{"a", fmt.Sprint("own", i)}}
			members = append(members, Member{ID: fmt.Sprint(i), Party: d.party(t)})
		}
		f, err := assessor(t).Fleet(members, nil, now)
		if err != nil || len(f.Outliers) != 0 || f.Score != 0.3333 {
			t.Fatalf("%v, outliers %+v, score %v", err, f.Outliers, f.Score)
		}
	})
}

// The order of members changes neither the fleet's score nor who is outside.
func TestTheOrderOfMembersOfAFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []Member
		for i := range rapid.IntRange(2, 6).Draw(t, "members") {
			members = append(members, Member{ID: fmt.Sprint(i), Party: drafted(t, fmt.Sprint(i)).party(t)})
		}
		shuffled := rapid.Permutation(members).Draw(t, "order")
		f, err := assessor(t).Fleet(members, nil, now)
		g, again := assessor(t).Fleet(shuffled, nil, now)
		if err != nil || again != nil {
			t.Fatal(err, again)
		}
		if f.Score != g.Score || f.MinPairScore != g.MinPairScore || len(f.Clusters) != len(g.Clusters) || len(f.Outliers) != len(g.Outliers) {
			t.Fatalf("%s\n%s", text(t, f), text(t, g))
		}
		if len(f.Pairs) != f.PairCount || f.PairCount != f.AgentCount*(f.AgentCount-1)/2 {
			t.Fatalf("%d pairs of %d members", len(f.Pairs), f.AgentCount)
		}
	})
}
