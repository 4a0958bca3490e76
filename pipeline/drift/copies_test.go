package drift

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// copying is a script whose traces can be sent again.
type copying struct {
	*script
	ahead time.Duration // how far the agent's clock is ahead of the broker's
	sent  map[string][]byte
}

// trace sends a trace a second after the previous one.
func (c *copying) trace(kind func(id, agent string, at time.Time) []byte, id string) {
	c.at = c.at.Add(time.Second - time.Millisecond) // send adds one
	c.sent[id] = kind(id, "a", c.at.Add(time.Millisecond+c.ahead))
	c.send(c.sent[id])
}

// almost sends a baseline, an odd trace, 30 usual ones, and two odd ones: one more odd trace would be drift.
func (c *copying) almost() {
	for n := range 12 {
		c.trace(usual, fmt.Sprint("usual-", n))
	}
	c.trace(odd, "odd-0")
	for n := range 30 {
		c.trace(usual, fmt.Sprint("then-", n))
	}
	c.trace(odd, "odd-1")
	c.trace(odd, "odd-2")
	c.finish()
}

// settle makes all that was taken durable: what is looked up now is in the table alone.
func (c *copying) settle() {
	c.finish()
	c.finish()
}

func newCopying(ahead time.Duration) *copying {
	return &copying{newScript(), ahead, map[string][]byte{}}
}

func (c *copying) checkOnce(t *testing.T) {
	t.Helper()
	c.check(t, map[string]string{"odd-0": "low ", "odd-1": "low ", "odd-2": "low "})
	if c.alerts != 0 {
		t.Errorf("%d alerts, want none of two odd traces", c.alerts)
	}
}

// An agent's clock is ahead of the broker's: a copy of a trace that is not among the last ones is not applied again,
// while its time is still ahead, and after it.
func TestCopyOfATraceDatedAhead(t *testing.T) {
	for _, ahead := range []time.Duration{-10 * time.Millisecond, 300 * time.Millisecond, time.Hour, 70 * 365 * 24 * time.Hour} {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", ahead, durable), func(t *testing.T) {
				c := newCopying(ahead)
				c.almost()
				if durable {
					c.settle()
				}
				c.at = c.at.Add(5 * time.Minute)
				c.send(c.sent["odd-0"])
				c.finish()
				if ahead > 0 {
					c.checkOnce(t)
				}
				if c.alerts != 0 {
					t.Errorf("a copy raised %d alerts", c.alerts)
				}
			})
		}
	}
}

// The broker's clock is set back by an hour before a copy arrives: it keeps its order of arrival, but is not applied again.
func TestCopyAfterTheBrokersClockIsSetBack(t *testing.T) {
	for _, durable := range []bool{false, true} {
		c := newCopying(-10 * time.Millisecond)
		c.almost()
		if durable {
			c.settle()
		}
		c.at = c.at.Add(-time.Hour)
		c.send(c.sent["odd-0"])
		c.finish()
		c.checkOnce(t)
	}
}

// More traces than a series knows again have the same time, and all are sent again.
func TestCopiesOfTracesOfOneTime(t *testing.T) {
	c := newCopying(0)
	c.learn(noon.Add(-time.Hour), 12)
	var post [][]byte
	want := map[string]string{}
	for n := range 3 * remembered {
		kind, id := usual, fmt.Sprint("tr-", n)
		want[id] = "normal "
		if n == 0 || n > 3*remembered-3 {
			kind, want[id] = odd, "low "
		}
		post = append(post, kind(id, "a", noon.Add(-time.Minute)))
		c.send(post[n])
	}
	for range 2 {
		c.settle()
		c.check(t, want)
		if c.alerts != 0 {
			t.Errorf("%d alerts", c.alerts)
		}
		c.at = c.at.Add(5 * time.Minute)
		for _, raw := range post {
			c.send(raw)
		}
	}
	c.settle()
	c.check(t, want)
}

