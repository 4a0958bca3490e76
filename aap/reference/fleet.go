package reference

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/aap/similarity"
)

// Fleet is the SDK's result for the coherence of many cards.
type Fleet struct {
	Score        float64      `json:"fleet_score"` // mean of all pairs
	MinPairScore float64      `json:"min_pair_score"`
	MaxPairScore float64      `json:"max_pair_score"`
	AgentCount   int          `json:"agent_count"`
	PairCount    int          `json:"pair_count"`
	Pairs        []Pair       `json:"pairwise_matrix"`
	Outliers     []Outlier    `json:"outliers"`
	Clusters     []Cluster    `json:"clusters"`
	Divergences  []Divergence `json:"divergence_report"`
	Summaries    []Summary    `json:"agent_summaries"`
}

// Pair is the coherence of two members.
type Pair struct {
	A      Echo      `json:"agent_a,omitzero"`
	B      Echo      `json:"agent_b,omitzero"`
	Result Coherence `json:"result"`

	a, b int // indexes of the members' agents
}

// Outlier is a member whose mean score is at least one standard deviation below the mean.
type Outlier struct {
	AgentID          Echo     `json:"agent_id,omitzero"`
	AgentMean        float64  `json:"agent_mean_score"`
	FleetMean        float64  `json:"fleet_mean_score"`
	Deviation        float64  `json:"deviation"`
	PrimaryConflicts []string `json:"primary_conflicts"`
}

// Cluster is a set of members connected by compatible pairs.
type Cluster struct {
	ID                int      `json:"cluster_id"`
	AgentIDs          []Echo   `json:"agent_ids"`
	InternalCoherence float64  `json:"internal_coherence"`
	SharedValues      []string `json:"shared_values"`
	Distinguishing    []string `json:"distinguishing_values"`

	agents []int
}

// Divergence is a value that not all members declare or that a member conflicts with.
type Divergence struct {
	Value       string  `json:"value"`
	Declaring   []Echo  `json:"agents_declaring"`
	Missing     []Echo  `json:"agents_missing"`
	Conflicting []Echo  `json:"agents_conflicting"`
	Impact      float64 `json:"impact_on_fleet_score"`
}

// Summary is the position of one member.
type Summary struct {
	AgentID    Echo    `json:"agent_id,omitzero"`
	MeanScore  float64 `json:"mean_score"`
	Compatible int     `json:"compatible_count"`
	Conflicts  int     `json:"conflict_count"`
	ClusterID  int     `json:"cluster_id"`
	IsOutlier  bool    `json:"is_outlier"`
}

// CheckFleet compares all pairs of cards, a list of {"agentId", "card"}. Cards with the same
// agentId belong to one agent and are compared with each other too.
func CheckFleet(cards, taskValues any) (f Fleet, err error) {
	defer catch(&err)
	members := fleetOf(value{cards, "cards"}, value{taskValues, "task_values"})
	scores := scoresOf(members.pairs)
	outliers, deviations := members.outliers()
	clusters := members.clusters()
	return Fleet{
		Score:        similarity.Round4(similarity.Mean(scores)),
		MinPairScore: slices.Min(scores),
		MaxPairScore: slices.Max(scores),
		AgentCount:   len(members.members),
		PairCount:    len(members.pairs),
		Pairs:        members.pairs,
		Outliers:     outliers,
		Clusters:     clusters,
		Divergences:  members.divergences(),
		Summaries:    members.summaries(deviations, clusters),
	}, nil
}

// member is one card of a fleet. Members with equal ids are one agent.
type member struct {
	id    Echo
	agent int
	party
}

// fleet holds the members in order and all their pairs.
type fleet struct {
	members []member
	agents  []int // index of each agent's first member
	pairs   []Pair
	places  map[[2]int]int // index of the first pair of two agents, in either order
	pairsOf map[int][]Pair // pairs of each agent; a pair with itself counts twice
}

func fleetOf(cards, task value) *fleet {
	f := &fleet{places: map[[2]int]int{}, pairsOf: map[int][]Pair{}}
	known := map[any]int{} // agents by id
	for _, entry := range cards.each() {
		id := entry.get("agentId").v
		identity := id
		if _, list := id.([]any); list {
			identity = new(id) // an array equals only itself, as an object does
		}
		agent, ok := known[identity]
		if !ok {
			agent = len(f.agents)
			known[identity] = agent
			f.agents = append(f.agents, len(f.members))
		}
		f.members = append(f.members, member{Echo{id}, agent, partyOf(entry.get("card"))})
	}
	if len(f.members) < 2 {
		cards.throw("fleet coherence needs at least 2 agents")
	}
	for i, a := range f.members {
		for _, b := range f.members[i+1:] {
			for _, place := range [][2]int{{a.agent, b.agent}, {b.agent, a.agent}} {
				if _, ok := f.places[place]; !ok {
					f.places[place] = len(f.pairs)
				}
			}
			pair := Pair{a.id, b.id, coherence(a.party, b.party, task), a.agent, b.agent}
			f.pairs = append(f.pairs, pair)
			f.pairsOf[a.agent] = append(f.pairsOf[a.agent], pair)
			f.pairsOf[b.agent] = append(f.pairsOf[b.agent], pair)
		}
	}
	return f
}

