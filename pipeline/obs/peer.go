package obs

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// AnswerWithin is how long a peer has for its answer to whoever asks for readiness.
const AnswerWithin = 2 * time.Second

// peer is another process that is asked whether it answers.
type peer struct {
	ask func(context.Context) error

	mu   sync.Mutex
	open *question // nil while no answer is waited for
}

// question is one that was put to a peer.
type question struct {
	asked    time.Time
	answered chan struct{}
	err      error // once it is answered
}

// Ask has the component asked whenever somebody asks for readiness: ask returns nil
// when it answers. A peer that hangs is asked once, until it answers: those who ask
// for readiness meanwhile are told so.
func (c *Component) Ask(ask func(context.Context) error) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.health.peers[c.need] = &peer{ask: ask}
}

// askPeers asks all peers at the same time, and returns why those are down that are.
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

// question returns the open question, or puts a new one.
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

// answer waits for the answer, until AnswerWithin after the question.
func (q *question) answer() error {
	late := time.NewTimer(AnswerWithin - time.Since(q.asked))
	defer late.Stop()
	select {
	case <-q.answered:
		return q.err
	case <-late.C:
	}
	select {
	case <-q.answered: // while another peer was waited for
		return q.err
	default:
		return noAnswer(time.Since(q.asked))
	}
}

func noAnswer(after time.Duration) error {
	return fmt.Errorf("it has not answered for %s", after.Truncate(time.Second))
}
