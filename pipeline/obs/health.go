package obs

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/aivs"
)

// Health knows whether a process can do its work. A component (the broker, the
// database, a stage's loop) is declared by each stage that needs it, and is up where
// every one of them says so. The zero value is ready for use; its methods may be
// called from any goroutine.
type Health struct {
	mu       sync.Mutex
	reported map[need]string // why it is down; empty when up
	peers    map[need]*peer  // those that are asked
	draining bool
}

// need is a component that a stage needs.
type need struct{ component, stage string }

// Component is one thing that a stage needs.
type Component struct {
	health *Health
	need   need
}

// Component declares what a stage needs. It is down ("starting") until the stage
// reports otherwise. The same declaration again yields the same component.
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

// Down reports that the component does not work, and why. The reason is shown
// to anyone who asks for readiness: it must hold no secret.
func (c *Component) Down(reason string) { c.report(cmp.Or(reason, "down")) }

// Report says Up for nil, and Down with the error's text otherwise.
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

// Drain makes the process unready for good: it takes no new work.
func (h *Health) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// Readiness is the answer to "can this process do its work?".
type Readiness struct {
	Ready    bool              `json:"ready"`
	Draining bool              `json:"draining,omitempty"`
	Down     map[string]string `json:"down,omitempty"` // component -> why
}

// Reported returns what was reported last. It asks nobody.
func (h *Health) Reported() Readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readiness(h.reported)
}

// Readiness returns the present state: what was reported last, and what the peers
// answer now. It returns within AnswerWithin.
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

// readiness puts the reasons of all stages together. The caller holds the lock.
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
		state.Down[component], _ = aivs.AllRules.Message(strings.Join(distinct, "; ")) // an error may quote a secret
	}
	return state
}
