package coherence

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/aap/similarity"
)

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
	ids := []string{}
	for _, i := range members {
		inside[i] = true
		ids = append(ids, f.ids[i])
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
		ID: number, AgentIDs: ids, InternalCoherence: similarity.Round4(f.internalCoherence(members)),
		SharedValues: shared, Distinguishing: distinguishing,
	}
}

// internalCoherence is the mean score of the pairs within a cluster, 1 for one member.
func (f *fleet) internalCoherence(members []int) float64 {
	if len(members) == 1 {
		return 1
	}
	var scores []float64
	for n, i := range members {
		for _, j := range members[n+1:] {
			scores = append(scores, f.pair(i, j).Result.Score)
		}
	}
	return mean(scores)
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
