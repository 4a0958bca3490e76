package obs

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/plumbline/plumbline/pipeline/problem"
)

// Routes are what stages add to the HTTP interface of their process: public, for
// reading, such as the keys that bundles are signed with. Stages of one process
// share one; a stage may add to it while it is served. The zero value is that of
// no route.
type Routes struct {
	mu       sync.Mutex
	handlers map[string]http.Handler // by pattern
	mux      atomic.Pointer[http.ServeMux]
}

// Handle adds a route, in place of one with the same pattern: a stage that starts
// anew adds its own again.
func (r *Routes) Handle(pattern string, handler http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	handlers := maps.Clone(r.handlers)
	if handlers == nil {
		handlers = map[string]http.Handler{}
	}
	handlers[pattern] = handler
	mux := http.NewServeMux()
	for pattern, handler := range handlers {
		mux.Handle(pattern, handler)
	}
	r.handlers = handlers
	r.mux.Store(mux)
}

// Before returns a handler that answers the routes, refuses other methods of their
// addresses, and leaves all else to next.
func (r *Routes) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mux := r.mux.Load()
		if mux == nil {
			next.ServeHTTP(w, request)
			return
		}
		switch unrouted := problem.Unrouted(mux, request, ""); {
		case unrouted == nil:
			mux.ServeHTTP(w, request)
		case unrouted.Code == http.StatusMethodNotAllowed:
			unrouted.Write(w)
		default:
			next.ServeHTTP(w, request)
		}
	})
}
