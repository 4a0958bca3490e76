package drift

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Within each series, and for any clocks, the queue releases the same entries as a naive one that
// checks everything at every message. When the broker's clock is set back, no time has passed.
func TestQueueEqualsANaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := &Rules{
			Lateness:      time.Duration(rapid.IntRange(0, 20).Draw(t, "lateness")),
			WaitingTraces: rapid.IntRange(1, 15).Draw(t, "messages"),
			WaitingBytes:  rapid.IntRange(1, 60).Draw(t, "bytes"),
		}
		q, series := queue{rules: rules}, []*series{{}, {}, {}}
		var naive []*entry
		var now mark
		clock := int64(100)
		for n := range rapid.IntRange(1, 60).Draw(t, "traces") {
			gap := int64(rapid.IntRange(0, 8).Draw(t, "gap"))
			clock += gap
			bytes := rapid.IntRange(1, 9).Draw(t, "size")
			if rapid.IntRange(0, 9).Draw(t, "set back") == 0 {
				clock, gap = max(70, clock-gap-int64(rapid.IntRange(1, 1000).Draw(t, "by"))), 0
			}
			q.advance(clock, bytes)
			if n == 0 {
				gap = 0
			}
			now = mark{now.clock + gap, now.messages + 1, now.bytes + bytes}
			naive = releaseNaively(t, &q, naive, now)
			e := &entry{
				series:  rapid.SampledFrom(series).Draw(t, "series"),
				order:   min(clock, int64(rapid.IntRange(60, int(clock)+5).Draw(t, "time"))),
				message: place{Sequence: uint64(n + 1)},
			}
			q.add(e)
			naive = append(naive, e)
			if q.waiting != len(naive) {
				t.Fatalf("%d traces wait, want %d", q.waiting, len(naive))
			}
		}
		q.pass(rules.Lateness)
		now.clock += int64(rules.Lateness)
		if left := releaseNaively(t, &q, naive, now); len(left) > 0 || q.release() != nil || len(q.arrivals) > 0 {
			t.Fatalf("%d traces are left", len(left))
		}
	})
}

// releaseNaively compares what q releases now with what is due in list, which is in order of
// arrival, and returns the remaining entries.
func releaseNaively(t *rapid.T, q *queue, list []*entry, now mark) []*entry {
	for {
		due := slices.IndexFunc(list, func(e *entry) bool { return q.rules.due(e.since, now) })
		if due < 0 {
			return list
		}
		first := due
		for i, e := range list {
			if e.series == list[due].series && e.before(list[first]) {
				first = i
			}
		}
		if got := q.release(); got != list[first] {
			t.Fatalf("released %+v, want %+v", got, list[first])
		}
		list = slices.Delete(list, first, first+1)
	}
}

// drawMessages draws messages of a partition: traces in and out of order, too late, dated ahead,
// copied, with two contents, under a second card, requests to end a session, and messages that are
// invalid.
func drawMessages(t *rapid.T) []stream.Message {
	var messages []stream.Message
	clock := noon
	for n := range rapid.IntRange(20, 120).Draw(t, "messages") {
		clock = clock.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "gap")) * time.Millisecond)
		agent := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent")
		at, id := clock, fmt.Sprintf("tr-%03d", n)
		write := rapid.SampledFrom([]func(string, string, time.Time) []byte{usual, again, again, again}).Draw(t, "write")
		switch rapid.IntRange(0, 14).Draw(t, "kind") {
		case 0, 1, 2, 3:
			at = clock.Add(-time.Duration(rapid.IntRange(0, 4000).Draw(t, "delay")) * time.Millisecond)
		case 4, 5, 6, 7, 8:
			write = odd
			at = clock.Add(-time.Duration(rapid.IntRange(0, 1500).Draw(t, "delay")) * time.Millisecond)
		case 9:
			at = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
		case 10:
			id = fmt.Sprintf("tr-%03d", max(0, n-rapid.IntRange(1, 9).Draw(t, "back")))
		case 11:
			if n > 0 {
				earlier := messages[rapid.IntRange(0, n-1).Draw(t, "copy")]
				messages = append(messages, message(uint64(n+1), earlier.Agent, clock, earlier.Data))
				continue
			}
		case 12:
			messages = append(messages, message(uint64(n+1), agent, clock, requestedEnd(agent, drawSession(t))))
			continue
		}
		raw := bytes.Replace(write(id, agent, at), []byte(`"session_id":"s"`), []byte(`"session_id":"`+drawSession(t)+`"`), 1)
		if rapid.IntRange(0, 5).Draw(t, "card") == 0 {
			raw = bytes.Replace(raw, []byte(`"ac-`), []byte(`"second-`), 1)
		}
		if rapid.IntRange(0, 20).Draw(t, "spoil") == 0 {
			raw = raw[:len(raw)-1]
		}
		messages = append(messages, message(uint64(n+1), agent, clock, raw))
	}
	return messages
}

