package mcprecorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema/mcp"
)

// HTTP is a proxy before an MCP server that speaks streamable HTTP. A request's path and query
// are those of the server. The proxy changes two headers: Host is the server's, and
// Accept-Encoding loses compressions other than gzip, which could not be read.
type HTTP struct {
	config   Config
	loopback bool
	through  *http.Transport
	proxy    httputil.ReverseProxy

	tidier *time.Timer

	mu    sync.Mutex
	known map[string]*visit // by Mcp-Session-Id; "" is a server without sessions
	count int               // of exchanges
}

// visit is a conversation over HTTP.
type visit struct {
	*conversation
	stateless bool      // its requests name no MCP session
	proven    bool      // the server began it without a session
	seen      time.Time // of the last exchange
	open      int       // exchanges in progress
}

// exchange is one HTTP request and its response.
type exchange struct {
	visit *visit
	scope string
	ids   []string // of the JSON-RPC requests in its body
	first bool     // it begins an MCP session
	ended func()   // called once it is over
}

type exchangeKey struct{}

const (
	sessionHeader = "Mcp-Session-Id"
	mediaJSON     = "application/json"
	mediaEvents   = "text/event-stream"
	mediaForm     = "application/x-www-form-urlencoded" // of OAuth

	idleVisit = time.Hour        // a conversation without an exchange for so long is over
	tidyEvery = 10 * time.Minute // how often such conversations are looked for
)

// NewHTTP returns a proxy before the server at an address, of which only scheme and host count.
// loopback says that it listens on this machine only: then it refuses requests for other hosts,
// which a web page could make by way of DNS.
func NewHTTP(config Config, upstream *url.URL, loopback bool) *HTTP {
	h := &HTTP{config: config, loopback: loopback, known: map[string]*visit{}, through: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second,
		DisableCompression: true, // it would change the request and the response
	}}
	h.proxy = httputil.ReverseProxy{
		Transport: h.through, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = upstream.Scheme, upstream.Host, upstream.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, there := r.In.Header[name]; there {
					r.Out.Header[name] = values
				}
			}
			readable(r.Out.Header)
		},
		ModifyResponse: func(r *http.Response) error { h.response(r); return nil },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			e := r.Context().Value(exchangeKey{}).(*exchange)
			why := fmt.Sprintf("the server could not be reached: %v", err)
			if errors.Is(err, context.Canceled) {
				why = "the client closed the connection before the answer"
			}
			if len(e.ids) > 0 {
				e.visit.abandon(e.scope, why, e.ids...)
			}
			e.ended()
			http.Error(w, "plumbline mcp: the MCP server could not be reached: "+err.Error(), http.StatusBadGateway)
		},
	}
	h.tidier = time.AfterFunc(tidyEvery, h.tidy)
	return h
}

// tidy ends conversations that have been idle for long, now and later.
func (h *HTTP) tidy() {
	h.mu.Lock()
	h.sweep()
	h.mu.Unlock()
	h.tidier.Reset(tidyEvery)
}

// readable removes compressions from Accept-Encoding that the recorder cannot read.
func readable(header http.Header) {
	var kept []string
	for _, value := range header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(coding), ";")
			if name = strings.ToLower(strings.TrimSpace(name)); name == "gzip" || name == "identity" {
				kept = append(kept, strings.TrimSpace(coding))
			}
		}
	}
	if len(header.Values("Accept-Encoding")) == 0 {
		return
	}
	if kept == nil {
		kept = []string{"identity"}
	}
	header.Set("Accept-Encoding", strings.Join(kept, ", "))
}