// Copies change no result, whatever the clocks of the agent and the broker do, how many of the traces have the same time, and
// what is durable when they arrive: it is as if messages of the same size had come that are no traces.
func TestCopiesChangeNothing(t *testing.T) {
	copies := 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := publishedRule()
		cfg.Lateness = rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "lateness")
		cfg.WaitingTraces = rapid.IntRange(1, 30).Draw(t, "waiting")
		with, without := &kept{newBench(cfg, noCards{}, newTable()), newTable()}, &kept{newBench(cfg, noCards{}, newTable()), newTable()}
		ahead := rapid.SampledFrom([]time.Duration{-time.Second, 0, 300 * time.Millisecond, time.Minute}).Draw(t, "ahead")
		round := rapid.SampledFrom([]time.Duration{1, 2 * time.Second, time.Minute}).Draw(t, "round")
		clock, sent := noon, [][]byte(nil)
		for n := range rapid.IntRange(30, 150).Draw(t, "messages") {
			clock = clock.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "gap")) * time.Millisecond)
			switch rapid.IntRange(0, 30).Draw(t, "clock") {
			case 0:
				clock = clock.Add(-time.Duration(rapid.IntRange(1, 300).Draw(t, "back")) * time.Second)
			case 1:
				clock = clock.Add(5 * time.Minute)
			}
			if len(sent) > 0 && rapid.IntRange(0, 3).Draw(t, "copy") == 0 {
				raw := sent[rapid.IntRange(0, len(sent)-1).Draw(t, "copied")]
				with.receive(message(uint64(n+1), "a", clock, raw))
				without.receive(message(uint64(n+1), "a", clock, bytes.Repeat([]byte("x"), len(raw))))
				copies++
			} else {
				kind := rapid.SampledFrom([]func(string, string, time.Time) []byte{usual, usual, odd}).Draw(t, "kind")
				raw := kind(fmt.Sprint("tr-", n), "a", clock.Add(ahead-time.Duration(rapid.IntRange(0, 1500).Draw(t, "delay"))*time.Millisecond).Truncate(round))
				sent = append(sent, raw)
				with.receive(message(uint64(n+1), "a", clock, raw))
				without.receive(message(uint64(n+1), "a", clock, raw))
			}
			if rapid.IntRange(0, 4).Draw(t, "take") == 0 {
				with.store()
				without.store()
			}
		}
		for _, k := range []*kept{with, without} {
			k.finish()
			k.store()
		}
		compare(t, with.results.listing(), without.results.listing())
	})
	if copies == 0 {
		t.Error("no trace was copied")
	}
}

// kept is a bench with its results, except for points of late traces: a copy may be late.
type kept struct {
	*bench
	results *table
}

func (k *kept) store() {
	y := k.take()
	k.fold.stored()
	k.states.insert(y)
	y.points = slices.DeleteFunc(y.points, func(p store.DriftPoint) bool { return p.Status == string(statusLate) })
	k.results.insert(y)
}

// lookUps are the rows of a stage that has no states, and the points of some messages.
type lookUps struct {
	noStates
	first map[schema.Digest]uint64
	asked [][]store.TraceTime
}

func (l *lookUps) FirstMeasured(_ context.Context, _ time.Time, traces []store.TraceTime) (map[schema.Digest]uint64, error) {
	l.asked = append(l.asked, traces)
	return l.first, nil
}