func drawSession(t *rapid.T) string {
	return rapid.SampledFrom([]string{"s-1", "s-2", "s-3"}).Draw(t, "session")
}

// Wherever a worker crashes, between any steps, however many messages a commit takes and however
// long it lasts, whichever commits are checkpoints, and whichever resting series leave memory
// at any moment, and whichever lose their decoded content, the workers produce the points, alerts and
// states of one that never crashed and kept all series decoded in memory.
func TestRestartsAndEvictionsChangeNothing(t *testing.T) {
	pins := filepath.Join(t.TempDir(), "pins.json")
	if err := somePins().Write(pins); err != nil {
		t.Fatal(err)
	}
	evicted := 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t, pins)
		cfg.WaitingTraces = rapid.IntRange(3, 40).Draw(t, "waiting")
		cfg.Lateness = rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, cfg.Lateness}).Draw(t, "lateness")
		messages := drawMessages(t)
		whole := newBench(cfg, noCards{}, nil)
		whole.learnSoon()
		want := whole.foldAll(messages)

		got, position := newTable(), new(uint64)
		for reached := 0; reached < len(messages); {
			w := &fickle{bench: newBench(cfg, noCards{}, got), t: t, table: got, position: position}
			w.learnSoon()
			reached = min(len(messages), reached+rapid.IntRange(1, 40).Draw(t, "life"))
			next := int(*position) // a sequence is an index plus 1
			for i, m := range messages[next:max(next, reached)] {
				if i > 0 && rapid.IntRange(0, 3).Draw(t, "idle") == 0 {
					w.fold.pass(m.Received)
				}
				w.receive(m)
				w.housekeep()
			}
			evicted += w.evicted
			if reached == len(messages) {
				w.finish()
				w.commit(6)
				w.begin(true)
				w.commit(6)
				continue
			}
			w.begin(rapid.Bool().Draw(t, "last checkpoint"))
			w.commit(rapid.IntRange(0, 5).Draw(t, "dies after step"))
		}
		compare(t, got.listing(), want.listing())
		compareStates(t, got, want)
		if int(*position) != len(messages) {
			t.Errorf("the position is %d, want %d", *position, len(messages))
		}
	})
	if evicted == 0 {
		t.Error("no series was evicted")
	}
}

// fickle is a worker that begins and ends commits, and evicts series, at any moment.
type fickle struct {
	*bench
	t        *rapid.T
	table    *table
	position *uint64 // in the broker
	running  *batch  // of the commit that has begun; nil without one
	whole    bool    // that commit is a checkpoint
	evicted  int
}

func (w *fickle) housekeep() {
	switch rapid.IntRange(0, 5).Draw(w.t, "commit") {
	case 0:
		w.begin(rapid.Bool().Draw(w.t, "checkpoint"))
	case 1:
		w.commit(6)
	}
	if rapid.IntRange(0, 3).Draw(w.t, "relieve") == 0 {
		if err := w.fold.relieve(0); err != nil {
			w.t.Error(err)
		}
	}
	if rapid.Bool().Draw(w.t, "evict") {
		before := len(w.fold.series)
		w.fold.evict(rapid.SampledFrom([]int{0, 2000, 5000}).Draw(w.t, "bytes that stay"))
		w.evicted += before - len(w.fold.series)
	}
}

// begin begins a commit unless one is running.
func (w *fickle) begin(checkpoint bool) {
	if w.running == nil {
		w.running, w.whole = w.takeAt(checkpoint), checkpoint
		if !checkpoint || rapid.Bool().Draw(w.t, "decoded contents stay") {
			return
		}
		w.fold.takes++
		w.fold.close()
		if len(w.fold.decoded) > 0 {
			w.t.Errorf("%d contents are still decoded", len(w.fold.decoded))
		}
	}
}

