package drift

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// A request completes the session after the traces that were published before it, even if those
// still wait. Without requests the same traces form no baseline, because no session is complete.
func TestRequestedEndsCompleteSessions(t *testing.T) {
	for name, c := range map[string]struct {
		ended []string // agents of which the end of both sessions is requested
		each  int      // traces of each session
		want  int      // traces of the baseline; 0: none is formed
	}{
		"requested":        {[]string{"a"}, 2, 5}, // with the trace that comes after the ends
		"longer sessions":  {[]string{"a"}, 3, 7},
		"requested twice":  {[]string{"a", "a"}, 2, 5},
		"not requested":    {nil, 2, 0},
		"of another agent": {[]string{"b"}, 2, 0},
	} {
		cfg := Default()
		cfg.Mode = "sessions"
		s := &script{bench: newBench(cfg, noCards{}, nil), at: noon, found: map[string]string{}}
		s.learnSoon()
		within := func(session string, n int) {
			raw := usual(fmt.Sprintf("%s-%d", session, n), "a", s.at)
			s.send(bytes.Replace(raw, []byte(`"session_id":"s"`), fmt.Appendf(nil, `"session_id":%q`, session), 1))
		}
		for n := range c.each {
			within("s-1", n)
			within("s-2", n)
		}
		for _, agent := range c.ended {
			for _, session := range []string{"s-1", "s-2"} {
				s.sequence++
				s.receive(message(s.sequence, agent, s.at, requestedEnd(agent, session)))
			}
		}
		s.fold.idle(time.Minute)
		within("s-3", 0)
		s.fold.idle(time.Minute)
		y, formed := s.take(), 0
		for i := range y.baselines {
			formed = int(y.baselines[i].Traces)
		}
		if formed != c.want || y.messages != int(s.sequence) {
			t.Errorf("%s: a baseline of %d traces, want %d; %d of %d messages are finished", name, formed, c.want, y.messages, s.sequence)
		}
	}
}

// A request reaches the series of its agent whose messages are newest, wherever they are: so an agent that
// invents cards makes drift keep no more entries than that.
func TestRequestReachesTheNewestSeries(t *testing.T) {
	const cards = store.MostSeries + 6
	cfg := Default()
	cfg.WaitingTraces = 1
	for _, evicts := range []bool{false, true} {
		b := newBench(cfg, noCards{}, newTable())
		for n := range cards {
			at := noon.Add(time.Duration(n) * time.Second)
			raw := bytes.Replace(usual(fmt.Sprintf("tr-%d", n), "a", at), []byte(`"ac-a"`), fmt.Appendf(nil, "%q", fmt.Sprintf("ac-%d", n*3%cards)), 1)
			b.receive(message(uint64(n+1), "a", at, raw))
		}
		b.finish()
		b.states.insert(b.take())
		b.fold.stored()
		if evicts {
			b.fold.evict(0)
		}
		b.receive(message(cards+1, "a", noon.Add(time.Hour), requestedEnd("a", "s")))
		reached := 0
		for n := range cards {
			c := b.fold.series[seriesKey{AgentID: "a", CardID: fmt.Sprintf("ac-%d", n*3%cards)}]
			waits := c != nil && len(c.waiting) == 1
			if waits {
				reached++
			}
			if newest := n >= cards-store.MostSeries; waits != newest {
				t.Errorf("evicted %t: the request waits for series %d: %t", evicts, n, waits)
			}
		}
		if reached != store.MostSeries {
			t.Errorf("evicted %t: the request waits for %d series, want %d", evicts, reached, store.MostSeries)
		}
	}
}
