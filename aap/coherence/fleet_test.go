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

// Two compatible members and one that fits neither.
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
		`"coherence_metadata":{"engine_version":"plumbline-coherence/3","profile":"spec","min_coherence":0.7,"assessed_at":"2026-03-01T12:00:00Z"}}`
	if got := text(t, f); got != want {
		t.Errorf("%s", got)
	}
}

// A value distinguishes a cluster if no member outside declares it. A value diverges if a
// member does not declare it or refuses it.
func TestValuesOfClusters(t *testing.T) {
	both := draft{declared: []string{"all", "inside", "a", "b", "c", "d", "e"}}
	members := fleetOf(t, both, both, draft{declared: []string{"all", "a"}})
	f, err := assessor(t).Fleet(members, nil, now)
	if err != nil || len(f.Clusters) != 2 {
		t.Fatalf("%+v, %v", f.Clusters, err)
	}
	same(t, "shared", f.Clusters[0].SharedValues, both.declared)
	same(t, "distinguishing", f.Clusters[0].Distinguishing, []string{"inside", "b", "c", "d", "e"})
	same(t, "of the other", f.Clusters[1].Distinguishing, []string{})
	var diverging []string
	for _, d := range f.Divergences {
		diverging = append(diverging, d.Value)
	}
	same(t, "diverging", diverging, []string{"inside", "b", "c", "d", "e"})
}

// An unresolved conflict counts for both members and their pairs, on either side.
func TestConflictsOfMembers(t *testing.T) {
	holder := draft{declared: []string{"a", "v"}}
	settled := draft{declared: []string{"a", "w", "z"}, refuses: []string{"v"}, subsumes: map[string][]string{"w": {"v"}}}
	refuser := draft{declared: []string{"a", "x"}, refuses: []string{"v", "w", "z"}, subsumes: map[string][]string{"x": {"z"}}}
	alike := draft{declared: []string{"a", "v"}}
	for name, order := range map[string][]draft{"refuser last": {holder, settled, alike, refuser}, "refuser first": {refuser, holder, settled, alike}} {
		f, err := assessor(t).Fleet(fleetOf(t, order...), []string{"a"}, now)
		if err != nil || len(f.Outliers) != 1 {
			t.Fatalf("%s: %+v, %v", name, f.Outliers, err)
		}
		same(t, name, slices.Sorted(slices.Values(f.Outliers[0].PrimaryConflicts)), []string{"v", "w"})
		for _, s := range f.Summaries {
			if want := map[bool]int{true: 3, false: 1}[s.IsOutlier]; s.Conflicts != want {
				t.Errorf("%s: %s has %d pairs in conflict, want %d", name, s.AgentID, s.Conflicts, want)
			}
		}
	}
	strangers, err := assessor(t).Fleet(fleetOf(t, draft{declared: []string{"a"}}, draft{declared: []string{"b"}}), nil, now)
	if err != nil || strangers.Compatible || strangers.Summaries[0].Conflicts != 0 {
		t.Errorf("members that share nothing are in no conflict: %+v, %v", strangers.Summaries, err)
	}
}

// A member exactly one standard deviation below the mean is an outlier.
func TestOneDeviationIsAnOutlier(t *testing.T) {
	a := draft{declared: []string{"a"}}
	f, err := assessor(t).Fleet(fleetOf(t, a, a, draft{declared: []string{"b"}}, draft{declared: []string{"c"}}), nil, now)
	if err != nil || len(f.Outliers) != 2 || f.Outliers[0].Deviation != 1 || f.Outliers[0].AgentID != "r" || f.Outliers[1].AgentID != "s" {
		t.Errorf("%+v, %v", f.Outliers, err)
	}
	same(t, "primary conflicts", f.Outliers[0].PrimaryConflicts, []string{})
}

func TestTheLargestFleet(t *testing.T) {
	var members []Member
	party := draft{declared: []string{"a"}}.party(t)
	for i := range MaxFleet {
		members = append(members, Member{ID: fmt.Sprint(i), Party: party})
	}
	if f, err := assessor(t).Fleet(members, nil, now); err != nil || f.PairCount != MaxFleet*(MaxFleet-1)/2 || len(f.Outliers) != 0 {
		t.Errorf("%d pairs, %v", f.PairCount, err)
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

// A fleet in which all pairs have the same score has no outlier, in spite of rounding.
func TestAnEvenFleetHasNoOutlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []Member
		n := rapid.IntRange(3, 9).Draw(t, "members")
		for i := range n { // every two share one of three values
			d := draft{declared: []string{"a", fmt.Sprint("own", i)}}
			members = append(members, Member{ID: fmt.Sprint(i), Party: d.party(t)})
		}
		f, err := assessor(t).Fleet(members, nil, now)
		if err != nil || len(f.Outliers) != 0 || f.Score != 0.3333 {
			t.Fatalf("%v, outliers %+v, score %v", err, f.Outliers, f.Score)
		}
	})
}

// The order of members changes neither the fleet's score nor its outliers.
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