// commit makes the first steps of the commit that is running, if there is one.
func (w *fickle) commit(steps int) {
	if w.running == nil {
		return
	}
	if !w.whole {
		steps = min(steps, 5)
	}
	commit(w.table, w.position, w.running, w.at, steps)
	w.running = nil
	if w.whole {
		w.fold.stored()
	}
}

// compareStates requires the same states, each with the same encoding.
func compareStates(t *rapid.T, got, want *table) {
	for key, w := range want.states {
		g := got.states[key]
		if g.Version != w.Version || g.Applied != w.Applied || len(g.AppliedAbove) > 0 || !g.LastEvent.Equal(w.LastEvent) || !bytes.Equal(g.State, w.State) {
			t.Errorf("the state of %v: version %d, applied %d and %v, last %s, %d bytes; want %d, %d, %s, %d bytes",
				key, g.Version, g.Applied, g.AppliedAbove, g.LastEvent, len(g.State), w.Version, w.Applied, w.LastEvent, len(w.State))
		}
	}
	if len(got.states) != len(want.states) {
		t.Errorf("%d states, want %d", len(got.states), len(want.states))
	}
}

// drawConfig draws a mode.
func drawConfig(t *rapid.T, pins string) Config {
	cfg := Default()
	cfg.Mode = rapid.SampledFrom([]string{"sessions", "first", "rolling", "pinned"}).Draw(t, "mode")
	switch cfg.Mode {
	case "rolling":
		cfg.Window, cfg.Methodology = rapid.IntRange(6, 24).Draw(t, "window"), "to roll often"
	case "pinned":
		cfg.Pins = pins
	}
	return cfg
}

// somePins returns pins for agent a, and none for b.
func somePins() Pins {
	var samples []aapdrift.Sample
	for n := range 3 {
		trace, err := schema.Admit("a", usual(fmt.Sprint("pinned-", n), "a", noon))
		if err != nil {
			panic(err)
		}
		samples = append(samples, aapdrift.SampleOf(trace, aapdrift.CardFacts{CardID: "ac-a"}))
	}
	pins := Pins{}
	pins.Set(Pin{AgentID: "a", CardID: "ac-a", PinnedAt: noon, Baseline: aapdrift.NewBaseline(samples)})
	return pins
}

// commit makes the first steps of a commit: baselines, points, alerts, loops, states, position.
func commit(to *table, position *uint64, y *batch, at uint64, steps int) {
	for _, step := range []func(){
		func() { to.insertBaselines(y.baselines) },
		func() { to.insertPoints(y.points) },
		func() { to.insertAlerts(y.alerts) },
		func() { to.insertLoops(y.loops) },
		func() { to.insertStates(y.states) },
		func() { *position = at },
	}[:steps] {
		step()
	}
}

// Traces that arrive out of order within the lateness are measured as if they had arrived in
// order, end marks included.
func TestOrderOfArrivalWithinLatenessDoesNotMatter(t *testing.T) {
	opened := 0
	fold := func(cfg Config, messages []stream.Message) []string {
		b := newBench(cfg, noCards{}, nil)
		b.learnSoon()
		done := b.foldAll(messages)
		if cfg.Mode == "sessions" {
			opened += len(done.alerts)
		}
		return done.listing()
	}
	rapid.Check(t, func(t *rapid.T) {
		cfg := Default()
		cfg.Mode = rapid.SampledFrom([]string{"sessions", "first"}).Draw(t, "mode")
		var inOrder []stream.Message
		for n := range 40 {
			at, write := noon.Add(time.Duration(n)*10*time.Millisecond), usual
			if n > 20 && rapid.IntRange(0, 9).Draw(t, "odd") > 0 {
				write = odd
			}
			session := fmt.Sprintf(`"context":{"session_id":"s-%d"`, n/3)
			if n%3 == 2 {
				session += `,"metadata":{"session_end":true}`
			}
			raw := write(fmt.Sprintf("tr-%d", n), "a", at)
			if bytes.Contains(raw, []byte(`"context":{"session_id":"s"`)) {
				raw = bytes.Replace(raw, []byte(`"context":{"session_id":"s"`), []byte(session), 1)
			} else {
				raw = bytes.Replace(raw, []byte(`"decision":`), []byte(session+`},"decision":`), 1)
			}
			inOrder = append(inOrder, message(uint64(n+1), "a", noon.Add(time.Second+time.Duration(n)*time.Millisecond), raw))
		}
		shuffled := rapid.Permutation(inOrder).Draw(t, "arrival")
		for i := range shuffled {
			shuffled[i].Sequence, shuffled[i].Received = inOrder[i].Sequence, inOrder[i].Received
		}
		compare(t, fold(cfg, shuffled), fold(cfg, inOrder))
	})
	if opened == 0 {
		t.Error("no alert was raised against sessions")
	}
}

