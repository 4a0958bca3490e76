// Package admission limits the connections of an HTTP server: all of them together, and those of
// each client address.
//
// It decides which connections stay open. It does not limit what requests use: their handlers do.
//
// Invariants: a server has at most the connections of its limit, and a few spare ones for those
// over it. A connection over the limit replaces one that is idle between requests. If none is
// idle, it gets a spare one, on which operators are answered, and publishers get the reason for
// the refusal. The newest spare connection closes the oldest. So every new connection is answered
// without waiting, however many arrive.
package admission

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limit limits the connections of one listener.
type Limit struct {
	name                string // of the listener
	most, share, spares int
	log                 *slog.Logger
	refusals            *prometheus.CounterVec // by the limit that was reached
	displaced           prometheus.Counter

	mu       sync.Mutex
	open     int // connections within the limit
	idle     int // number of idle connections among them
	networks map[netip.Prefix]*network
	spare    list.List // of *conn, oldest first
	refused  time.Time // time of the last refusal
}

// network is the owner of a share: an IPv4 address, or the /64 of an IPv6 address.
type network struct {
	open int
	idle list.List // of *conn, longest idle first
}

// The names of the limits in the metric.
const (
	boundOfAddress = "address"
	boundOfAll     = "all"
)

const (
	mostSpares = 64
	// streak is how long there must be no refusal until the next refusal is logged again.
	streak = time.Minute
)

// New returns the limit of a listener. name is its name in metrics and log.
func New(name string, cfg Config, log *slog.Logger, metrics prometheus.Registerer) *Limit {
	l := &Limit{name: name, log: log, networks: map[netip.Prefix]*network{}}
	l.most, l.share = cfg.bounds()
	l.spares = max(1, min(mostSpares, l.most/8))
	labels := prometheus.Labels{"listener": name}
	l.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_connections_refused_total", ConstLabels: labels,
		Help: "Connections above a limit, by limit: that of one address, or that of all."}, []string{"bound"})
	for _, bound := range []string{boundOfAddress, boundOfAll} {
		l.refusals.WithLabelValues(bound) // begins at 0: a rate shows the first ones, too
	}
	l.displaced = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "plumbline_connections_displaced_total", ConstLabels: labels,
		Help: "Idle connections that were closed to admit new ones."})
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_connections", ConstLabels: labels, Help: "Open connections that count towards the limit."}, l.count)
	metrics.MustRegister(l.refusals, l.displaced, open)
	return l
}

func (l *Limit) count() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.open)
}

// Serve serves within the limit until ctx ends. What net/http reports, such as a failed handshake of TLS or the panic of
// a handler, is a warning in the log. It uses HTTPS if the server has a TLSConfig. The
// requests in progress may then finish until work ends. It closes the listener. The end of ctx is
// not an error.
func (l *Limit) Serve(ctx, work context.Context, server *http.Server, accepting net.Listener) error {
	served, bounded := make(chan error, 1), l.bound(server, accepting)
	go func() {
		if server.TLSConfig != nil {
			served <- server.ServeTLS(bounded, "", "")
			return
		}
		served <- server.Serve(bounded)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s on %s: %w", l.name, accepting.Addr(), err)
	case <-ctx.Done():
	}
	err := server.Shutdown(work)
	if err != nil {
		err = fmt.Errorf("requests were cut off: %w", errors.Join(err, server.Close()))
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("stop serving %s on %s: %w", l.name, accepting.Addr(), err)
	}
	return nil
}

// bound applies the limit to a server that is not serving yet. It returns the listener on which
// the server must serve.
func (l *Limit) bound(server *http.Server, accepting net.Listener) net.Listener {
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Refusal(r.Context()) != "" {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, refusalKey{}, own(c).refused)
	}
	server.ErrorLog = slog.NewLogLogger(l.log.Handler(), slog.LevelWarn)
	server.ConnState = func(c net.Conn, state http.ConnState) { l.note(own(c), state == http.StateIdle) }
	return &listener{Listener: accepting, limit: l}
}

type refusalKey struct{}

