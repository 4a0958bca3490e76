package reference

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/aap/similarity"
)

// outlierDeviation is the distance below the mean, in standard deviations, of an outlier.
const outlierDeviation = 1.0

// outlierFleet is the size of the smallest fleet that can have an outlier.
const outlierFleet = 3

// outliers finds the members that fit the others badly.
func (f *fleet) outliers() []Outlier {
	found := []Outlier{}
	means := make([]float64, len(f.ids))
	for i, id := range f.ids {
		means[i] = f.meanScore(id)
	}
	center := mean(means)
	spread := deviation(means, center)
	if spread == 0 || len(f.ids) < outlierFleet {
		return found
	}
	for i, id := range f.ids {
		below := (center - means[i]) / spread
		if below >= outlierDeviation {
			found = append(found, Outlier{
				AgentID: id, AgentMean: similarity.Round4(means[i]), FleetMean: similarity.Round4(center),
				Deviation: similarity.Round4(below), PrimaryConflicts: conflictingValues(f.pairsOf(id)),
			})
		}
	}
	return found
}

// deviation is the standard deviation of the whole population.
func deviation(numbers []float64, center float64) float64 {
	var squares float64
	for _, n := range numbers {
		squares += (n - center) * (n - center)
	}
	return math.Sqrt(squares / float64(len(numbers)))
}

func conflictingValues(pairs []Pair) []string {
	var names []string
	for _, pair := range pairs {
		for _, conflict := range pair.Result.ValueAlignment.Conflicts {
			for _, name := range []string{conflict.InitiatorValue, conflict.ResponderValue} {
				if name != conflictsWith {
					names = append(names, name)
				}
			}
		}
	}
	return unique(names)
}

// clusters returns the connected components, in order of their first member,
// each in the order of a breadth-first walk.
func (f *fleet) clusters() []Cluster {
	clusters := []Cluster{}
	visited := map[string]bool{}
	for _, id := range f.ids {
		if visited[id] {
			continue
		}
		visited[id] = true
		members := []string{id}
		for next := 0; next < len(members); next++ {
			for _, neighbour := range f.neighbours(members[next]) {
				if !visited[neighbour] {
					visited[neighbour] = true
					members = append(members, neighbour)
				}
			}
		}
		clusters = append(clusters, f.cluster(len(clusters), members))
	}
	return clusters
}

// neighbours returns the members that id is compatible with.
func (f *fleet) neighbours(id string) []string {
	var ids []string
	for _, pair := range f.pairsOf(id) {
		if !pair.Result.Compatible {
			continue
		}
		if pair.A == id {
			ids = append(ids, pair.B)
		} else {
			ids = append(ids, pair.A)
		}
	}
	return ids
}

func (f *fleet) cluster(number int, members []string) Cluster {
	shared := f.parties[members[0]].declared
	for _, id := range members[1:] {
		shared = within(shared, f.parties[id].holds)
	}
	inside := setOf(members)
	elsewhere := map[string]bool{}
	for _, id := range outside(f.ids, inside) {
		for _, name := range f.parties[id].values {
			elsewhere[name] = true
		}
	}
	return Cluster{
		ID: number, AgentIDs: members, InternalCoherence: similarity.Round4(f.internalCoherence(members)),
		SharedValues: shared, Distinguishing: outside(shared, elsewhere),
	}
}

// internalCoherence is the mean of the pairs within a cluster, 1 for a single
// member. Pairs are summed in the order of the cluster's members.
func (f *fleet) internalCoherence(members []string) float64 {
	if len(members) == 1 {
		return 1
	}
	var scores []float64
	for i, a := range members {
		for _, b := range members[i+1:] {
			scores = append(scores, f.pair(a, b).Result.Score)
		}
	}
	return mean(scores)
}

// pair returns the pair of a and b, in whichever order it stands.
func (f *fleet) pair(a, b string) Pair {
	i, ok := f.places[[2]string{a, b}]
	if !ok {
		i = f.places[[2]string{b, a}]
	}
	return f.pairs[i]
}

// divergences lists the values that the fleet is not at one about, those of
// the greatest impact first.
func (f *fleet) divergences() []Divergence {
	report := []Divergence{}
	for _, name := range f.allValues() {
		holds := func(id string) bool { return f.parties[id].holds[name] }
		d := Divergence{
			Value:       name,
			Declaring:   selected(f.ids, holds),
			Missing:     selected(f.ids, func(id string) bool { return !holds(id) }),
			Conflicting: selected(f.ids, func(id string) bool { return f.parties[id].conflicts[name] }),
		}
		if apart := len(d.Missing) + len(d.Conflicting); apart > 0 {
			d.Impact = similarity.Round4(float64(apart) / float64(len(f.ids)))
			report = append(report, d)
		}
	}
	slices.SortStableFunc(report, func(a, b Divergence) int {
		switch {
		case a.Impact > b.Impact:
			return -1
		case a.Impact < b.Impact:
			return 1
		}
		return 0
	})
	return report
}

func (f *fleet) allValues() []string {
	var names []string
	for _, id := range f.ids {
		names = append(names, f.parties[id].values...)
	}
	return unique(names)
}
