package exporter

import (
	"testing"
	"time"
)

// A round with few sessions is followed by a longer pause than one with none or many.
func TestPauseBetweenRounds(t *testing.T) {
	e := &exporter{cfg: &Config{Every: time.Second}}
	for due, want := range map[int]time.Duration{
		0: time.Second, 1: 4 * time.Second, fewSessions - 1: 4 * time.Second, fewSessions: time.Second, 10 * groupSessions: time.Second,
	} {
		if got := e.pause(due); got != want {
			t.Errorf("after a round with %d sessions: %s, want %s", due, got, want)
		}
	}
	if e.behind = true; e.pause(1) != 0 {
		t.Errorf("while a session goes on: %s, want none", e.pause(1))
	}
}
