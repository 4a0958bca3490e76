package obs

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// AnswerWithin is how long a peer may take to answer when readiness is read.
const AnswerWithin = 2 * time.Second

// peer is another process that can be asked whether it works.
type peer struct {
	ask func(context.Context) error

	mu   sync.Mutex
	open *question // nil while no answer is pending
}

// question is one question to a peer.
type question struct {
	asked    time.Time
	answered chan struct{}
	err      error // valid once it is answered
}

// Ask makes every read of readiness call ask, which returns nil if the component answers. A peer
// that hangs is asked once, until it answers. Reads of readiness meanwhile report that it hangs.
func (c *Component) Ask(ask func(context.Context) error) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.health.peers[c.need] = &peer{ask: ask}
}

// askPeers asks all peers in parallel, and returns the reasons of those that are down.
func (h *Health) askPeers() map[need]string {
	h.mu.Lock()
	questions := make(map[need]*question, len(h.peers))
	for n, p := range h.peers {
		questions[n] = p.question()
	}
	h.mu.Unlock()
	down := make(map[need]string, len(questions))
	for n, q := range questions {
		if err := q.answer(); err != nil {
			down[n] = err.Error()
		}
	}
	return down
}

// question returns the pending question, or asks a new one.
func (p *peer) question() *question {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil {
		return p.open
	}
	q := &question{asked: time.Now(), answered: make(chan struct{})}
	p.open = q
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), AnswerWithin)
		defer cancel()
		q.err = p.ask(ctx)
		if q.err != nil && ctx.Err() != nil {
			q.err = noAnswer(AnswerWithin)
		}
		p.mu.Lock()
		p.open = nil
		p.mu.Unlock()
		close(q.answered)
	}()
	return q
}

// answer waits for the answer, until AnswerWithin has passed since the question.
func (q *question) answer() error {
	late := time.NewTimer(AnswerWithin - time.Since(q.asked))
	defer late.Stop()
	select {
	case <-q.answered:
		return q.err
	case <-late.C:
	}
	select {
	case <-q.answered: // it answered while another peer was awaited
		return q.err
	default:
		return noAnswer(time.Since(q.asked))
	}
}

func noAnswer(after time.Duration) error {
	return fmt.Errorf("it has not answered for %s", after.Truncate(time.Second))
}
