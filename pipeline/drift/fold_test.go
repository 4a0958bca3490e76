package drift

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// script folds traces of agent "a" and collects the status of each.
type script struct {
	*bench
	sequence uint64
	at       time.Time // by the broker's clock
	found    map[string]string
	alerts   int
}

func newScript() *script {
	return &script{bench: newBench(publishedRule(), noCards{}, newTable()), at: noon, found: map[string]string{}}
}

// send delivers a trace a millisecond after the previous one.
func (s *script) send(raw []byte) {
	s.sequence++
	s.at = s.at.Add(time.Millisecond)
	s.receive(message(s.sequence, "a", s.at, raw))
}

// finish makes the waiting traces due.
func (s *script) finish() {
	s.at = s.at.Add(time.Minute)
	s.fold.idle(time.Minute)
	y := s.take()
	for _, p := range y.points {
		s.found[p.TraceID] += p.Status + " "
	}
	if s.states != nil {
		s.states.insertPoints(y.points)
	}
	s.alerts += len(y.alerts)
}

// learn sends the ten traces of a baseline and more, dated a second apart from `from` on.
func (s *script) learn(from time.Time, traces int) {
	for n := range traces {
		s.send(usual(fmt.Sprintf("usual-%s-%d", from.Format(time.RFC3339), n), "a", from.Add(time.Duration(n)*time.Second)))
	}
	s.finish()
}

func (s *script) check(t *testing.T, want map[string]string) {
	t.Helper()
	for id, status := range want {
		if s.found[id] != status {
			t.Errorf("%s is %q, want %q", id, s.found[id], status)
		}
	}
	if len(s.fold.waiting) != 0 || s.fold.queue.waiting != 0 || len(s.fold.queue.arrivals) != 0 {
		t.Errorf("traces still wait: %v", maps.Collect(maps.All(s.fold.waiting)))
	}
}

// A trace dated 2099, or some hours ahead, must not disable drift detection: neither for present
// traces nor for traces that are sent in with an earlier time.
func TestTraceDatedAheadHidesNothing(t *testing.T) {
	for name, past := range map[string]time.Duration{"now": time.Minute, "past": 24 * time.Hour} {
		for _, ahead := range []time.Time{time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), noon.Add(6 * time.Hour)} {
			s, from := newScript(), noon.Add(-past)
			s.learn(from, 12)
			s.send(usual("ahead", "a", ahead))
			s.finish()
			for n := range 3 {
				s.send(odd(fmt.Sprintf("odd-%d", n), "a", from.Add(time.Duration(20+n)*time.Second)))
				s.finish()
			}
			s.check(t, map[string]string{"ahead": "normal ", "odd-0": "low ", "odd-1": "low ", "odd-2": "drift "})
			if s.alerts != 1 {
				t.Errorf("%s, %s ahead: %d alerts", name, ahead, s.alerts)
			}
		}
	}
}

// A trace older than the last applied one is stored, and changes nothing.
func TestLateTraceIsNotUsed(t *testing.T) {
	s, from := newScript(), noon.Add(-time.Minute)
	s.learn(from, 12)
	s.send(odd("odd-0", "a", from.Add(20*time.Second)))
	s.send(odd("odd-1", "a", from.Add(22*time.Second)))
	s.finish()
	s.send(usual("late", "a", from.Add(21*time.Second)))
	s.send(odd("odd-2", "a", from.Add(22*time.Second)))
	s.finish()
	s.check(t, map[string]string{"odd-1": "low ", "late": "late ", "odd-2": "drift "})
	if s.alerts != 1 {
		t.Errorf("%d alerts, want the streak unbroken", s.alerts)
	}
}

// A copy counts once, and of two contents only the first counts: while the first waits, and after
// it was applied.
func TestCopiesAndConflictsAreNotUsed(t *testing.T) {
	for finished, want := range map[bool]string{
		false: "conflict low ", // the first still waits when the conflict is finished
		true:  "low conflict ",
	} {
		s, at := newScript(), noon.Add(-time.Second)
		s.learn(noon.Add(-time.Minute), 12)
		s.send(odd("twice", "a", at))
		if finished {
			s.finish()
		}
		s.send(odd("twice", "a", at))
		s.send(odd("twice", "a", at.Add(time.Millisecond)))
		s.finish()
		s.check(t, map[string]string{"twice": want})
	}
}

// Another content is a conflict, too, where the first two bytes of its digest are those of the first content.
func TestConflictOfAlikeDigests(t *testing.T) {
	at := noon.Add(-time.Second)
	first := odd("twice", "a", at)
	second := first
	for n := 1; bytes.Equal(first, second) || [shortMark]byte(shortDigest(first)) != [shortMark]byte(shortDigest(second)); n++ {
		second = odd("twice", "a", at.Add(time.Duration(n)))
	}
	for finished, want := range map[bool]string{false: "conflict low ", true: "low conflict "} {
		s := newScript()
		s.learn(noon.Add(-time.Minute), 12)
		s.send(first)
		if finished {
			s.finish()
		}
		s.send(second)
		s.finish()
		s.check(t, map[string]string{"twice": want})
	}
}

func shortDigest(raw []byte) []byte {
	sum := sha256.Sum256(raw)
	return sum[:shortMark]
}

