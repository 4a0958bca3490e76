package obs

import (
	"maps"
	"sync"
)

// Health knows whether a process can do its work. A component (the broker, the
// database, a stage's loop) is declared once and then reports each change. The
// zero value is ready for use; its methods may be called from any goroutine.
type Health struct {
	mu       sync.Mutex
	down     map[string]string // component -> why it is down; absent when up
	declared map[string]bool
	draining bool
}

// Component is one thing that the process needs.
type Component struct {
	health *Health
	name   string
}

// Component declares a component, which is down ("starting") until it reports
// otherwise. Declaring a name twice yields the same component.
func (h *Health) Component(name string) *Component {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.declared == nil {
		h.declared, h.down = map[string]bool{}, map[string]string{}
	}
	if !h.declared[name] {
		h.declared[name] = true
		h.down[name] = "starting"
	}
	return &Component{health: h, name: name}
}

// Up reports that the component works.
func (c *Component) Up() {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	delete(c.health.down, c.name)
}

// Down reports that the component does not work, and why. The reason is shown
// to anyone who asks for readiness: it must hold no secret.
func (c *Component) Down(reason string) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.health.down[c.name] = reason
}

// Report says Up for nil, and Down with the error's text otherwise.
func (c *Component) Report(err error) {
	if err == nil {
		c.Up()
		return
	}
	c.Down(err.Error())
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

// Readiness returns the present state.
func (h *Health) Readiness() Readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Readiness{
		Ready:    !h.draining && len(h.down) == 0,
		Draining: h.draining,
		Down:     maps.Clone(h.down),
	}
}
