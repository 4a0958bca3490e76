package web

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// kept holds the answers of costly queries for a short time, one for each set of agents that a token covers.
// Visitors who come together wait for one query. The zero value holds nothing.
type kept[T any] struct {
	fresh bool // for tests: nothing is held

	mu  sync.Mutex
	all map[string]*answer[T]
}

// answer is one answer, or the question that is on its way.
type answer[T any] struct {
	done  chan struct{} // closed when the rest is set
	asked time.Time
	value T
	err   error
}

// keptTokens is how many sets of agents have an answer. Above it, all are forgotten.
const keptTokens = 200

// get returns an answer that was asked for within the last age, or asks. An error is never kept.
func (k *kept[T]) get(ctx context.Context, agents store.Agents, now time.Time, age time.Duration, ask func(context.Context) (T, error)) (T, error) {
	if k.fresh {
		return ask(ctx)
	}
	key := strings.Join(agents.IDs, "\x00") + "\x00\x00" + strings.Join(agents.Prefixes, "\x00")
	k.mu.Lock()
	one := k.all[key]
	if one == nil || now.Sub(one.asked) > age || one.failed() {
		if k.all == nil || len(k.all) > keptTokens {
			k.all = map[string]*answer[T]{}
		}
		one = &answer[T]{done: make(chan struct{}), asked: now}
		k.all[key] = one
		go func() { // for those who join, too, so it does not end with this request
			defer close(one.done)
			one.value, one.err = ask(context.WithoutCancel(ctx))
		}()
	}
	k.mu.Unlock()
	select {
	case <-one.done:
		return one.value, one.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (a *answer[T]) failed() bool {
	select {
	case <-a.done:
		return a.err != nil
	default:
		return false
	}
}
