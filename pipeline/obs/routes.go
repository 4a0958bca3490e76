package obs

import "net/http"

// Routes are what stages add to the HTTP interface of their process: public, for
// reading, such as the keys that bundles are signed with. Stages of one process
// share one; a stage may add to it while it is served.
type Routes struct {
	mux http.ServeMux
}

// Handle adds a route. A pattern that is there already is a fault of the program.
func (r *Routes) Handle(pattern string, handler http.Handler) { r.mux.Handle(pattern, handler) }

// Before returns a handler that answers the routes, and leaves all else to next.
func (r *Routes) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if _, pattern := r.mux.Handler(request); pattern != "" {
			r.mux.ServeHTTP(w, request)
			return
		}
		next.ServeHTTP(w, request)
	})
}
