package obs

import (
	"cmp"
	"slices"
	"strings"
	"sync"

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
