package ingest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
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

// shareOfMemory is the divisor for a share: a quarter of the memory.
const shareOfMemory = 4

func newMemory(size int64) *memory {
	return &memory{size: size, share: max(size/shareOfMemory, windowBytes), whole: semaphore.NewWeighted(size), shares: map[string]*share{}}
}

// holding is the memory that one request has reserved. Only one goroutine uses it.
type holding struct {
	memory *memory
	who    string
	share  *share
	bytes  int64
}

// hold begins a holding. The caller must release it.
func (m *memory) hold(who string) *holding {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shares[who]
	if s == nil {
		s = &share{bytes: semaphore.NewWeighted(m.share)}
		m.shares[who] = s
	}
	s.requests++
	return &holding{memory: m, who: who, share: s}
}

// patience is how long a request waits for memory before it is rejected with a request to retry.
const patience = 5 * time.Second

// grow raises the reservation to the given total, and waits if the memory is in use. The returned
// problem says whose requests use it.
func (h *holding) grow(ctx context.Context, bytes int64) *problem {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	more := bytes - h.bytes
	if err := h.share.bytes.Acquire(ctx, more); err != nil {
		return pushBack(time.Second, fmt.Sprintf("the requests of %s that are in hand take its share of the memory for bodies (%d bytes): "+
			"send the same again a little later", h.who, h.memory.share))
	}
	if err := h.memory.whole.Acquire(ctx, more); err != nil {
		h.share.bytes.Release(more)
		return pushBack(time.Second, fmt.Sprintf("the requests in hand take all the memory for bodies (%d bytes): "+
			"send the same again a little later", h.memory.size))
	}
	h.bytes = bytes
	return nil
}

// tryGrow is grow without waiting. It reports whether the memory was free.
func (h *holding) tryGrow(bytes int64) bool {
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

func (h *holding) release() {
	h.share.bytes.Release(h.bytes)
	h.memory.whole.Release(h.bytes)
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.share.requests--; h.share.requests == 0 {
		delete(m.shares, h.who)
	}
}

// whoKey is the context key for the name of the request's token.
type whoKey struct{}

// who returns the name of the share that a request uses.
func who(r *http.Request) string {
	if token, ok := r.Context().Value(whoKey{}).(string); ok {
		return fmt.Sprintf("token %q", token)
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}
