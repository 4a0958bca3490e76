package coherence

import (
	"errors"
	"time"

	"github.com/plumbline/plumbline/aap"
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
	f, err := newFleet(members, at)
	if err != nil {
		return Fleet{}, err
	}
	for i := range f.sides {
		for j := i + 1; j < len(f.sides); j++ {
			f.add(i, j, a.judge(f.sides[i], f.sides[j], Task{Required: required}, at))
		}
	}
	answer := f.report()
	answer.Metadata = FleetMetadata{
		EngineVersion: EngineVersion, Profile: aap.ProfileSpec,
		MinCoherence: a.minimum, Methodology: a.methodology, AssessedAt: at.UTC(),
	}
	return answer, nil
}
