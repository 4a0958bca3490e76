package coherence

import (
	"errors"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Both bounds are inside the window (AAP section 9.4).
func TestFresh(t *testing.T) {
	for _, c := range []struct {
		age  time.Duration
		want error
	}{
		{0, nil}, {300 * time.Second, nil}, {-300 * time.Second, nil},
		{300*time.Second + 1, ErrStale}, {-300*time.Second - 1, ErrFuture},
	} {
		if err := Fresh(now.Add(-c.age), now); !errors.Is(err, c.want) {
			t.Errorf("age %s: %v", c.age, err)
		}
	}
	for _, at := range []time.Time{{}, schema.EarliestTime, schema.LatestTime} {
		if Fresh(at, now) == nil {
			t.Errorf("%s counts as fresh", at)
		}
	}
}
