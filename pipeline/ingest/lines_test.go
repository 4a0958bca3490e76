package ingest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// cutAll reads a body through a window and calls release at random times. It returns the lines by
// number, with "…" for a line that is too long.
func cutAll(t *rapid.T, l *lines) (cut map[int]string) {
	cut = map[int]string{}
	var held [][]byte // lines returned since the last release
	var numbers []int
	release := func() {
		for i := range held {
			cut[numbers[i]] = string(held[i])
		}
		held, numbers = held[:0], numbers[:0]
		l.release()
	}
	for {
		line, err := l.next()
		switch {
		case err == nil:
			held, numbers = append(held, line), append(numbers, l.number)
			if rapid.Bool().Draw(t, "release") {
				release()
			}
		case errors.Is(err, errLineLong):
			cut[l.number] = "…"
		case errors.Is(err, errWindowFull):
			release()
		case errors.Is(err, io.EOF):
			release()
			return cut
		default:
			t.Fatal(err)
		}
	}
}

// TestLinesAreCutAsSplitWould checks that lines are cut as bytes.Split would, for every window
// size, every time at which the window grows, and every fragmentation of the body.
func TestLinesAreCutAsSplitWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab \r\n")), 0, 200, -1).Draw(t, "body"))
		window := rapid.IntRange(1, 40).Draw(t, "window")
		want := map[int]string{}
		for i, line := range bytes.SplitAfter(body, []byte("\n")) {
			switch {
			case len(line) > window, len(line) == window && line[len(line)-1] != '\n' && i == bytes.Count(body, []byte("\n")):
				want[i+1] = "…" // the end of the last line is found only if there is room after it
			case len(bytes.TrimSpace(line)) > 0:
				want[i+1] = string(line)
			}
		}
		pieces := []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader}
		reader := rapid.SampledFrom(pieces).Draw(t, "pieces")(bytes.NewReader(body))
		first := rapid.IntRange(1, window).Draw(t, "first window")
		l := &lines{body: reader, window: make([]byte, first), larger: func(wait bool) ([]byte, error) {
			if first == window || !wait && rapid.Bool().Draw(t, "no memory") {
				return nil, nil
			}
			first = rapid.IntRange(first+1, window).Draw(t, "larger window")
			return make([]byte, first), nil
		}}
		got := cutAll(t, l)
		if len(got) != len(want) {
			t.Fatalf("lines %v, want %v", got, want)
		}
		for number, line := range want {
			if got[number] != line {
				t.Fatalf("line %d is %q, want %q", number, got[number], line)
			}
		}
	})
}

// TestIncompleteLineIsNotReturned checks that an incomplete line at the end of a truncated body
// is not returned. It may look like a complete one.
func TestIncompleteLineIsNotReturned(t *testing.T) {
	broken := errors.New("broken")
	l := lines{body: io.MultiReader(bytes.NewReader([]byte("one\ntwo")), iotest.ErrReader(broken)), window: make([]byte, 100)}
	line, err := l.next()
	if string(line) != "one\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if line, err = l.next(); !errors.Is(err, broken) || slices.Contains([]string{"two"}, string(line)) {
		t.Errorf("%q, %v; want the body's error", line, err)
	}
}
