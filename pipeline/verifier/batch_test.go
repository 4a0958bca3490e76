package verifier

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// arrival is a row and how long after the one before it came.
type arrival struct {
	size int
	gap  time.Duration
}

// flushed is a batch as the stage wrote it.
type flushed struct {
	rows       []int // indices of arrivals
	bytes      int
	first, end time.Time
}

// emptyBatch returns a batch that holds nothing.
func emptyBatch() *batch { return &batch{rows: new(store.Store).NewTraceBatch()} }

// message returns a message of a size.
func message(size int) stream.Message { return stream.Message{Data: make([]byte, size)} }

// play runs arrivals through the stage's loop: flush before a row for which there is no room,
// flush when due, flush at the end.
func play(cfg *Config, arrivals []arrival) []flushed {
	b := emptyBatch()
	var current flushed
	var out []flushed
	now := time.Unix(1_760_000_000, 0)
	flush := func(at time.Time) {
		current.end = at
		out = append(out, current)
		current = flushed{}
		b.reset()
	}
	for i, a := range arrivals {
		now = now.Add(a.gap)
		if b.due(cfg, now) { // by its age
			flush(current.first.Add(cfg.BatchAge))
		}
		if len(b.messages) > 0 && b.bytes+a.size > cfg.BatchBytes { // the stage fetches only what the batch has room for
			flush(now)
		}
		if len(b.messages) == 0 {
			current.first = now
		}
		b.take(message(a.size), now)
		current.rows = append(current.rows, i)
		current.bytes += a.size
		if b.due(cfg, now) {
			flush(now)
		}
	}
	if len(b.messages) > 0 {
		flush(now)
	}
	return out
}

func TestNothingIsLostOrReorderedAndLimitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := &Config{
			BatchRows:  rapid.IntRange(1, 9).Draw(t, "rows"),
			BatchBytes: rapid.IntRange(1, 100).Draw(t, "bytes"),
			BatchAge:   time.Duration(rapid.IntRange(1, 50).Draw(t, "age")) * time.Millisecond,
		}
		arrivals := rapid.SliceOf(rapid.Custom(func(t *rapid.T) arrival {
			return arrival{
				size: rapid.IntRange(0, 120).Draw(t, "size"),
				gap:  time.Duration(rapid.IntRange(0, 20).Draw(t, "gap")) * time.Millisecond,
			}
		})).Draw(t, "arrivals")
		var seen []int
		for _, b := range play(cfg, arrivals) {
			seen = append(seen, b.rows...)
			checkLimits(t, cfg, b)
		}
		for i, row := range seen {
			if i != row {
				t.Fatalf("row %d is at position %d", row, i)
			}
		}
		if len(seen) != len(arrivals) {
			t.Fatalf("%d rows in, %d out", len(arrivals), len(seen))
		}
	})
}

func checkLimits(t *rapid.T, cfg *Config, b flushed) {
	if len(b.rows) == 0 || len(b.rows) > cfg.BatchRows {
		t.Fatalf("%d rows, limit %d", len(b.rows), cfg.BatchRows)
	}
	if b.bytes > cfg.BatchBytes && len(b.rows) > 1 {
		t.Fatalf("%d bytes in %d rows, limit %d", b.bytes, len(b.rows), cfg.BatchBytes)
	}
	if age := b.end.Sub(b.first); age > cfg.BatchAge {
		t.Fatalf("the first row waited %s, limit %s", age, cfg.BatchAge)
	}
}

func TestDue(t *testing.T) {
	cfg := &Config{BatchRows: 3, BatchBytes: 10, BatchAge: time.Second}
	start := time.Unix(1_760_000_000, 0)
	cases := map[string]struct {
		sizes []int
		after time.Duration
		want  bool
	}{
		"empty and old":      {nil, time.Hour, false},
		"young and small":    {[]int{1, 1}, 999 * time.Millisecond, false},
		"old":                {[]int{1}, time.Second, true},
		"rows reached":       {[]int{0, 0, 0}, 0, true},
		"bytes reached":      {[]int{10}, 0, true},
		"one row, oversized": {[]int{500}, 0, true},
	}
	for name, c := range cases {
		b := emptyBatch()
		for _, size := range c.sizes {
			b.take(message(size), start)
		}
		if got := b.due(cfg, start.Add(c.after)); got != c.want {
			t.Errorf("%s: due %v, want %v", name, got, c.want)
		}
		if want := len(c.sizes); len(b.messages) != want {
			t.Errorf("%s: %d rows, want %d", name, len(b.messages), want)
		}
	}
	if sizes := cases["rows reached"].sizes; slices.Max(sizes) != 0 {
		t.Error("the rows case must not reach the bytes")
	}
}

