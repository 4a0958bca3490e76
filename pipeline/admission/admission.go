// Package admission bounds the connections that an HTTP server accepts: all of them, and
// those of each client address.
//
// It owns which connections stay open. It owns no request: what the requests in hand may
// take is for their handlers to bound.
//
// Invariants: a server has at most the connections of its bound, and a few spare ones
// for those over it. A connection over a bound takes the place of one that is idle between
// requests. Where none is, it gets a spare one, on which operators are answered and
// publishers are told why they are refused. The newest spare connection closes the oldest: however many
// come, each new one is answered, and none waits.
package admission

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limit bounds the connections of one listener.
type Limit struct {
	name                string // of the listener
	most, share, spares int
	log                 *slog.Logger
	refusals            *prometheus.CounterVec // by bound
	displaced           prometheus.Counter

	mu       sync.Mutex
	open     int // connections within the bound
	idle     int // of these
	networks map[netip.Prefix]*network
	spare    list.List // of *conn, the oldest first
	refused  time.Time // when a connection was refused last
}

// network is what has a share: an IPv4 address, or the /64 of an IPv6 address.
type network struct {
	open int
	idle list.List // of *conn, the longest idle first
}

// The bounds, as the metric names them.
const (
	boundOfAddress = "address"
	boundOfAll     = "all"
)

const (
	mostSpares = 64
	// streak is how long no connection must be refused until one is logged again.
	streak = time.Minute
)

// New returns the limit of a listener, by the name that metrics and log have for it.
func New(name string, cfg Config, log *slog.Logger, metrics prometheus.Registerer) *Limit {
	l := &Limit{name: name, log: log, networks: map[netip.Prefix]*network{}}
	l.most, l.share = cfg.bounds()
	l.spares = max(1, min(mostSpares, l.most/8))
	labels := prometheus.Labels{"listener": name}
	l.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_connections_refused_total", ConstLabels: labels,
		Help: "Connections over a bound: that of their address, or that of all."}, []string{"bound"})
	l.displaced = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "plumbline_connections_displaced_total", ConstLabels: labels,
		Help: "Idle connections that were closed in favour of new ones."})
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_connections", ConstLabels: labels, Help: "Connections within the bound."}, l.count)
	metrics.MustRegister(l.refusals, l.displaced, open)
	return l
}

func (l *Limit) count() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.open)
}

// Bound lets the server, which is not serving yet, accept connections of listener within
// the limit. It serves on what is returned.
func (l *Limit) Bound(server *http.Server, accepting net.Listener) net.Listener {
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
	server.ConnState = func(c net.Conn, state http.ConnState) { l.note(own(c), state == http.StateIdle) }
	return &listener{Listener: accepting, limit: l}
}

type refusalKey struct{}

// Refusal returns over which bound the connection of a request is; "" where it is over none.
func Refusal(ctx context.Context) string {
	refusal, _ := ctx.Value(refusalKey{}).(string)
	return refusal
}

type listener struct {
	net.Listener
	limit *Limit
}

// Accept returns the next connection. It closes another one where that has to go.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, limit: l.limit, from: networkOf(accepted.RemoteAddr())}
	if gone := l.limit.admit(c); gone != nil {
		_ = gone.Close() // nobody is left to tell
	}
	return c, nil
}

// conn is a connection that was accepted.
type conn struct {
	net.Conn
	limit   *Limit
	from    netip.Prefix
	refused string // over which bound it is

	// Of the limit:
	network *network      // nil where it is spare
	element *list.Element // among the spare connections, or those that are idle
	left    bool
}

// own returns what Accept returned, from within TLS too.
func own(c net.Conn) *conn {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	return c.(*conn)
}

// Close gives the connection's place back when the connection is closed.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	c.limit.leave(c)
	return err
}

// CloseWrite is what an http.Server calls so that its last answer arrives.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// admit gives the connection a place. It returns the connection that has to be closed for it, if any.
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
	l.networks[c.from] = n // it may have left with gone
	c.network = n
	n.open++
	l.open++
	return gone
}

// refuse gives the connection a spare place, and returns the one that has to go for it.
func (l *Limit) refuse(c *conn, bound string) (gone *conn) {
	c.refused = fmt.Sprintf("all %d connections are taken", l.most)
	if bound == boundOfAddress {
		c.refused = fmt.Sprintf("%s has its share of the connections, %d of %d", nameOf(c.from), l.share, l.most)
	}
	l.refusals.WithLabelValues(bound).Inc()
	now := time.Now()
	if now.Sub(l.refused) > streak {
		l.log.Warn("connections are refused; the next line about it comes after a minute without", "listener", l.name, "reason", c.refused)
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

// idlest returns an idle connection of the network that has the most, of those that have any idle.
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

// note keeps which connections are idle.
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

// leave takes the connection's place away, once.
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

// networkOf returns whose share a connection takes from.
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
