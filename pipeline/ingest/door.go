package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/pipeline/admission"
	"github.com/plumbline/plumbline/pipeline/obs"
)

// door is the stage's HTTP interface. It answers operators from the start. It answers publishers
// once it is open. Before that, until the broker is reached, it asks them to retry.
type door struct {
	server  http.Server
	limit   *admission.Limit
	handler atomic.Pointer[http.Handler]
}

const (
	maxHeaderBytes = 32 << 10 // more than enough for a token
	maxStreams     = 100      // concurrent requests of an HTTP/2 connection: the minimum that RFC 9113 recommends
)

// newDoor returns a closed door. Requests end with the context work.
func newDoor(work context.Context, s *server) *door {
	d := &door{limit: admission.New("publishers", s.cfg.Connections, s.env.Log, s.env.Metrics)}
	mux := http.NewServeMux()
	obs.Register(mux, s.env.Health, s.env.Gatherer)
	mux.HandleFunc("/", d.publishers)
	d.server = http.Server{
		Handler:           s.pace.begin(s.env.Routes.Before(mux)),
		TLSConfig:         s.certificate,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       s.cfg.RequestTimeout,
		WriteTimeout:      s.cfg.RequestTimeout + 30*time.Second, // time to answer after the last read
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		BaseContext:       func(net.Listener) context.Context { return work },
		ErrorLog:          slog.NewLogLogger(s.env.Log.Handler(), slog.LevelWarn),
	}
	return d
}

func (d *door) open(handler http.Handler) { d.handler.Store(&handler) }

func (d *door) publishers(w http.ResponseWriter, r *http.Request) {
	if refusal := admission.Refusal(r.Context()); refusal != "" {
		pushBack(time.Second, refusal+": send the same again a little later, and several requests over one connection").write(w)
		return
	}
	if handler := d.handler.Load(); handler != nil {
		(*handler).ServeHTTP(w, r)
		return
	}
	pushBack(time.Second, "the broker was not reached yet: send the same again a little later").write(w)
}

// serve answers until ctx ends. The requests in progress may then finish until work ends. It
// closes the listener.
func (d *door) serve(ctx, work context.Context, listener net.Listener) error {
	served, bounded := make(chan error, 1), d.limit.Bound(&d.server, listener)
	go func() {
		if d.server.TLSConfig != nil {
			served <- d.server.ServeTLS(bounded, "", "")
			return
		}
		served <- d.server.Serve(bounded)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve publishers on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	err := d.server.Shutdown(work)
	if err != nil {
		err = fmt.Errorf("requests were cut off: %w", errors.Join(err, d.server.Close()))
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
