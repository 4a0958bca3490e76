package drift

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
)

// lateCards does not know a card before it was asked a number of times.
type lateCards struct {
	anyCard
	unknown int
}

func (r *lateCards) Lookup(ctx context.Context, cardID string) (*cards.Card, error) {
	if r.unknown--; r.unknown >= 0 {
		return nil, cards.ErrUnknown
	}
	return r.anyCard.Lookup(ctx, cardID)
}

// Traces that arrive before their card are measured without it. A replay, which knows it, has another
// baseline in mode sessions (ADR 13), and the same points under the published rule.
func TestTracesBeforeTheirCard(t *testing.T) {
	fold := func(cfg Config, unknown int) *table {
		b, at := newBench(cfg, &lateCards{unknown: unknown}, nil), noon
		for n := range 60 {
			session := fmt.Sprintf(`"session_id":"s-%d"`, n/5)
			if n%5 == 4 {
				session += `,"metadata":{"session_end":true}`
			}
			raw := bytes.Replace(usual(fmt.Sprint("tr-", n), "a", at), []byte(`"session_id":"s"`), []byte(session), 1)
			b.receive(message(uint64(n+1), "a", at, raw))
			at = at.Add(time.Second)
		}
		b.finish()
		done := newTable()
		done.insert(b.take())
		return done
	}
	compare(t, fold(publishedRule(), 5).listing(), fold(publishedRule(), 0).listing())
	live, replayed := fold(Default(), 5), fold(Default(), 0)
	differ := 0
	for key, p := range live.points {
		again := replayed.points[key]
		if what := contradiction(&p, &again); strings.Contains(what, "against baseline") {
			differ++
		} else if what != "" {
			t.Errorf("%s: %s", p.TraceID, what)
		}
	}
	if differ != 10 || len(live.points) != 60 {
		t.Errorf("%d of %d points differ, want the 10 that are compared", differ, len(live.points))
	}
}
