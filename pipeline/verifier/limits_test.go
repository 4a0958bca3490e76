package verifier

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
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

// play runs arrivals through a stage's loop: flush before a row for which there is
// no room, flush when due, flush at the end.
func play(l Limits, arrivals []arrival) []flushed {
	var meter Meter
	var current flushed
	var out []flushed
	now := time.Unix(1_760_000_000, 0)
	flush := func(at time.Time) {
		current.end = at
		out = append(out, current)
		current = flushed{}
		meter.Reset()
	}
	for i, a := range arrivals {
		now = now.Add(a.gap)
		if meter.Due(l, now) { // by its age
			flush(current.first.Add(l.Age))
		}
		if meter.Rows() > 0 && meter.Bytes()+a.size > l.Bytes { // the stage fetches only what the batch has room for
			flush(now)
		}
		if meter.Rows() == 0 {
			current.first = now
		}
		meter.Add(a.size, now)
		current.rows = append(current.rows, i)
		current.bytes += a.size
		if meter.Due(l, now) {
			flush(now)
		}
	}
	if meter.Rows() > 0 {
		flush(now)
	}
	return out
}

func TestNothingIsLostOrReorderedAndLimitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			Rows:  rapid.IntRange(1, 9).Draw(t, "rows"),
			Bytes: rapid.IntRange(1, 100).Draw(t, "bytes"),
			Age:   time.Duration(rapid.IntRange(1, 50).Draw(t, "age")) * time.Millisecond,
		}
		arrivals := rapid.SliceOf(rapid.Custom(func(t *rapid.T) arrival {
			return arrival{
				size: rapid.IntRange(0, 120).Draw(t, "size"),
				gap:  time.Duration(rapid.IntRange(0, 20).Draw(t, "gap")) * time.Millisecond,
			}
		})).Draw(t, "arrivals")
		var seen []int
		for _, b := range play(limits, arrivals) {
			seen = append(seen, b.rows...)
			checkLimits(t, limits, b)
		}
		for i, row := range seen {
			if i != row {
				t.Fatalf("row %d came as number %d", row, i)
			}
		}
		if len(seen) != len(arrivals) {
			t.Fatalf("%d rows in, %d out", len(arrivals), len(seen))
		}
	})
}

func checkLimits(t *rapid.T, l Limits, b flushed) {
	if len(b.rows) == 0 || len(b.rows) > l.Rows {
		t.Fatalf("%d rows, limit %d", len(b.rows), l.Rows)
	}
	if b.bytes > l.Bytes && len(b.rows) > 1 {
		t.Fatalf("%d bytes in %d rows, limit %d", b.bytes, len(b.rows), l.Bytes)
	}
	if age := b.end.Sub(b.first); age > l.Age {
		t.Fatalf("first row waited %s, limit %s", age, l.Age)
	}
}

func TestDue(t *testing.T) {
	limits := Limits{Rows: 3, Bytes: 10, Age: time.Second}
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
		var meter Meter
		for _, size := range c.sizes {
			meter.Add(size, start)
		}
		if got := meter.Due(limits, start.Add(c.after)); got != c.want {
			t.Errorf("%s: due %v, want %v", name, got, c.want)
		}
		if want := len(c.sizes); meter.Rows() != want {
			t.Errorf("%s: %d rows, want %d", name, meter.Rows(), want)
		}
	}
	if sizes := cases["rows reached"].sizes; slices.Max(sizes) != 0 {
		t.Error("the rows case must not reach the bytes")
	}
}

func TestAgeAloneDoesNotFill(t *testing.T) {
	limits := Limits{Rows: 2, Bytes: 100, Age: time.Second}
	var m Meter
	now := time.Unix(1_760_000_000, 0)
	m.Add(10, now)
	if m.Full(limits) || !m.Due(limits, now.Add(time.Second)) {
		t.Error("an old batch with room is due, and not full")
	}
	m.Add(10, now)
	if !m.Full(limits) {
		t.Error("a batch with all its rows is full")
	}
	m.Reset()
	m.Add(100, now)
	if !m.Full(limits) {
		t.Error("a batch with all its bytes is full")
	}
}
