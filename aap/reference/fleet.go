package reference

import (
	"slices"

	"github.com/plumbline/plumbline/aap/similarity"
)

// Fleet is the SDK's answer on the coherence of many cards.
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
	A      string    `json:"agent_a"`
	B      string    `json:"agent_b"`
	Result Coherence `json:"result"`
}

// Outlier is a member whose mean score lies at least one standard deviation below.
type Outlier struct {
	AgentID          string   `json:"agent_id"`
	AgentMean        float64  `json:"agent_mean_score"`
	FleetMean        float64  `json:"fleet_mean_score"`
	Deviation        float64  `json:"deviation"`
	PrimaryConflicts []string `json:"primary_conflicts"`
}

// Cluster is a set of members that compatible pairs connect.
type Cluster struct {
	ID                int      `json:"cluster_id"`
	AgentIDs          []string `json:"agent_ids"`
	InternalCoherence float64  `json:"internal_coherence"`
	SharedValues      []string `json:"shared_values"`
	Distinguishing    []string `json:"distinguishing_values"`
}

// Divergence is a value that not all members declare, or that one conflicts with.
type Divergence struct {
	Value       string   `json:"value"`
	Declaring   []string `json:"agents_declaring"`
	Missing     []string `json:"agents_missing"`
	Conflicting []string `json:"agents_conflicting"`
	Impact      float64  `json:"impact_on_fleet_score"`
}

// Summary is one member's position.
type Summary struct {
	AgentID    string  `json:"agent_id"`
	MeanScore  float64 `json:"mean_score"`
	Compatible int     `json:"compatible_count"`
	Conflicts  int     `json:"conflict_count"`
	ClusterID  int     `json:"cluster_id"`
	IsOutlier  bool    `json:"is_outlier"`
}

// CheckFleet compares every two of cards, a list of {"agentId", "card"} with
// distinct agent ids.
func CheckFleet(cards, taskValues any) (f Fleet, err error) {
	defer catch(&err)
	members := fleetOf(value{cards, "cards"})
	members.compare(value{taskValues, "task_values"})
	return members.report(), nil
}

// fleet holds members in order, and all pairs of them.
type fleet struct {
	ids     []string
	parties map[string]party
	pairs   []Pair
	places  map[[2]string]int // of a pair, by its members in order
}

func fleetOf(cards value) *fleet {
	f := &fleet{parties: map[string]party{}, places: map[[2]string]int{}}
	for _, entry := range cards.each() {
		id := entry.get("agentId")
		if _, twice := f.parties[id.text()]; twice {
			id.throw("%q stands for two cards", id.text())
		}
		f.ids = append(f.ids, id.text())
		f.parties[id.text()] = partyOf(entry.get("card"))
	}
	if len(f.ids) < 2 {
		cards.throw("fleet coherence needs at least 2 agents")
	}
	return f
}

func (f *fleet) compare(task value) {
	for i, a := range f.ids {
		for _, b := range f.ids[i+1:] {
			f.places[[2]string{a, b}] = len(f.pairs)
			f.pairs = append(f.pairs, Pair{a, b, coherence(f.parties[a], f.parties[b], task)})
		}
	}
}

func (f *fleet) report() Fleet {
	scores := scoresOf(f.pairs)
	outliers, clusters := f.outliers(), f.clusters()
	return Fleet{
		Score:        similarity.Round4(mean(scores)),
		MinPairScore: slices.Min(scores),
		MaxPairScore: slices.Max(scores),
		AgentCount:   len(f.ids),
		PairCount:    len(f.pairs),
		Pairs:        f.pairs,
		Outliers:     outliers,
		Clusters:     clusters,
		Divergences:  f.divergences(),
		Summaries:    f.summaries(outliers, clusters),
	}
}

func scoresOf(pairs []Pair) []float64 {
	scores := make([]float64, len(pairs))
	for i, pair := range pairs {
		scores[i] = pair.Result.Score
	}
	return scores
}

// pairsOf returns the pairs that id is in.
func (f *fleet) pairsOf(id string) []Pair {
	var mine []Pair
	for _, pair := range f.pairs {
		if pair.A == id || pair.B == id {
			mine = append(mine, pair)
		}
	}
	return mine
}

func (f *fleet) meanScore(id string) float64 { return mean(scoresOf(f.pairsOf(id))) }

func (f *fleet) summaries(outliers []Outlier, clusters []Cluster) []Summary {
	summaries := []Summary{}
	for _, id := range f.ids {
		s := Summary{AgentID: id, MeanScore: similarity.Round4(f.meanScore(id))}
		for _, pair := range f.pairsOf(id) {
			if pair.Result.Compatible {
				s.Compatible++
			}
			if len(pair.Result.ValueAlignment.Conflicts) > 0 {
				s.Conflicts++
			}
		}
		s.ClusterID = slices.IndexFunc(clusters, func(c Cluster) bool { return slices.Contains(c.AgentIDs, id) })
		s.IsOutlier = slices.ContainsFunc(outliers, func(o Outlier) bool { return o.AgentID == id })
		summaries = append(summaries, s)
	}
	return summaries
}
