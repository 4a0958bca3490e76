package ownership

import (
	"slices"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// add makes a holder the last member.
func add(s *stream.Shares, holder stream.Holder) {
	if !isMember(s, holder.ID) {
		s.Members = append(s.Members, holder)
	}
}

// remove removes the members with these ids.
func remove(s *stream.Shares, ids ...string) {
	s.Members = slices.DeleteFunc(s.Members, func(h stream.Holder) bool { return slices.Contains(ids, h.ID) })
}

func isMember(s *stream.Shares, id string) bool {
	return slices.ContainsFunc(s.Members, func(h stream.Holder) bool { return h.ID == id })
}

// balance gives each member as many partitions as any other, or one more, and moves as few as
// possible. A partition whose owner is no member goes to its heir at once, in a new epoch. Any other
// one stays with its owner until that hands it over.
func balance(s *stream.Shares, epoch uint64) {
	if len(s.Members) > 0 {
		chooseHeirs(s)
	}
	for p := range s.Partitions {
		part := &s.Partitions[p]
		if len(s.Members) == 0 {
			part.Heir = ""
		}
		if !isMember(s, part.Owner) {
			pass(part, epoch)
		}
	}
}

// chooseHeirs chooses the heirs.
func chooseHeirs(s *stream.Shares) {
	counts := map[string]int{}
	byCount := func(a, b stream.Holder) int { return counts[a.ID] - counts[b.ID] }
	var free []int
	for p := range s.Partitions {
		if heir := s.Partitions[p].Heir; isMember(s, heir) {
			counts[heir]++
		} else {
			free = append(free, p)
		}
	}
	for {
		fewest, most := slices.MinFunc(s.Members, byCount).ID, slices.MaxFunc(s.Members, byCount).ID
		if len(free) == 0 && counts[most] > counts[fewest]+1 {
			counts[most]--
			free = append(free, slices.IndexFunc(s.Partitions[:], func(part stream.Share) bool { return part.Heir == most }))
		}
		if len(free) == 0 {
			return
		}
		s.Partitions[free[0]].Heir = fewest
		counts[fewest]++
		free = free[1:]
	}
}

// pass gives a partition to its heir.
func pass(part *stream.Share, epoch uint64) {
	if part.Owner != part.Heir {
		part.Owner, part.Epoch = part.Heir, epoch
	}
}
