package drift

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// A request completes the session after the traces that were published before it, even if those
// still wait. Without requests the same traces form no baseline, because no session is complete.
func TestRequestedEndsCompleteSessions(t *testing.T) {
	for name, c := range map[string]struct {
		ended []string // agents of which the end of both sessions is requested
		each  int      // traces of each session
		want  int      // traces of the baseline; 0: none is formed
	}{
		"requested":        {[]string{"a"}, 2, 4},
		"longer sessions":  {[]string{"a"}, 3, 6},
		"requested twice":  {[]string{"a", "a"}, 2, 4},
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
		if formed != c.want || len(y.finished) != int(s.sequence) {
			t.Errorf("%s: a baseline of %d traces, want %d; %d of %d messages are finished", name, formed, c.want, len(y.finished), s.sequence)
		}
	}
}