// ServeHTTP passes a request on and records what it and its response contain.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.loopback && !transport.Loopback(r.Host) {
		http.Error(w, fmt.Sprintf("plumbline mcp: %q is not this machine", r.Host), http.StatusForbidden)
		return
	}
	if coding := r.Header.Get("Content-Encoding"); h.config.Enforce != nil && coding != "" {
		http.Error(w, fmt.Sprintf("plumbline mcp: a body with the encoding %q cannot be examined, and is not passed on", coding), http.StatusUnsupportedMediaType)
		return
	}
	body, whole, err := h.bodyOf(r)
	if err != nil {
		http.Error(w, "plumbline mcp: read the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	e := h.exchange(r, body)
	switch {
	case !whole && h.config.Enforce != nil:
		e.ended()
		answer(w, http.StatusRequestEntityTooLarge, failure(nil, mcp.CodeInvalid, fmt.Sprintf("the message was not passed on: it has more than %d bytes", maxMessage)))
		return
	case !whole:
		h.config.Report(fmt.Sprintf("a message of more than %d bytes was passed on, and is not recorded", maxMessage))
	case body != nil:
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		e.visit.fromClient(e.scope, body)
		if h.config.Enforce == nil {
			break
		}
		if denial := e.visit.decide(r.Context(), e.scope, body); denial != nil {
			e.ended()
			answer(w, http.StatusOK, denial)
			return
		}
	}
	h.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
}

func answer(w http.ResponseWriter, code int, body []byte) {
	if len(body) == 0 {
		w.WriteHeader(http.StatusAccepted) // as for a notification
		return
	}
	w.Header().Set("Content-Type", mediaJSON)
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client has gone: there is nobody to tell
}

// bodyOf reads the body of a request that may be JSON-RPC and leaves it in place; nil if there is
// none. whole is false if it is too long to be read. With Enforce, every body may be JSON-RPC that
// is no form: not each server looks at the type.
func (h *HTTP) bodyOf(r *http.Request) (body []byte, whole bool, err error) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if h.config.Enforce == nil && (r.Method != http.MethodPost || media != mediaJSON && media != "") || r.Body == nil || r.Body == http.NoBody {
		return nil, true, nil
	}
	rest := r.Body
	body, err = io.ReadAll(io.LimitReader(rest, maxMessage+1))
	if err != nil {
		return nil, false, err
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	switch form := media == mediaForm && firstByte(body) != '{' && firstByte(body) != '['; {
	case len(body) > maxMessage:
		return nil, false, nil
	case form || len(body) == 0:
		return nil, true, nil
	}
	return body, true, nil
}

// exchange returns the exchange of a request, in its conversation.
func (h *HTTP) exchange(r *http.Request, body []byte) *exchange {
	e := &exchange{ids: mcp.RequestIDs(body)}
	id := r.Header.Get(sessionHeader)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	v := h.known[id]
	e.first = id == "" && (v == nil || !v.proven) && mcp.Initializes(body)
	if e.first || v == nil {
		v = &visit{conversation: h.config.conversation(), stateless: id == ""}
		if !e.first {
			h.known[id] = v
		}
	}
	if id == "" {
		e.scope = fmt.Sprint(h.count) // the ids of different clients may be equal
	}
	e.visit = v
	v.open++
	v.seen = time.Now()
	e.ended = sync.OnceFunc(func() {
		h.mu.Lock()
		v.open--
		v.seen = time.Now()
		h.mu.Unlock()
	})
	return e
}

// sweep ends conversations that have been idle for long. The caller holds the lock.
func (h *HTTP) sweep() {
	for id, v := range h.known {
		if v.open == 0 && time.Since(v.seen) > idleVisit {
			delete(h.known, id)
			v.finish()
		}
	}
}

// finish ends a conversation. Requests without an answer get none.
func (v *visit) finish() {
	v.abandon("", "the MCP session ended without an answer") // without sessions, each exchange did so
	v.end()
}

// End ends all conversations.
func (h *HTTP) End() {
	h.tidier.Stop()
	h.mu.Lock()
	all := h.known
	h.known = map[string]*visit{}
	h.mu.Unlock()
	for _, v := range all {
		v.finish()
	}
	h.through.CloseIdleConnections()
}

// response arranges that a response is read while it is passed on.
func (h *HTTP) response(r *http.Response) {
	e := r.Request.Context().Value(exchangeKey{}).(*exchange)
	id := r.Request.Header.Get(sessionHeader)
	if e.first {
		h.begin(e, r.Header.Get(sessionHeader))
	}
	gone := r.Request.Method == http.MethodDelete && r.StatusCode < 300 || r.StatusCode == http.StatusNotFound && r.Request.Method == http.MethodPost
	if gone && id != "" {
		h.mu.Lock()
		delete(h.known, id)
		h.mu.Unlock()
		e.visit.finish()
	}
	if r.StatusCode == http.StatusSwitchingProtocols {
		e.ended()
		return // it is no MCP, and the body must stay writable
	}
	r.Body = newReading(h, e, r)
}

// begin files a new conversation under the session that the server gave it. A server without
// sessions has one conversation.
func (h *HTTP) begin(e *exchange, id string) {
	h.mu.Lock()
	earlier := h.known[id]
	e.visit.stateless, e.visit.proven = id == "", id == ""
	h.known[id] = e.visit
	h.mu.Unlock()
	if earlier != nil {
		earlier.finish()
	}
}

// reading is the body of a response. Its bytes are read for the record before they are passed on,
// so that no answer to them is read earlier.
type reading struct {
	io.ReadCloser
	copy   *handover
	left   int64 // bytes that the header announces; below 0 if it does not
	finish func(whole bool)
	once   sync.Once
}

func newReading(h *HTTP, e *exchange, r *http.Response) *reading {
	b := &reading{ReadCloser: r.Body, copy: newHandover(), left: r.ContentLength}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	coding := r.Header.Get("Content-Encoding")
	var resumable bool
	var fault error
	go func() {
		defer close(b.copy.done)
		resumable, fault = e.read(b.copy, media, coding)
	}()
	b.finish = func(whole bool) {
		defer e.ended()
		why := fmt.Sprintf("the response contains no answer (HTTP %s)", r.Status)
		switch {
		case fault != nil:
			h.config.Report(fmt.Sprintf("an answer was passed on, and cannot be recorded: %v", fault))
			why = fmt.Sprintf("the answer could not be read: %v", fault)
		case resumable && !e.visit.stateless:
			return // the rest may come in another exchange
		case !whole:
			why = "the connection was closed before the answer"
		}
		if len(e.ids) > 0 {
			e.visit.abandon(e.scope, why, e.ids...)
		}
	}
	return b
}

// Read returns bytes that were read for the record.
func (b *reading) Read(p []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(p)
	if n > 0 {
		b.copy.write(p[:n])
	}
	b.left -= int64(n)
	if err != nil || b.left == 0 {
		b.end(err == nil || errors.Is(err, io.EOF))
	}
	return n, err
}

// Close ends the response; before its end if the client has gone.
func (b *reading) Close() error {
	err := b.ReadCloser.Close()
	b.end(false)
	return err
}

func (b *reading) end(whole bool) {
	b.once.Do(func() {
		close(b.copy.data)
		<-b.copy.done
		b.finish(whole)
	})
}

// read reads the JSON-RPC messages of a response. resumable reports whether the server can send
// the rest of it in a later response.
func (e *exchange) read(from io.Reader, media, coding string) (resumable bool, err error) {
	if media != mediaJSON && media != mediaEvents {
		return false, nil
	}
	from, err = decoded(from, coding)
	if err != nil {
		return false, err
	}
	each := func(message []byte) { e.visit.fromServer(e.scope, message) }
	if media == mediaEvents {
		return events(from, each)
	}
	message, err := io.ReadAll(io.LimitReader(from, maxMessage+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF): // the connection broke off
		return false, nil
	case err != nil:
		return false, err
	case len(message) > maxMessage:
		return false, fmt.Errorf("it has more than %d bytes", maxMessage)
	}
	if slices.Contains([]byte("{["), firstByte(message)) {
		each(message)
	}
	return false, nil
}

func firstByte(message []byte) byte {
	if message = bytes.TrimSpace(message); len(message) > 0 {
		return message[0]
	}
	return 0
}
