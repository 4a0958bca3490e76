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
