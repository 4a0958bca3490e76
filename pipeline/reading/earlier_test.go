package reading

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// The look-ups of small posts share a query, and each gets its own answer. A large one does not wait.
func TestSmallLookupsShareAQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []int
		s := &Service{cfg: Default(), log: slog.New(slog.DiscardHandler), lookups: make(chan struct{}, lookupsAtOnce)}
		s.stored = func(_ context.Context, at []time.Time, digests []schema.Digest) (map[schema.Digest]uint64, error) {
			if len(at) != len(digests) {
				t.Errorf("%d times of %d lines", len(at), len(digests))
			}
			asked = append(asked, len(digests))
			found := map[schema.Digest]uint64{}
			for _, digest := range digests[:len(digests)-1] { // the last one is not stored
				found[digest] = uint64(digest[0])
			}
			return found, nil
		}
		lines := func(first, n int) (digests []schema.Digest) {
			for i := range n {
				digests = append(digests, schema.Digest{byte(first + i), byte((first + i) >> 8)})
			}
			return digests
		}
		ask := func(digests []schema.Digest) []uint64 {
			return s.Sequences(t.Context(), make([]time.Time, len(digests)), digests)
		}
		var together sync.WaitGroup
		answers := make([][]uint64, 3)
		for i := range answers {
			together.Go(func() {
				time.Sleep(time.Duration(i) * lookupLinger / 4)
				answers[i] = ask(lines(1+2*i, 2))
			})
		}
		together.Wait()
		if want := [][]uint64{{1, 2}, {3, 4}, {5, 0}}; !slices.EqualFunc(answers, want, slices.Equal[[]uint64]) {
			t.Errorf("answers %v, want %v", answers, want)
		}
		began := time.Now()
		ask(lines(0, lookupLines))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a look-up of %d lines waited for %s", lookupLines, waited)
		}
		if want := []int{6, lookupLines}; !slices.Equal(asked, want) {
			t.Errorf("queries for %v lines, want %v", asked, want)
		}
	})
}