// The result of a fold equals what AAP section 8.2 finds in the complete list, for any order of
// arrival within the lateness and wherever the worker was restarted: the same similarities,
// statuses, alerts and alert ids, where N is the same.
func TestFoldEqualsDetect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := publishedRule()
		cfg.Methodology = "the window of a list is its length"
		cfg.Window = rapid.IntRange(1, 60).Draw(t, "traces")
		var raws [][]byte
		var samples []aapdrift.Sample
		for n := range cfg.Window {
			write := usual
			if rapid.IntRange(0, 2).Draw(t, "odd") == 0 {
				write = odd
			}
			raws = append(raws, write(fmt.Sprintf("tr-%d", n), "a", noon.Add(time.Duration(n)*time.Millisecond)))
			trace, err := schema.Admit("a", raws[n])
			if err != nil {
				t.Fatal(err)
			}
			samples = append(samples, aapdrift.SampleOf(trace, aapdrift.CardFacts{CardID: "ac-a"}))
		}
		points, alerts := aapdrift.Series(samples, cfg.params())

		got := foldWithRestarts(t, cfg, rapid.Permutation(raws).Draw(t, "arrival"))
		want := newTable()
		for _, p := range points {
			row := store.DriftPoint{
				AgentID: "a", CardID: "ac-a", TraceID: p.TraceID, TraceDigest: p.Digest, Status: string(p.Status),
				Streak: uint32(p.Streak), Mode: "first", BaselineID: p.Baseline,
			}
			if p.Status != aapdrift.StatusBaseline {
				row.Similarity = &p.Similarity
			}
			want.points[p.TraceID] = row
		}
		for _, a := range alerts {
			a.State, a.Revision, a.OpenedAt = schema.AlertOpened, 1, a.DetectionTimestamp
			event := store.DriftAlert{DriftAlert: a}
			want.alerts[event.Key()] = event
		}
		for key, event := range got.alerts { // a list has no events
			event.LastTraceID, event.Count, event.Measures, event.Summary = "", 0, nil, ""
			got.alerts[key] = event
		}
		maps.DeleteFunc(got.alerts, func(_ store.DriftAlertKey, a store.DriftAlert) bool { return a.State == schema.AlertClosed })
		clear(got.baselines)
		compare(t, got.listing(), want.listing())
	})
}

// foldWithRestarts delivers messages within the lateness, and restarts at some of them, with and
// without what was not committed.
func foldWithRestarts(t *rapid.T, cfg Config, raws [][]byte) *table {
	var messages []stream.Message
	for n, raw := range raws {
		messages = append(messages, message(uint64(n+1), "a", noon.Add(time.Second+time.Duration(n)*time.Millisecond), raw))
	}
	got, position := newTable(), new(uint64)
	for reached := 0; reached < len(messages); {
		b := newBench(cfg, noCards{}, got)
		reached = min(len(messages), reached+rapid.IntRange(1, 40).Draw(t, "life"))
		for _, m := range messages[*position:reached] {
			b.receive(m)
		}
		if reached == len(messages) {
			b.finish()
		}
		y := b.take()
		commit(got, position, y, b.at, 6)
	}
	return got
}

// A stored state restores the series that it was taken from.
func TestRestoredStateIsEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(Default(), noCards{}, nil)
		messages := drawMessages(t)
		for _, m := range messages {
			b.receive(m)
		}
		b.finish()
		for _, row := range b.take().states {
			c := b.fold.series[seriesKey{AgentID: row.AgentID, CardID: row.CardID}]
			again, err := resume(&row)
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := again.content.append(nil, again.reached, again.latest)
			if err != nil || !bytes.Equal(encoded, row.State) || again.last != c.last || again.latest != c.latest || again.version != c.version || again.applied != c.applied {
				t.Errorf("restored %+v, want %+v; error %v", again, c, err)
			}
		}
	})
}
