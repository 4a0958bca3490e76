package messages

import (
	"context"
	"sync"
)

// mostRemembered bounds each of the two generations of a remembering bucket.
const mostRemembered = 10_000

// remembering is a bucket whose records, which never change, are read once and then
// remembered for a while. What is not there is asked for again.
type remembering struct {
	Bucket

	mu            sync.Mutex
	recent, older map[string][]byte
}

// GetNewest returns what is remembered, else what the bucket says.
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

// recall moves what it finds into the recent generation.
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
