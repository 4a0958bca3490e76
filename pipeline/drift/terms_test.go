package drift

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// endsTerm ends a term when it is asked for states.
type endsTerm struct {
	Rows
	end context.CancelFunc
}

func (r endsTerm) DriftStates(ctx context.Context, _ time.Time, _ map[int][]store.SeriesKey) ([]store.DriftState, error) {
	r.end()
	return nil, ctx.Err()
}

// A term may end while the states of a slice are read. The next one begins with older messages: the slice that
// was not folded must not come before them, since messages before the newest one count as received.
func TestTermEndsWhileStatesAreRead(t *testing.T) {
	older, newer := message(1, "a", noon, usual("tr-1", "a", noon)), message(2, "a", noon, usual("tr-2", "a", noon))
	r := reads(t, &parcels{next: [][]stream.Message{{newer}}}, clockSlack, 0)
	ctx, end := context.WithCancel(t.Context())
	r.rows = endsTerm{end: end}
	if err := r.next(ctx); err == nil {
		t.Fatal("the term did not end")
	}
	r.rows, r.source = noStates{}, &parcels{next: [][]stream.Message{{older, newer}}}
	r.forget(noon, 0)
	if err := r.next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.partitions[0].fold.queue.waiting; n != 2 {
		t.Errorf("%d traces wait, want both", n)
	}
}