func TestAgeAloneDoesNotFill(t *testing.T) {
	cfg := &Config{BatchRows: 2, BatchBytes: 100, BatchAge: time.Second}
	b, now := emptyBatch(), time.Unix(1_760_000_000, 0)
	b.take(message(10), now)
	if cfg.BatchFull(len(b.messages), b.bytes) || !b.due(cfg, now.Add(time.Second)) {
		t.Error("want an old batch with room to be due, and not full")
	}
	b.take(message(10), now)
	if !cfg.BatchFull(len(b.messages), b.bytes) {
		t.Error("want a batch with all its rows to be full")
	}
	b.reset()
	b.take(message(100), now)
	if !cfg.BatchFull(len(b.messages), b.bytes) {
		t.Error("want a batch with all its bytes to be full")
	}
}

// A request to end a session gets no dead letter. What else is not a trace gets one.
func TestRequestedEndsAreNoDeadLetters(t *testing.T) {
	end, err := wire.EndRequest{AgentID: "a", SessionID: "s"}.AmongTraces()
	if err != nil {
		t.Fatal(err)
	}
	b, refusal := emptyBatch(), &schema.Refusal{Reason: "invalid"}
	b.refuse(&stream.Message{Agent: "a", Data: end.Data}, refusal)
	if len(b.dead) != 0 {
		t.Errorf("a request became the dead letter %+v", b.dead[0])
	}
	b.refuse(&stream.Message{Agent: "b", Data: end.Data}, refusal)
	b.refuse(&stream.Message{Agent: "a", Data: []byte("{}")}, refusal)
	if len(b.dead) != 2 {
		t.Errorf("%d dead letters, want one for another agent's session and one for an empty object", len(b.dead))
	}
}

// A message without a row is not counted as a stored trace: neither one that has a dead letter nor a request to
// end a session, which has none.
func TestStoredTracesAreCounted(t *testing.T) {
	end, err := wire.EndRequest{AgentID: "a", SessionID: "s"}.AmongTraces()
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	m, b, refusal := newMetrics(registry), emptyBatch(), &schema.Refusal{Reason: "invalid"}
	for _, data := range [][]byte{end.Data, []byte("{}")} {
		message := stream.Message{Agent: "a", Data: data}
		b.take(message, time.Now())
		b.refuse(&message, refusal)
	}
	m.committed(b)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "plumbline_verifier_traces_total" {
			if stored := family.GetMetric()[0].GetCounter().GetValue(); stored != 0 {
				t.Errorf("%v stored traces are counted, want none", stored)
			}
			return
		}
	}
	t.Error("stored traces are not counted")
}

// A batch of many traces waits half as long as a small one; in a backlog twice as long, but not after a start.
func TestHowLongABatchWaits(t *testing.T) {
	cfg := &Config{BatchRows: 10 * batchWorth, BatchBytes: 1 << 30, BatchAge: time.Second}
	start := time.Unix(1_760_000_000, 0)
	for _, c := range []struct {
		traces int
		behind bool
		first  bool
		late   time.Duration // how long ago the broker had received the first trace when it joined
		want   time.Duration
	}{
		{1, false, false, 0, time.Second},
		{batchWorth - 1, false, false, 0, time.Second},
		{batchWorth, false, false, 0, time.Second / 2},
		{batchWorth, true, false, backlogAge - 1, time.Second / 2},
		{batchWorth, false, false, backlogAge, time.Second / 2}, // the backlog is over
		{batchWorth, true, false, backlogAge, 2 * time.Second},
		{batchWorth - 1, true, false, backlogAge, time.Second},
		{batchWorth, true, true, backlogAge, time.Second / 2},
	} {
		b := &batch{messages: make([]stream.Message, c.traces), since: start, behind: c.behind, first: c.first}
		b.messages[0].Received = start.Add(-c.late)
		if b.due(cfg, start.Add(c.want-1)) || !b.due(cfg, start.Add(c.want)) {
			t.Errorf("%+v: due in %s", c, b.dueIn(cfg, start))
		}
	}
	full := &batch{messages: make([]stream.Message, cfg.BatchRows), since: start}
	if empty := new(batch); !full.due(cfg, start) || empty.due(cfg, start) {
		t.Error("a full batch is not due at once, or an empty one is due")
	}
}

// A fetch waits for a whole slice, but it does not make the batch late.
func TestFetchWaitsUntilTheBatchIsDue(t *testing.T) {
	cfg := &Config{BatchRows: 10 * batchWorth, BatchAge: time.Second}
	start := time.Unix(1_760_000_000, 0)
	for _, c := range []struct {
		traces int
		after  time.Duration
		want   time.Duration
	}{
		{0, time.Hour, leastWait}, {1, 0, mostWait}, {1, 900 * time.Millisecond, 100 * time.Millisecond}, {1, time.Minute, leastWait},
		{batchWorth, 400 * time.Millisecond, 100 * time.Millisecond}, {batchWorth, 490 * time.Millisecond, leastWait},
	} {
		b := &batch{messages: make([]stream.Message, c.traces), since: start}
		if got := b.fetchWait(cfg, start.Add(c.after)); got != c.want {
			t.Errorf("with %d traces, the first of which came %s ago: %s, want %s", c.traces, c.after, got, c.want)
		}
	}
}