// Refusal returns the limit that the connection of a request exceeds, or "" if it exceeds none.
func Refusal(ctx context.Context) string {
	refusal, _ := ctx.Value(refusalKey{}).(string)
	return refusal
}

type listener struct {
	net.Listener
	limit *Limit
}

// Accept returns the next connection. It closes another one if it needs its place.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, limit: l.limit, from: networkOf(accepted.RemoteAddr())}
	if gone := l.limit.admit(c); gone != nil {
		_ = gone.Close() // nobody reads the error
	}
	return c, nil
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	limit   *Limit
	from    netip.Prefix
	refused string // the limit that it exceeds

	// Under the mutex of the limit:
	network *network      // nil for a spare connection
	element *list.Element // in the list of spare or of idle connections
	left    bool
}

// own returns the connection that Accept returned, also if TLS wraps it.
func own(c net.Conn) *conn {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	return c.(*conn)
}

// Close closes the connection and frees its place.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	c.limit.leave(c)
	return err
}

// CloseWrite lets an http.Server close its sending side, so its last answer arrives.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// admit gives the connection a place. It returns the connection that must be closed for it, or
// nil.
func (l *Limit) admit(c *conn) (gone *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.networks[c.from]
	if n == nil {
		n = new(network)
	}
	bound := ""
	switch {
	case n.open >= l.share && l.share < l.most:
		bound, gone = boundOfAddress, first(&n.idle)
	case l.open >= l.most:
		bound, gone = boundOfAll, l.idlest()
	}
	if bound != "" && gone == nil {
		return l.refuse(c, bound)
	}
	if gone != nil {
		l.displaced.Inc()
		l.leave(gone)
	}
	l.networks[c.from] = n // it may have been removed with gone
	c.network = n
	n.open++
	l.open++
	return gone
}

// refuse gives the connection a spare place. It returns the connection that must be closed for
// it, or nil.
func (l *Limit) refuse(c *conn, bound string) (gone *conn) {
	c.refused = fmt.Sprintf("all %d connections are taken", l.most)
	if bound == boundOfAddress {
		c.refused = fmt.Sprintf("%s has its share of the connections, %d of %d", nameOf(c.from), l.share, l.most)
	}
	l.refusals.WithLabelValues(bound).Inc()
	now := time.Now()
	if now.Sub(l.refused) > streak {
		l.log.Warn("connections are refused; this is logged again after a minute without refusals", "listener", l.name, "reason", c.refused)
	}
	l.refused = now
	if l.spare.Len() >= l.spares {
		gone = first(&l.spare)
		l.leave(gone)
	}
	c.element = l.spare.PushBack(c)
	return gone
}

func first(of *list.List) *conn {
	if of.Len() == 0 {
		return nil
	}
	return of.Front().Value.(*conn)
}

// idlest returns an idle connection. Of the networks with idle connections, it chooses the one
// with the most connections.
func (l *Limit) idlest() *conn {
	if l.idle == 0 {
		return nil
	}
	most := new(network)
	for _, n := range l.networks {
		if n.open > most.open && n.idle.Len() > 0 {
			most = n
		}
	}
	return first(&most.idle)
}

// note records whether the connection is idle.
func (l *Limit) note(c *conn, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.left || c.network == nil || idle == (c.element != nil):
	case idle:
		c.element = c.network.idle.PushBack(c)
		l.idle++
	default:
		l.busy(c)
	}
}

func (l *Limit) busy(c *conn) {
	c.network.idle.Remove(c.element)
	c.element = nil
	l.idle--
}

// leave frees the connection's place, once.
func (l *Limit) leave(c *conn) {
	switch {
	case c.left:
	case c.network == nil:
		l.spare.Remove(c.element)
	default:
		if c.element != nil {
			l.busy(c)
		}
		l.open--
		if c.network.open--; c.network.open == 0 {
			delete(l.networks, c.from)
		}
	}
	c.left = true
}

// networkOf returns the network whose share a connection uses.
func networkOf(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	network, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

func nameOf(network netip.Prefix) string {
	if network.IsSingleIP() {
		return network.Addr().String()
	}
	return network.String()
}
