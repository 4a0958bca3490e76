package coherence

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

// MaxFleet is the maximum number of members of a fleet: all pairs are compared.
const MaxFleet = 250

// The errors of a fleet that cannot be judged.
var (
	ErrFleetTooSmall   = errors.New("fleet coherence needs at least 2 members")
	ErrFleetTooLarge   = errors.New("the fleet is too large")
	ErrDuplicateMember = errors.New("two members of the fleet have the same id")
)

// Member is one agent of a fleet.
type Member struct {
	ID    string // as the answer shows it; usually the agent_id
	Party Party
}

// Fleet is the coherence of many agents, computed from all pairs. It has the members of the
// public SDK's answer and three more.
type Fleet struct {
	Score        float64       `json:"fleet_score"` // mean of all pairs, four decimals
	MinPairScore float64       `json:"min_pair_score"`
	MaxPairScore float64       `json:"max_pair_score"`
	AgentCount   int           `json:"agent_count"`
	PairCount    int           `json:"pair_count"`
	Compatible   bool          `json:"compatible"` // whether every pair is compatible
	WeakestPair  PairScore     `json:"weakest_pair"`
	Pairs        []Pair        `json:"pairwise_matrix"`
	Outliers     []Outlier     `json:"outliers"`
	Clusters     []Cluster     `json:"clusters"`
	Divergences  []Divergence  `json:"divergence_report"`
	Summaries    []Summary     `json:"agent_summaries"`
	Metadata     FleetMetadata `json:"coherence_metadata"`
}

// Pair is the coherence of two members; A counts as the initiator.
type Pair struct {
	A      string            `json:"agent_a"`
	B      string            `json:"agent_b"`
	Result schema.Assessment `json:"result"`
}

// PairScore is a pair without its details.
type PairScore struct {
	A     string  `json:"agent_a"`
	B     string  `json:"agent_b"`
	Score float64 `json:"score"`
}

// Outlier is a member whose mean score is at least one standard deviation below that of the
// fleet.
type Outlier struct {
	AgentID          string   `json:"agent_id"`
	AgentMean        float64  `json:"agent_mean_score"`
	FleetMean        float64  `json:"fleet_mean_score"`
	Deviation        float64  `json:"deviation"` // below the mean, in standard deviations
	PrimaryConflicts []string `json:"primary_conflicts"`
}

// Cluster is a set of members connected by compatible pairs.
type Cluster struct {
	ID                int      `json:"cluster_id"`
	AgentIDs          []string `json:"agent_ids"`
	InternalCoherence float64  `json:"internal_coherence"` // mean of the pairs in the cluster, 1 for one member
	SharedValues      []string `json:"shared_values"`
	Distinguishing    []string `json:"distinguishing_values"` // shared in the cluster, declared nowhere else
}

// Divergence is a value that not all members declare or that a member refuses.
type Divergence struct {
	Value       string   `json:"value"`
	Declaring   []string `json:"agents_declaring"`
	Missing     []string `json:"agents_missing"`
	Conflicting []string `json:"agents_conflicting"`
	Impact      float64  `json:"impact_on_fleet_score"` // (missing + conflicting) / members
}

// Summary is the position of one member.
type Summary struct {
	AgentID    string  `json:"agent_id"`
	MeanScore  float64 `json:"mean_score"`
	Compatible int     `json:"compatible_count"`
	Conflicts  int     `json:"conflict_count"` // pairs with an unresolved conflict
	ClusterID  int     `json:"cluster_id"`
	IsOutlier  bool    `json:"is_outlier"`
}

// FleetMetadata says how a fleet's result was computed.
type FleetMetadata struct {
	EngineVersion string    `json:"engine_version"`
	Profile       string    `json:"profile"`
	MinCoherence  float64   `json:"min_coherence"`
	Methodology   string    `json:"methodology,omitempty"`
	AssessedAt    time.Time `json:"assessed_at"`
}

