package problem

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// The words for requests without a route.
const (
	WordNoAddress = "no_such_address"    // 404
	WordNoMethod  = "method_not_allowed" // 405: the header Allow lists the methods
)

// Routed serves mux. It answers a request without a route with a Problem. hint says which
// addresses exist.
func Routed(mux *http.ServeMux, hint string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := Unrouted(mux, r, hint); p != nil {
			p.Write(w)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Unrouted returns the answer to a request without a route in mux, or nil if there is a route.
func Unrouted(mux *http.ServeMux, r *http.Request, hint string) *Problem {
	handler, pattern := mux.Handler(r)
	if pattern != "" {
		return nil
	}
	plain := answered{header: http.Header{}}
	handler.ServeHTTP(&plain, r)
	if plain.code == http.StatusMethodNotAllowed {
		p := New(plain.code, WordNoMethod, "%s is not for this address: use %s", r.Method, plain.header.Get("Allow"))
		p.allow = plain.header.Get("Allow")
		return p
	}
	return New(http.StatusNotFound, WordNoAddress, "there is no such address: %s", hint)
}

// Write answers with the problem and returns its code.
func (p *Problem) Write(w http.ResponseWriter) int {
	text, err := json.Marshal(p)
	if err != nil { // it contains only texts
		text = fmt.Appendf(nil, `{"error":%q}`, p.Word)
	}
	if p.allow != "" {
		w.Header().Set("Allow", p.allow)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.Code)
	_, _ = w.Write(append(text, '\n')) // an error means that the client has left
	return p.Code
}

// answered records how a handler answers, without the text.
type answered struct {
	header http.Header
	code   int
}

func (a *answered) Header() http.Header         { return a.header }
func (a *answered) WriteHeader(code int)        { a.code = code }
func (a *answered) Write(p []byte) (int, error) { return len(p), nil }
