package coherence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plumbline/plumbline/aap/similarity"
	"github.com/plumbline/plumbline/schema"
)

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

func newFleet(members []Member, at time.Time) (*fleet, error) {
	switch n := len(members); {
	case n < 2:
		return nil, fmt.Errorf("%w: %d", ErrFleetTooSmall, n)
	case n > MaxFleet:
		return nil, fmt.Errorf("%w: %d members, at most %d are compared", ErrFleetTooLarge, n, MaxFleet)
	}
	f := &fleet{place: make([][]int, len(members))}
	known := map[string]bool{}
	for i, m := range members {
		if known[m.ID] {
			return nil, fmt.Errorf("%w: %q", ErrDuplicateMember, m.ID)
		}
		known[m.ID] = true
		f.ids, f.sides = append(f.ids, m.ID), append(f.sides, newSide(m.Party, at))
		f.place[i] = make([]int, len(members))
	}
	return f, nil
}

func (f *fleet) add(i, j int, result schema.Assessment) {
	f.place[i][j], f.place[j][i] = len(f.pairs), len(f.pairs)
	f.pairs = append(f.pairs, Pair{A: f.ids[i], B: f.ids[j], Result: result})
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

// outliers finds the members with low mean scores. A fleet of two has none: both members have
// the score of their only pair.
func (f *fleet) outliers() []Outlier {
	found := []Outlier{}
	means := make([]float64, len(f.ids))
	for i := range f.ids {
		means[i] = f.meanScore(i)
	}
	center := mean(means)
	spread := deviation(means, center)
	if spread < summing {
		return found
	}
	for i, id := range f.ids {
		if below := (center - means[i]) / spread; below >= outlierDeviation-summing {
			found = append(found, Outlier{
				AgentID: id, AgentMean: similarity.Round4(means[i]), FleetMean: similarity.Round4(center),
				Deviation: similarity.Round4(below), PrimaryConflicts: f.conflicting(i),
			})
		}
	}
	return found
}

// deviation is the standard deviation of the whole population.
func deviation(numbers []float64, center float64) float64 {
	var squares []float64
	for _, n := range numbers {
		squares = append(squares, (n-center)*(n-center))
	}
	return math.Sqrt(mean(squares))
}

// conflicting lists the values in conflict between a member and others.
func (f *fleet) conflicting(i int) []string {
	var values []string
	f.others(i, func(_ int, p *Pair) {
		for _, c := range p.Result.Alignment.Conflicts {
			if c.ResolvedBy != "" {
				continue
			}
			if c.RefusedBy == schema.Responder {
				values = append(values, c.InitiatorValue)
			} else {
				values = append(values, c.ResponderValue)
			}
		}
	})
	return distinct(values)
}

func (f *fleet) summaries(outliers []Outlier, clusters []Cluster) []Summary {
	summaries := []Summary{}
	for i, id := range f.ids {
		s := Summary{AgentID: id, MeanScore: similarity.Round4(f.meanScore(i))}
		f.others(i, func(_ int, p *Pair) {
			if p.Result.Compatible {
				s.Compatible++
			}
			if slices.ContainsFunc(p.Result.Reasons, isConflict) {
				s.Conflicts++
			}
		})
		s.ClusterID = slices.IndexFunc(clusters, func(c Cluster) bool { return slices.Contains(c.AgentIDs, id) })
		s.IsOutlier = slices.ContainsFunc(outliers, func(o Outlier) bool { return o.AgentID == id })
		summaries = append(summaries, s)
	}
	return summaries
}

func isConflict(r schema.Reason) bool { return r.Code == schema.ReasonValueConflict }