// Fleet judges all pairs of members on the values that a task requires. Without required values
// it uses the union of each pair's values. The error wraps ErrFleetTooSmall, ErrFleetTooLarge
// or ErrDuplicateMember.
func (a *Assessor) Fleet(members []Member, required []string, at time.Time) (Fleet, error) {
	switch n := len(members); {
	case n < 2:
		return Fleet{}, fmt.Errorf("%w: %d", ErrFleetTooSmall, n)
	case n > MaxFleet:
		return Fleet{}, fmt.Errorf("%w: %d members, at most %d are compared", ErrFleetTooLarge, n, MaxFleet)
	}
	f := &fleet{place: make([][]int, len(members))}
	known := map[string]bool{}
	for i, m := range members {
		if known[m.ID] {
			return Fleet{}, fmt.Errorf("%w: %q", ErrDuplicateMember, m.ID)
		}
		known[m.ID] = true
		f.ids, f.sides = append(f.ids, m.ID), append(f.sides, newSide(m.Party, at))
		f.place[i] = make([]int, len(members))
	}
	for i := range f.sides {
		for j := i + 1; j < len(f.sides); j++ {
			f.place[i][j], f.place[j][i] = len(f.pairs), len(f.pairs)
			result := a.judge(f.sides[i], f.sides[j], Task{Required: required}, at)
			f.pairs = append(f.pairs, Pair{A: f.ids[i], B: f.ids[j], Result: result})
		}
	}
	answer := f.report()
	answer.Metadata = FleetMetadata{
		EngineVersion: EngineVersion, Profile: aap.ProfileSpec,
		MinCoherence: a.minimum, Methodology: a.methodology, AssessedAt: at.UTC(),
	}
	return answer, nil
}

// outlierDeviation is the distance of an outlier below the mean, in standard deviations. It is
// that of the public SDK.
const outlierDeviation = 1.0

// summing is how far the rounding of sums can change a deviation; smaller differences are
// ignored.
const summing = 1e-9

// fleet holds the members in order and all their pairs.
type fleet struct {
	ids   []string
	sides []*side
	pairs []Pair
	place [][]int // index of the pair of two members
}

// pair returns the pair of two members.
func (f *fleet) pair(i, j int) *Pair { return &f.pairs[f.place[i][j]] }

// others calls visit for every pair with member i.
func (f *fleet) others(i int, visit func(j int, p *Pair)) {
	for j := range f.ids {
		if j != i {
			visit(j, f.pair(i, j))
		}
	}
}

func (f *fleet) report() Fleet {
	compare := func(a, b Pair) int { return cmp.Compare(a.Result.Score, b.Result.Score) }
	weakest, strongest := slices.MinFunc(f.pairs, compare), slices.MaxFunc(f.pairs, compare)
	outliers, clusters := f.outliers(), f.clusters()
	scores := make([]float64, len(f.pairs))
	for i := range f.pairs {
		scores[i] = f.pairs[i].Result.Score
	}
	return Fleet{
		Score:        similarity.Round4(mean(scores)),
		MinPairScore: weakest.Result.Score,
		MaxPairScore: strongest.Result.Score,
		AgentCount:   len(f.ids),
		PairCount:    len(f.pairs),
		Compatible:   !slices.ContainsFunc(f.pairs, func(p Pair) bool { return !p.Result.Compatible }),
		WeakestPair:  PairScore{weakest.A, weakest.B, weakest.Result.Score},
		Pairs:        f.pairs,
		Outliers:     outliers,
		Clusters:     clusters,
		Divergences:  f.divergences(),
		Summaries:    f.summaries(outliers, clusters),
	}
}

// mean sums in ascending order, so the order of the members does not matter.
func mean(numbers []float64) float64 {
	var sum float64
	for _, n := range slices.Sorted(slices.Values(numbers)) {
		sum += n
	}
	return sum / float64(len(numbers))
}

func (f *fleet) meanScore(i int) float64 {
	var scores []float64
	f.others(i, func(_ int, p *Pair) { scores = append(scores, p.Result.Score) })
	return mean(scores)
}

