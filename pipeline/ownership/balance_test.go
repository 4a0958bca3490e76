package ownership

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// Whoever joins, leaves and hands over: each member is to have as many partitions as any other, or
// one more; an owner that stays keeps its partitions until it hands them over; each change of an
// owner is a new epoch; and no more partitions move than must.
func TestBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s stream.Shares
		joined := 0
		for i := range rapid.IntRange(1, 30).Draw(t, "changes") {
			epoch := uint64(i + 1)
			before := s
			before.Members = append([]stream.Holder(nil), s.Members...)
			switch n := len(s.Members); rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				add(&s, stream.Holder{ID: fmt.Sprint("m", joined)})
				joined++
			case 1:
				if n > 0 {
					remove(&s, s.Members[rapid.IntRange(0, n-1).Draw(t, "leaver")].ID)
				}
			case 2:
				if n > 0 {
					giver := s.Members[rapid.IntRange(0, n-1).Draw(t, "giver")].ID
					for p := range s.Partitions {
						if s.Partitions[p].Owner == giver {
							pass(&s.Partitions[p], epoch)
						}
					}
				}
			}
			handed := s
			balance(&s, epoch)
			demandBalance(t, &before, &handed, &s)
		}
	})
}

func demandBalance(t *rapid.T, before, handed, after *stream.Shares) {
	shares, moved := map[string]int{}, 0
	for p := range after.Partitions {
		was, given, is := before.Partitions[p], handed.Partitions[p], after.Partitions[p]
		shares[is.Heir]++
		if (is.Owner != was.Owner) != (is.Epoch > was.Epoch) {
			t.Fatalf("partition %d: from %+v to %+v", p, was, is)
		}
		if isMember(after, given.Owner) && is.Owner != given.Owner {
			t.Fatalf("partition %d was taken from %s, which is there: %+v", p, given.Owner, is)
		}
		if isMember(after, was.Heir) && was.Heir != is.Heir {
			moved++
		}
	}
	if len(after.Members) == 0 {
		if shares[""] != subject.Partitions {
			t.Fatalf("without members the heirs are %v", shares)
		}
		return
	}
	for _, m := range after.Members {
		if n := shares[m.ID]; n < subject.Partitions/len(after.Members) || n > (subject.Partitions-1)/len(after.Members)+1 {
			t.Fatalf("of %d members %s gets %d partitions", len(after.Members), m.ID, n)
		}
	}
	if joined := len(after.Members) > len(before.Members); !joined && moved > 0 || moved > subject.Partitions/len(after.Members) {
		t.Fatalf("%d partitions move between members that stay", moved)
	}
}
