package reference

import (
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
	members := fleetOf(value{cards, "cards"})
	members.compare(value{taskValues, "task_values"})
	return members.report(), nil
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

func fleetOf(cards value) *fleet {
	f := &fleet{places: map[[2]int]int{}, pairsOf: map[int][]Pair{}}
	known := map[any]int{}
	for _, entry := range cards.each() {
		id := entry.get("agentId").v
		f.members = append(f.members, member{Echo{id}, f.agentOf(id, known), partyOf(entry.get("card"))})
	}
	if len(f.members) < 2 {
		cards.throw("fleet coherence needs at least 2 agents")
	}
	return f
}

// agentOf returns the agent of a new member's id. Objects and arrays equal only themselves.
func (f *fleet) agentOf(id any, known map[any]int) int {
	if _, list := id.([]any); list {
		id = new(id)
	}
	agent, ok := known[id]
	if !ok {
		agent = len(f.agents)
		known[id] = agent
		f.agents = append(f.agents, len(f.members))
	}
	return agent
}

func (f *fleet) compare(task value) {
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
}

func (f *fleet) report() Fleet {
	scores := scoresOf(f.pairs)
	lagging, clusters := f.lagging(), f.clusters()
	return Fleet{
		Score:        similarity.Round4(mean(scores)),
		MinPairScore: slices.Min(scores),
		MaxPairScore: slices.Max(scores),
		AgentCount:   len(f.members),
		PairCount:    len(f.pairs),
		Pairs:        f.pairs,
		Outliers:     f.outliers(lagging),
		Clusters:     clusters,
		Divergences:  f.divergences(),
		Summaries:    f.summaries(lagging, clusters),
	}
}

func scoresOf(pairs []Pair) []float64 {
	scores := make([]float64, len(pairs))
	for i, pair := range pairs {
		scores[i] = pair.Result.Score
	}
	return scores
}

func (f *fleet) meanScore(agent int) float64 { return mean(scoresOf(f.pairsOf[agent])) }

func (f *fleet) summaries(lagging map[int]float64, clusters []Cluster) []Summary {
	summaries := []Summary{}
	for _, m := range f.members {
		s := Summary{AgentID: m.id, MeanScore: similarity.Round4(f.meanScore(m.agent)), IsOutlier: lagging[m.agent] > 0}
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
