package reload_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/reload"
)

var errBroken = errors.New("broken")

func read(path string) (string, error) {
	text, err := os.ReadFile(path)
	if string(text) == "broken" {
		err = errBroken
	}
	return string(text), err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChangesAreSeenAndBrokenOnesPassedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := reload.Open(path, read, nil); err == nil {
		t.Fatal("a file that is not there was opened")
	}
	write(t, path, "first")
	var reported []error
	opened := time.Now()
	file, err := reload.Open(path, read, func(_ string, err error) { reported = append(reported, err) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(reload.Recheck)
	for i, step := range []struct {
		change  string // new content of the file; "" is no change, "-" removes it
		passed  time.Duration
		want    string
		reports int
	}{
		{"second one", reload.Recheck, "second one", 1},
		{"", reload.Recheck, "second one", 1},
		{"broken", reload.Recheck - 1, "second one", 1}, // too early for a check
		{"", 1, "second one", 2},
		{"", reload.Recheck, "second one", 2},
		{"-", reload.Recheck, "second one", 3},
		{"", reload.Recheck, "second one", 3},
		{"third", reload.Recheck, "third", 4},
	} {
		if step.change == "-" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else if step.change != "" {
			write(t, path, step.change)
		}
		now = now.Add(step.passed)
		if got := file.Current(now); got != step.want || len(reported) != step.reports {
			t.Errorf("step %d: %q after %d reports, want %q after %d", i, got, len(reported), step.want, step.reports)
		}
	}
	if !errors.Is(reported[1], errBroken) || reported[0] != nil || reported[2] == nil || reported[3] != nil {
		t.Errorf("reported %v", reported)
	}
	if got := file.Current(opened); got != "third" {
		t.Errorf("a clock set back: %q", got)
	}
}

// A change is noticed even if the clock is set back.
func TestClockIsSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "first")
	file, err := reload.Open(path, read, func(string, error) {})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC() // without the monotonic clock
	for _, step := range []struct {
		text string
		jump time.Duration
	}{{"a day later", 24 * time.Hour}, {"right again", -24 * time.Hour}, {"a day before, then", -24 * time.Hour}} {
		write(t, path, step.text)
		now = now.Add(step.jump)
		if got := file.Current(now); got != step.text {
			t.Errorf("%q, want %q", got, step.text)
		}
	}
}
