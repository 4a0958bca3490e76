package obs

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/plumbline/plumbline/pipeline/problem"
)

// Routes are the routes that stages add to the HTTP interface of their process. They are public
// and read-only, such as the keys that sign bundles. Stages of one process share one Routes. A
// stage may add to it while it is served. The zero value has no routes.
type Routes struct {
	mu       sync.Mutex
	handlers map[string]http.Handler // by pattern
	mux      atomic.Pointer[http.ServeMux]
}

// Handle adds a route, and replaces one with the same pattern: a stage that restarts adds its
// routes again.
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

// Before returns a handler that answers the routes, refuses other methods on their paths, and
// passes everything else to next.
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
