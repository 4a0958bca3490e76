package reference

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/aap/similarity"
)

// outlierDeviation is the distance below the mean, in standard deviations, of an outlier.
const outlierDeviation = 1.0

// outlierFleet is the minimum size of a fleet with an outlier.
const outlierFleet = 3

// lagging finds the agents with low mean scores. It returns how many standard deviations below
// the mean each of them is.
func (f *fleet) lagging() map[int]float64 {
	means := f.means()
	center := mean(means)
	spread := deviation(means, center)
	if spread == 0 || len(f.members) < outlierFleet {
		return nil
	}
	found := map[int]float64{}
	for agent := range means {
		if below := (center - means[agent]) / spread; below >= outlierDeviation {
			found[agent] = below
		}
	}
	return found
}

// means returns the mean score of every agent.
func (f *fleet) means() []float64 {
	means := make([]float64, len(f.agents))
	for agent := range means {
		means[agent] = f.meanScore(agent)
	}
	return means
}

func (f *fleet) outliers(lagging map[int]float64) []Outlier {
	found := []Outlier{}
	means := f.means()
	for _, m := range f.members {
		if below, ok := lagging[m.agent]; ok {
			found = append(found, Outlier{
				AgentID: m.id, AgentMean: similarity.Round4(means[m.agent]), FleetMean: similarity.Round4(mean(means)),
				Deviation: similarity.Round4(below), PrimaryConflicts: conflictingValues(f.pairsOf[m.agent]),
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

// clusters returns the connected components, ordered by their first member. Each lists its
// agents in breadth-first order.
func (f *fleet) clusters() []Cluster {
	clusters := []Cluster{}
	visited := map[int]bool{}
	for agent := range f.agents {
		if visited[agent] {
			continue
		}
		visited[agent] = true
		component := []int{agent}
		for next := 0; next < len(component); next++ {
			for _, neighbour := range f.neighbours(component[next]) {
				if !visited[neighbour] {
					visited[neighbour] = true
					component = append(component, neighbour)
				}
			}
		}
		clusters = append(clusters, f.cluster(len(clusters), component))
	}
	return clusters
}

// neighbours returns the agents that are compatible with an agent.
func (f *fleet) neighbours(agent int) []int {
	var others []int
	for _, pair := range f.pairsOf[agent] {
		if pair.Result.Compatible {
			others = append(others, pair.a+pair.b-agent)
		}
	}
	return others
}

// cluster describes a component. An agent with several cards has the shared values of its
// first.
func (f *fleet) cluster(number int, agents []int) Cluster {
	c := Cluster{ID: number, agents: agents, InternalCoherence: similarity.Round4(f.internalCoherence(agents))}
	for i, agent := range agents {
		first := f.members[f.agents[agent]]
		c.AgentIDs = append(c.AgentIDs, first.id)
		if i == 0 {
			c.SharedValues = first.declared
		}
		c.SharedValues = within(c.SharedValues, first.holds)
	}
	elsewhere := map[string]bool{}
	for _, m := range f.members {
		if !slices.Contains(agents, m.agent) {
			maps.Copy(elsewhere, m.holds)
		}
	}
	c.Distinguishing = outside(c.SharedValues, elsewhere)
	return c
}

// internalCoherence is the mean score of the pairs within a cluster, 1 for a single member.
// Pairs are summed in the order of the cluster's members.
func (f *fleet) internalCoherence(agents []int) float64 {
	if len(agents) == 1 {
		return 1
	}
	var scores []float64
	for i, a := range agents {
		for _, b := range agents[i+1:] {
			scores = append(scores, f.pairs[f.places[[2]int{a, b}]].Result.Score)
		}
	}
	return mean(scores)
}

// divergences lists the values that the members do not all share, those of the greatest impact
// first. An agent with several cards has the values of its last.
func (f *fleet) divergences() []Divergence {
	report := []Divergence{}
	last := make([]party, len(f.agents))
	for _, m := range f.members {
		last[m.agent] = m.party
	}
	for _, name := range f.allValues() {
		d := Divergence{
			Value:       name,
			Declaring:   f.idsWhere(func(agent int) bool { return last[agent].holds[name] }),
			Missing:     f.idsWhere(func(agent int) bool { return !last[agent].holds[name] }),
			Conflicting: f.idsWhere(func(agent int) bool { return last[agent].conflicts[name] }),
		}
		if apart := len(d.Missing) + len(d.Conflicting); apart > 0 {
			d.Impact = similarity.Round4(float64(apart) / float64(len(f.members)))
			report = append(report, d)
		}
	}
	slices.SortStableFunc(report, func(a, b Divergence) int { return cmp.Compare(b.Impact, a.Impact) })
	return report
}

// idsWhere returns the ids of the members whose agent satisfies a condition.
func (f *fleet) idsWhere(holds func(agent int) bool) []Echo {
	ids := []Echo{}
	for _, m := range f.members {
		if holds(m.agent) {
			ids = append(ids, m.id)
		}
	}
	return ids
}

func (f *fleet) allValues() []string {
	var names []string
	for _, m := range f.members {
		names = append(names, m.values...)
	}
	return unique(names)
}
