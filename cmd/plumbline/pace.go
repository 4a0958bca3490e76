package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// pace distributes sending evenly over time.
type pace struct {
	rate  float64 // traces per second; 0 for no limit
	began time.Time
	sent  int
}

func newPace(rate float64) *pace { return &pace{rate: rate} }

// most limits a slice to the lines of a tenth of a second.
func (p *pace) most(lines int) int {
	if p.rate == 0 {
		return lines
	}
	return max(1, min(lines, int(p.rate/10)))
}

// wait returns when n more lines are due.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	if p.began.IsZero() {
		p.began = time.Now()
	}
	due := p.began.Add(time.Duration(float64(p.sent) / p.rate * float64(time.Second)))
	p.sent += n
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// progress shows the progress if the output is a terminal.
type progress struct {
	to    *os.File // nil: no terminal
	done  string   // what is done with each line
	began time.Time
	shown time.Time
}

func newProgress(to *os.File, done string) progress {
	p := progress{done: done, began: time.Now()}
	if isTerminal(to) {
		p.to = to
	}
	return p
}

const showEvery = 200 * time.Millisecond

func (p *progress) show(n int) {
	if p.to == nil || time.Since(p.shown) < showEvery {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.to, "\r\x1b[K%d %s, %.0f/s", n, p.done, float64(n)/time.Since(p.began).Seconds())
}

// clear erases the line for other output.
func (p *progress) clear() {
	if p.to != nil && !p.shown.IsZero() {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
