package coherence

import (
	"errors"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Both ends of the window belong to it (AAP section 9.4).
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
			t.Errorf("%s is fresh", at)
		}
	}
}

// The messages of one handshake are no replays of each other, and no two keys
// have one text.
func TestReplayKeys(t *testing.T) {
	request, check := &schema.CardRequest{RequestID: "r"}, &schema.CoherenceCheck{RequestID: "r"}
	keys := map[ReplayKey]bool{KeyOf("a", request): true, KeyOf("a", check): true, KeyOf("b", check): true}
	if len(keys) != 3 || !keys[KeyOf("a", &schema.CardRequest{RequestID: "r", Timestamp: now})] {
		t.Errorf("keys %v", keys)
	}
	if a, b := (ReplayKey{"a b", "c", "t"}).String(), (ReplayKey{"a", "b c", "t"}).String(); a == b {
		t.Errorf("two keys are %s", a)
	}
	if a, b := (ReplayKey{`a" "b`, "c", "t"}).String(), (ReplayKey{"a", `b" "c`, "t"}).String(); a == b {
		t.Errorf("two keys are %s", a)
	}
}