// A burst of traces within the lateness cannot fill the memory.
func TestBurstIsBounded(t *testing.T) {
	cfg := publishedRule()
	cfg.WaitingTraces = 100
	s := &script{bench: newBench(cfg, noCards{}, nil), at: noon, found: map[string]string{}}
	for n := range 1000 {
		s.send(usual(fmt.Sprint(n), "a", noon))
		if s.fold.queue.waiting > 100 {
			t.Fatalf("%d traces wait", s.fold.queue.waiting)
		}
	}
	cfg = publishedRule()
	cfg.WaitingBytes = 50_000
	b := newBench(cfg, noCards{}, nil)
	for n := range 1000 {
		raw := usual(fmt.Sprint(n), "a", noon)
		b.receive(message(uint64(n+1), "a", noon, raw))
		if waiting := b.fold.queue.waiting * len(raw); waiting > 51_000 {
			t.Fatalf("%d bytes wait", waiting)
		}
	}
}

// A message that was received before changes nothing. The position stays before the first trace that
// waits.
func TestPositionIsBeforeWhatWaits(t *testing.T) {
	s := newScript()
	s.learn(noon.Add(-time.Minute), 1)
	first := s.sequence
	s.send(usual("waits", "a", s.at))
	s.receive(message(s.sequence, "a", s.at, usual("waits", "a", s.at)))
	s.send([]byte("no trace"))
	s.receive(message(s.sequence, "a", s.at, []byte("no trace")))
	if y, at := s.take(), s.fold.floor(s.sequence+7); y.messages != 1 || y.refused != 1 || at != first {
		t.Errorf("%d messages are finished, %d refused, the position is %d, want %d", y.messages, y.refused, at, first)
	}
	s.finish()
	if at := s.fold.floor(s.sequence + 7); at != s.sequence+7 {
		t.Errorf("where nothing waits the position is %d, want that of the reader, %d", at, s.sequence+7)
	}
	s.check(t, map[string]string{"waits": "baseline "})
}

// outlet keeps the alerts that are published.
type outlet []wire.Alert

func (o *outlet) PublishAlerts(_ context.Context, alerts []wire.Alert) error {
	*o = append(*o, alerts...)
	return nil
}

// A published alert says why its thresholds are not those of AAP section 8.3, and nothing where
// they are.
func TestPublishedAlertsNameTheMethodology(t *testing.T) {
	const methodology = "two low traces are enough for an agent that pays"
	cfg := publishedRule()
	cfg.Sustained, cfg.SimilarityThreshold, cfg.Methodology = 2, 0.35, methodology
	alert := publishedAlert(t, cfg)
	if alert.Methodology != methodology || alert.Analysis.Threshold != 0.35 || alert.Analysis.SustainedTraces != 2 {
		t.Errorf("the alert: %+v", alert)
	}
	cfg = publishedRule()
	cfg.Methodology = methodology
	if alert = publishedAlert(t, cfg); alert.Methodology != "" || alert.Analysis.SustainedTraces != 3 {
		t.Errorf("under the published thresholds: %+v", alert)
	}
}

// publishedAlert returns the one alert of at most three low traces.
func publishedAlert(t *testing.T, cfg Config) (alert schema.DriftAlert) {
	t.Helper()
	s := &script{bench: newBench(cfg, noCards{}, nil), at: noon, found: map[string]string{}}
	s.learn(noon.Add(-time.Minute), 10)
	s.send(odd("low-1", "a", s.at))
	s.send(odd("low-2", "a", s.at.Add(time.Second)))
	s.send(odd("low-3", "a", s.at.Add(2*time.Second)))
	s.fold.idle(time.Minute)
	var published outlet
	if err := publishAlerts(t.Context(), &published, s.take().alerts); err != nil || len(published) != 1 {
		t.Fatalf("%d alerts, error %v", len(published), err)
	}
	if err := json.Unmarshal(published[0].Data, &alert); err != nil {
		t.Fatal(err)
	}
	return alert
}

// The broker's clock is set back by a day and corrected again: traces that arrive meanwhile keep
// their order of arrival, are not late, and wait no longer than usual.
func TestBrokerClockIsSetBack(t *testing.T) {
	for name, jumps := range map[string][2]time.Duration{
		"back, then right":  {-24 * time.Hour, 24 * time.Hour},
		"ahead, then right": {24 * time.Hour, -24 * time.Hour},
		"a step back":       {-3 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.learn(noon.Add(-time.Hour), 12)
			want, right := map[string]string{}, s.at
			for n, jump := range jumps {
				s.at = s.at.Add(jump)
				for i := range 3 {
					id := fmt.Sprintf("after-%d-%d", n, i)
					right = right.Add(time.Second)
					s.send(usual(id, "a", right))
					want[id] = "normal "
				}
				s.finish()
				s.check(t, want)
			}
			if s.alerts != 0 || s.fold.queue.waiting != 0 {
				t.Errorf("%d alerts, %d traces wait", s.alerts, s.fold.queue.waiting)
			}
		})
	}
}

// The service starts with another mode while an alert is open: the event that closes it names the mode and
// the methodology that it was measured with, its point those of the new mode.
func TestClosingNamesItsOwnMethodology(t *testing.T) {
	s, from := newScript(), noon.Add(-time.Minute)
	s.learn(from, 12)
	for n := range 3 {
		s.send(odd(fmt.Sprintf("odd-%d", n), "a", from.Add(time.Duration(20+n)*time.Second)))
	}
	s.finish()
	s.cfg.Mode = "sessions"
	s.fold.params, s.fold.methodology = s.cfg.params(), s.cfg.methodology()
	s.send(usual("after", "a", from.Add(30*time.Second)))
	s.fold.idle(time.Minute)
	y := s.take()
	if len(y.alerts) != 1 || y.alerts[0].State != schema.AlertClosed || y.alerts[0].Mode != "first" || y.alerts[0].Methodology != "" {
		t.Errorf("alerts %+v", y.alerts)
	}
	if len(y.points) != 1 || y.points[0].Mode != "sessions" || y.points[0].Methodology != s.cfg.methodology() {
		t.Errorf("points %+v", y.points)
	}
}