// outliers finds the members with low mean scores, and the unresolved values in conflict between
// them and others. A fleet of two has none: both members have
// the score of their only pair.
func (f *fleet) outliers() []Outlier {
	found := []Outlier{}
	means := make([]float64, len(f.ids))
	for i := range f.ids {
		means[i] = f.meanScore(i)
	}
	center := mean(means)
	var squares []float64
	for _, n := range means {
		squares = append(squares, (n-center)*(n-center))
	}
	spread := math.Sqrt(mean(squares)) // the standard deviation of the whole population
	if spread < summing {
		return found
	}
	for i, id := range f.ids {
		if below := (center - means[i]) / spread; below >= outlierDeviation-summing {
			var conflicts []string
			f.others(i, func(_ int, p *Pair) {
				for _, c := range p.Result.Alignment.Conflicts {
					switch {
					case c.ResolvedBy != "":
					case c.RefusedBy == schema.Responder:
						conflicts = append(conflicts, c.InitiatorValue)
					default:
						conflicts = append(conflicts, c.ResponderValue)
					}
				}
			})
			found = append(found, Outlier{
				AgentID: id, AgentMean: similarity.Round4(means[i]), FleetMean: similarity.Round4(center),
				Deviation: similarity.Round4(below), PrimaryConflicts: distinct(conflicts),
			})
		}
	}
	return found
}

func (f *fleet) summaries(outliers []Outlier, clusters []Cluster) []Summary {
	summaries := []Summary{}
	for i, id := range f.ids {
		s := Summary{AgentID: id, MeanScore: similarity.Round4(f.meanScore(i))}
		f.others(i, func(_ int, p *Pair) {
			if p.Result.Compatible {
				s.Compatible++
			}
			if slices.ContainsFunc(p.Result.Reasons, func(r schema.Reason) bool { return r.Code == schema.ReasonValueConflict }) {
				s.Conflicts++
			}
		})
		s.ClusterID = slices.IndexFunc(clusters, func(c Cluster) bool { return slices.Contains(c.AgentIDs, id) })
		s.IsOutlier = slices.ContainsFunc(outliers, func(o Outlier) bool { return o.AgentID == id })
		summaries = append(summaries, s)
	}
	return summaries
}

// clusters returns the connected components of the graph of compatible pairs, ordered by their
// first member. Each lists its members in breadth-first order.
func (f *fleet) clusters() []Cluster {
	clusters := []Cluster{}
	visited := make([]bool, len(f.ids))
	for i := range f.ids {
		if visited[i] {
			continue
		}
		visited[i] = true
		members := []int{i}
		for next := 0; next < len(members); next++ {
			f.others(members[next], func(j int, p *Pair) {
				if p.Result.Compatible && !visited[j] {
					visited[j] = true
					members = append(members, j)
				}
			})
		}
		clusters = append(clusters, f.cluster(len(clusters), members))
	}
	return clusters
}

func (f *fleet) cluster(number int, members []int) Cluster {
	inside := map[int]bool{}
	ids, scores := []string{}, []float64{}
	for n, i := range members {
		inside[i] = true
		ids = append(ids, f.ids[i])
		for _, j := range members[n+1:] {
			scores = append(scores, f.pair(i, j).Result.Score)
		}
	}
	internal := 1.0 // of one member
	if len(scores) > 0 {
		internal = mean(scores)
	}
	shared := selected(f.sides[members[0]].declared, func(value string) bool {
		return !slices.ContainsFunc(members, func(i int) bool { return !f.sides[i].holds(value) })
	})
	distinguishing := selected(shared, func(value string) bool {
		for i, s := range f.sides {
			if !inside[i] && s.holds(value) {
				return false
			}
		}
		return true
	})
	return Cluster{
		ID: number, AgentIDs: ids, InternalCoherence: similarity.Round4(internal),
		SharedValues: shared, Distinguishing: distinguishing,
	}
}

// divergences lists the values that the members do not all share, those of the greatest impact
// first.
func (f *fleet) divergences() []Divergence {
	report := []Divergence{}
	var declared [][]string
	for _, s := range f.sides {
		declared = append(declared, s.declared)
	}
	for _, value := range distinct(declared...) {
		d := Divergence{Value: value, Declaring: []string{}, Missing: []string{}, Conflicting: []string{}}
		for i, s := range f.sides {
			if s.holds(value) {
				d.Declaring = append(d.Declaring, f.ids[i])
			} else {
				d.Missing = append(d.Missing, f.ids[i])
			}
			if s.refuses[value] {
				d.Conflicting = append(d.Conflicting, f.ids[i])
			}
		}
		if apart := len(d.Missing) + len(d.Conflicting); apart > 0 {
			d.Impact = similarity.Round4(float64(apart) / float64(len(f.ids)))
			report = append(report, d)
		}
	}
	slices.SortStableFunc(report, func(a, b Divergence) int { return cmp.Compare(b.Impact, a.Impact) })
	return report
}
