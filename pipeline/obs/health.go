package obs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/aivs/redact"
)

// Health records whether a process can do its work. Each stage declares the components that it
// needs (the broker, the database, its own loop). A component is up if all of these stages report
// it as up. The zero value is ready for use. Any goroutine may call its methods.
type Health struct {
	mu       sync.Mutex
	reported map[need]string // reasons of components that are down; empty if up
	peers    map[need]*peer  // components with a peer to ask
	draining bool
}

// need is a component and a stage that needs it.
type need struct{ component, stage string }

// Component is one thing that a stage needs.
type Component struct {
	health *Health
	need   need
}

// Component declares what a stage needs. It is down ("starting") until the stage reports
// otherwise. A repeated declaration returns the same component.
func (h *Health) Component(name, stage string) *Component {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := need{name, stage}
	if h.reported == nil {
		h.reported, h.peers = map[need]string{}, map[need]*peer{}
	}
	if _, declared := h.reported[n]; !declared {
		h.reported[n] = "starting"
	}
	return &Component{health: h, need: n}
}

// Up reports that the component works.
func (c *Component) Up() { c.report("") }

// Down reports that the component does not work, and why. Anyone who reads readiness sees the
// reason, so it must not contain a secret.
func (c *Component) Down(reason string) { c.report(cmp.Or(reason, "down")) }

// Report calls Up for nil, and otherwise Down with the error's text.
func (c *Component) Report(err error) {
	if err == nil {
		c.Up()
		return
	}
	c.Down(err.Error())
}

func (c *Component) report(reason string) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.health.reported[c.need] = reason
}

// Drain makes the process unready permanently, because it accepts no new work.
func (h *Health) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// Readiness is the answer to "can this process do its work?".
type Readiness struct {
	Ready    bool              `json:"ready"`
	Draining bool              `json:"draining,omitempty"`
	Down     map[string]string `json:"down,omitempty"` // component -> reason
}

// Reported returns the last reported state. It asks no peer.
func (h *Health) Reported() Readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readiness(h.reported)
}

// Readiness returns the current state: the last reports, and the current answers of the peers. It
// returns within AnswerWithin.
func (h *Health) Readiness() Readiness {
	answers := h.askPeers()
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, reason := range h.reported {
		if answers[n] == "" {
			answers[n] = reason
		}
	}
	return h.readiness(answers)
}

// readiness combines the reasons of all stages. The caller holds the lock.
func (h *Health) readiness(reasons map[need]string) Readiness {
	stages := map[string][]need{} // by component that is down
	for n, reason := range reasons {
		if reason != "" {
			stages[n.component] = append(stages[n.component], n)
		}
	}
	state := Readiness{Ready: !h.draining && len(stages) == 0, Draining: h.draining}
	for component, needs := range stages {
		if state.Down == nil {
			state.Down = map[string]string{}
		}
		slices.SortFunc(needs, func(a, b need) int { return cmp.Compare(a.stage, b.stage) })
		var distinct []string
		for _, n := range needs {
			if !slices.Contains(distinct, reasons[n]) {
				distinct = append(distinct, reasons[n])
			}
		}
		state.Down[component], _ = redact.AllRules.Message(strings.Join(distinct, "; ")) // it may hold a secret
	}
	return state
}

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
