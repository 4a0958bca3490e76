package request

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/plumbline/plumbline/pipeline/problem"
)

// memory limits the memory for the bodies of all current requests. Memory is reserved as bytes
// arrive: a body that is announced and not sent reserves nothing. No token gets more than its
// share. Without tokens, no address does.
type memory struct {
	size, share int64
	whole       *semaphore.Weighted

	mu     sync.Mutex
	shares map[string]*share // of tokens or addresses with current requests
}

// share is the memory that the requests of one token or address may use together.
type share struct {
	bytes    *semaphore.Weighted
	requests int
}

// MinShare is the memory that a token or address may use at least. A request needs no more.
const MinShare = 2 << 20

func newMemory(size int64) *memory {
	return &memory{size: size, share: max(size/4, MinShare), whole: semaphore.NewWeighted(size), shares: map[string]*share{}}
}

// Holding is the memory that one request has reserved. Only one goroutine uses it.
type Holding struct {
	memory *memory
	owner  string // of the share
	share  *share
	bytes  int64
}

// Hold begins the reservation of a request. The caller must release it.
func (rt *Router) Hold(r *http.Request) *Holding {
	if token, ok := r.Context().Value(tokenKey{}).(string); ok {
		return rt.memory.hold(fmt.Sprintf("token %q", token))
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return rt.memory.hold("address " + host)
}

func (m *memory) hold(owner string) *Holding {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shares[owner]
	if s == nil {
		s = &share{bytes: semaphore.NewWeighted(m.share)}
		m.shares[owner] = s
	}
	s.requests++
	return &Holding{memory: m, owner: owner, share: s}
}

// patience is how long a request waits for memory before it is rejected with a request to retry.
const patience = 5 * time.Second

// Grow raises the reservation to the given total, and waits if the memory is in use. The returned
// problem says whose requests use it.
func (h *Holding) Grow(ctx context.Context, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	more := bytes - h.bytes
	if err := h.share.bytes.Acquire(ctx, more); err != nil {
		return problem.Unavailable(0, "the current requests of %s use their share of the memory for bodies (%d bytes): repeat the request later",
			h.owner, h.memory.share)
	}
	if err := h.memory.whole.Acquire(ctx, more); err != nil {
		h.share.bytes.Release(more)
		return problem.Unavailable(0, "the current requests use all the memory for bodies (%d bytes): repeat the request later", h.memory.size)
	}
	h.bytes = bytes
	return nil
}

// TryGrow is Grow without waiting. It reports whether the memory was free.
func (h *Holding) TryGrow(bytes int64) bool {
	more := bytes - h.bytes
	if !h.share.bytes.TryAcquire(more) {
		return false
	}
	if !h.memory.whole.TryAcquire(more) {
		h.share.bytes.Release(more)
		return false
	}
	h.bytes = bytes
	return true
}

// Share is the most memory that one request can reserve.
func (h *Holding) Share() int64 { return min(h.memory.share, h.memory.size) }

// Release ends the reservation.
func (h *Holding) Release() {
	h.share.bytes.Release(h.bytes)
	h.memory.whole.Release(h.bytes)
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.share.requests--; h.share.requests == 0 {
		delete(m.shares, h.owner)
	}
}