// Of the traces of a slice only those are looked up that may be copies: neither those with a later time than all before, nor
// those that are late. A trace that has a point of a later message alone is no copy: after a crash it is read again.
func TestOnlyDoubtfulTracesAreLookedUp(t *testing.T) {
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	var sequence uint64
	next := func(received, dated time.Time) stream.Message {
		sequence++
		return message(sequence, "a", received, usual(fmt.Sprint("tr-", sequence), "a", dated))
	}
	var ordinary, ahead []stream.Message
	for n := range 40 {
		ordinary = append(ordinary, next(at(n), at(n)))
	}
	for n := range 40 {
		ahead = append(ahead, next(at(100+n), at(3700+n)))
	}
	right := next(at(200), at(200)) // of another clock than those that are ahead
	mixed := []stream.Message{next(at(300), at(50)), next(at(300), at(300)), next(at(300), at(3705)), next(at(300), at(3800))}
	again := func(of stream.Message) stream.Message {
		sequence++
		return message(sequence, "a", at(400), of.Data)
	}
	known := again(ahead[0]) // a copy
	read := usual("read", "a", at(3710))
	rereads := message(sequence+1, "a", at(400), read)
	rows := &lookUps{first: map[schema.Digest]uint64{
		schema.DigestOf(known.Data): ahead[0].Sequence,
		schema.DigestOf(read):       rereads.Sequence + 1,
	}}
	r := reads(t, &parcels{next: [][]stream.Message{ordinary, ahead, {right}, mixed, {known, rereads}}}, clockSlack, 0)
	r.rows = rows
	r.cfg.Lateness = 0
	for range 5 {
		if err := r.next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := r.take(false); err != nil { // what was folded two slices ago is durable
			t.Fatal(err)
		}
	}
	want := [][]string{{"tr-81"}, {"tr-83", "tr-84"}, {"tr-41", "read"}}
	var got [][]string
	names := map[schema.Digest]string{schema.DigestOf(read): "read"}
	for i, raw := range slices.Concat(ordinary, ahead, []stream.Message{right}, mixed) {
		names[schema.DigestOf(raw.Data)] = fmt.Sprint("tr-", i+1)
	}
	for _, traces := range rows.asked {
		var asked []string
		for _, of := range traces {
			asked = append(asked, names[of.Digest])
		}
		got = append(got, asked)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("looked up are %v, want %v", got, want)
	}
	f := r.partitions[0].fold
	f.idle(time.Hour)
	if _, applied := f.series[seriesKey{AgentID: "a", CardID: "ac-a"}].recently(fingerprintOf("read")); !applied || f.out.duplicates+r.batch.duplicates != 1 {
		t.Errorf("the trace that is read again is applied: %t, want true; %d copies, want 1", applied, f.out.duplicates+r.batch.duplicates)
	}
}

// On the broker and the database: an agent's clock is some seconds ahead, and one of its traces is published again without an id
// for the broker. The copy raises no alert, also after another process has taken over, and a replay finds no difference.
func TestCopyRaisesNoAlert(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac-a", "a"))
	cfg := publishedRule()
	cfg.Common, cfg.ClickHouse = rig.Common(), rig.ClickHouse()
	cfg.CheckpointAge = 100 * time.Millisecond
	start := func() (*pipelinetest.Stage, func() float64) {
		env := pipelinetest.Env(t, "drift")
		return pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &cfg, env) }),
			func() float64 { return pipelinetest.Metric(t, env, "plumbline_drift_duplicates_total", "") }
	}
	var records []stream.Record
	at := time.Now().Add(4 * time.Second)
	add := func(kind func(id, agent string, at time.Time) []byte, id string) {
		at = at.Add(10 * time.Millisecond)
		records = append(records, pipelinetest.Record("a", kind(id, "a", at)))
	}
	for n := range 12 {
		add(usual, fmt.Sprint("usual-", n))
	}
	add(odd, "odd-0")
	for n := range 30 {
		add(usual, fmt.Sprint("then-", n))
	}
	add(odd, "odd-1")
	add(odd, "odd-2")
	js := rig.Broker.JetStream()
	again := func() {
		if _, err := js.Publish(t.Context(), subject.Trace("a"), records[12].Data); err != nil {
			t.Fatal(err)
		}
	}
	rig.Publish(t, records...)
	for range 2 {
		stage, copies := start()
		pipelinetest.Await(t, "all measured", func() bool { return rig.Number(t, "SELECT count() FROM drift_points") >= uint64(len(records)) })
		again()
		pipelinetest.Await(t, "the copy is recognised", func() bool { return copies() == 1 })
		stage.Stop(t)
	}
	if n := rig.Number(t, "SELECT count() FROM drift_alerts"); n != 0 {
		t.Errorf("%d alerts", n)
	}
	summary, err := (&Replay{Rules: cfg.Rules, Client: rig.Client, Store: rig.Store, Log: pipelinetest.Env(t, "replay").Log}).Run(t.Context())
	if err != nil || len(summary.Differing) != 0 || summary.Points != len(records) || summary.AlertsWritten != 0 {
		t.Errorf("the replay: %+v, %v", summary, err)
	}
}