func scoresOf(pairs []Pair) []float64 {
	scores := make([]float64, len(pairs))
	for i, pair := range pairs {
		scores[i] = pair.Result.Score
	}
	return scores
}

func (f *fleet) meanScore(agent int) float64 { return similarity.Mean(scoresOf(f.pairsOf[agent])) }

// outliers returns the members whose mean score is at least one standard deviation, of the whole
// population, below the mean, and by how many deviations the agents are.
func (f *fleet) outliers() (found []Outlier, deviations map[int]float64) {
	found, deviations = []Outlier{}, map[int]float64{}
	means := make([]float64, len(f.agents))
	for agent := range means {
		means[agent] = f.meanScore(agent)
	}
	center := similarity.Mean(means)
	var squares float64
	for _, n := range means {
		squares += (n - center) * (n - center)
	}
	spread := math.Sqrt(squares / float64(len(means)))
	if spread == 0 || len(f.members) < 3 {
		return found, deviations
	}
	for _, m := range f.members {
		below := (center - means[m.agent]) / spread
		if !(below >= 1) {
			continue
		}
		deviations[m.agent] = below
		var conflicts []string
		for _, pair := range f.pairsOf[m.agent] {
			for _, conflict := range pair.Result.ValueAlignment.Conflicts {
				for _, name := range []string{conflict.InitiatorValue, conflict.ResponderValue} {
					if name != conflictsWith {
						conflicts = append(conflicts, name)
					}
				}
			}
		}
		found = append(found, Outlier{
			AgentID: m.id, AgentMean: similarity.Round4(means[m.agent]), FleetMean: similarity.Round4(center),
			Deviation: similarity.Round4(below), PrimaryConflicts: unique(conflicts),
		})
	}
	return found, deviations
}

// clusters returns the connected components of the compatible pairs, ordered by their first
// member. Each lists its agents in breadth-first order.
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
			for _, pair := range f.pairsOf[component[next]] {
				neighbour := pair.a + pair.b - component[next]
				if pair.Result.Compatible && !visited[neighbour] {
					visited[neighbour] = true
					component = append(component, neighbour)
				}
			}
		}
		clusters = append(clusters, f.cluster(len(clusters), component))
	}
	return clusters
}

// cluster describes a component. An agent with several cards has the shared values of its
// first. The internal coherence is the mean score of the pairs within the cluster, summed in the
// order of its members, and 1 for a single member.
func (f *fleet) cluster(number int, agents []int) Cluster {
	c := Cluster{ID: number, agents: agents, InternalCoherence: 1}
	var scores []float64
	for i, agent := range agents {
		first := f.members[f.agents[agent]]
		c.AgentIDs = append(c.AgentIDs, first.id)
		if i == 0 {
			c.SharedValues = first.declared
		}
		c.SharedValues = within(c.SharedValues, first.holds)
		for _, other := range agents[i+1:] {
			scores = append(scores, f.pairs[f.places[[2]int{agent, other}]].Result.Score)
		}
	}
	if len(scores) > 0 {
		c.InternalCoherence = similarity.Round4(similarity.Mean(scores))
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

// divergences lists the values that the members do not all share, those of the greatest impact
// first. An agent with several cards has the values of its last.
func (f *fleet) divergences() []Divergence {
	report := []Divergence{}
	last := make([]party, len(f.agents))
	var values []string
	for _, m := range f.members {
		last[m.agent] = m.party
		values = append(values, m.values...)
	}
	for _, name := range unique(values) {
		d := Divergence{Value: name, Declaring: []Echo{}, Missing: []Echo{}, Conflicting: []Echo{}}
		for _, m := range f.members {
			if last[m.agent].holds[name] {
				d.Declaring = append(d.Declaring, m.id)
			} else {
				d.Missing = append(d.Missing, m.id)
			}
			if last[m.agent].conflicts[name] {
				d.Conflicting = append(d.Conflicting, m.id)
			}
		}
		if apart := len(d.Missing) + len(d.Conflicting); apart > 0 {
			d.Impact = similarity.Round4(float64(apart) / float64(len(f.members)))
			report = append(report, d)
		}
	}
	slices.SortStableFunc(report, func(a, b Divergence) int { return cmp.Compare(b.Impact, a.Impact) })
	return report
}

func (f *fleet) summaries(deviations map[int]float64, clusters []Cluster) []Summary {
	summaries := []Summary{}
	for _, m := range f.members {
		s := Summary{AgentID: m.id, MeanScore: similarity.Round4(f.meanScore(m.agent)), IsOutlier: deviations[m.agent] > 0}
		for _, pair := range f.pairsOf[m.agent] {
			if pair.Result.Compatible {
				s.Compatible++
			}
			if len(pair.Result.ValueAlignment.Conflicts) > 0 {
				s.Conflicts++
			}
		}
		s.ClusterID = slices.IndexFunc(clusters, func(c Cluster) bool { return slices.Contains(c.agents, m.agent) })
		summaries = append(summaries, s)
	}
	return summaries
}
