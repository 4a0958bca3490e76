package messages

import (
	"context"
	"sync"
)

// mostRemembered limits each of the two generations of a remembering bucket.
const mostRemembered = 10_000

// remembering is a bucket that reads each record once and caches it for a while, because records
// never change. It does not cache the absence of a record.
type remembering struct {
	Bucket

	mu            sync.Mutex
	recent, older map[string][]byte
}

// GetNewest returns the cached value, or else that of the bucket.
func (r *remembering) GetNewest(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	if value, known := r.recall(key); known {
		return value, 0, nil
	}
	value, revision, err = r.Bucket.GetNewest(ctx, key)
	if err == nil {
		r.keep(key, value)
	}
	return value, revision, err
}

// recall looks a value up in the cache, and moves it into the recent generation.
func (r *remembering) recall(key string) (value []byte, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, known = r.recent[key]; known {
		return value, true
	}
	if value, known = r.older[key]; known {
		r.put(key, value)
	}
	return value, known
}

func (r *remembering) keep(key string, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(key, value)
}

func (r *remembering) put(key string, value []byte) {
	if len(r.recent) >= mostRemembered || r.recent == nil {
		r.recent, r.older = make(map[string][]byte), r.recent
	}
	r.recent[key] = value
}
