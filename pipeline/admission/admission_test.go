package admission

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server with a limit.
type site struct {
	t       *testing.T
	limit   *Limit
	address string
}

// start serves until the test ends. The answer to a request is the limit that its connection
// exceeds.
func start(t *testing.T, cfg Config, certificate ...string) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, limit: newLimit(cfg), address: listener.Addr().String()}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := Refusal(r.Context()); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
		}
	})}
	bounded, ended := s.limit.bound(server, listener), make(chan error)
	go func() {
		if len(certificate) > 0 {
			ended <- server.ServeTLS(bounded, certificate[0], certificate[1])
		} else {
			ended <- server.Serve(bounded)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		//lint:ignore errcheck it ends because it is closed
		<-ended
		s.await("every place to be given back", func() bool {
			return s.limit.open == 0 && s.limit.idle == 0 && len(s.limit.networks) == 0 && s.limit.spare.Len() == 0
		})
	})
	return s
}

func newLimit(cfg Config) *Limit {
	return New("test", cfg, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
}

// await polls until the condition holds, with the limit locked. The condition follows from
// earlier steps: the server only has to be scheduled.
func (s *site) await(what string, holds func() bool) {
	s.t.Helper()
	locked := func() bool {
		s.limit.mu.Lock()
		defer s.limit.mu.Unlock()
		return holds()
	}
	for end := time.Now().Add(time.Minute); !locked(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("did not happen in a minute:", what)
		}
	}
}

func counted(t *testing.T, counter prometheus.Counter) float64 {
	t.Helper()
	var metric dto.Metric
	if err := counter.Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetCounter().GetValue()
}

// client is a connection from an address of this machine.
type client struct {
	net.Conn
	t    *testing.T
	read *bufio.Reader
}

func (s *site) connect(from string) *client {
	s.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(s.t.Context(), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return &client{Conn: conn, t: s.t, read: bufio.NewReader(conn)}
}

// slow returns a connection whose request never ends.
func (s *site) slow(from string) *client {
	s.t.Helper()
	c := s.connect(from)
	c.write("GET / HTTP/1.1\r\nHost: ")
	return c
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// ask makes a request and returns the answer's code and text.
func (c *client) ask() (code int, text string, ended bool) {
	c.t.Helper()
	c.write("GET / HTTP/1.1\r\nHost: test\r\n\r\n")
	answer, err := http.ReadResponse(c.read, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Close
}

// demand makes a request and checks the answer: it contains the given part of a refusal, or is no
// refusal.
func (c *client) demand(refusal string) {
	c.t.Helper()
	code, text, ended := c.ask()
	if (code == http.StatusOK) != (refusal == "") || !strings.Contains(text, refusal) || ended != (refusal != "") {
		c.t.Errorf("%d %q, the connection ends: %v; want %q", code, text, ended, refusal)
	}
}

// awaitClosed checks that the server closes the connection.
func (c *client) awaitClosed() {
	c.t.Helper()
	if _, err := c.read.ReadByte(); err == nil {
		c.t.Error("got an answer; the connection should have been closed")
	}
}

// An address with more than its share is refused with that reason, and others are served. A
// connection that it closes makes room for a new one.
func TestAddressHasItsShare(t *testing.T) {
	s := start(t, Config{MaxConnections: 8, AddressShare: 25})
	one := s.slow("127.0.0.1")
	s.slow("127.0.0.1")
	s.connect("127.0.0.1").demand("127.0.0.1 has its share of the connections, 2 of 8")
	s.connect("127.0.0.2").demand("")
	_ = one.Close()
	s.await("the place of the connection that was closed", func() bool { return s.limit.networks[prefix("127.0.0.1/32")].open == 1 })
	s.connect("127.0.0.1").demand("")
	if n := counted(t, s.limit.refusals.WithLabelValues(boundOfAddress)); n != 1 {
		t.Errorf("%v refusals are counted, want 1", n)
	}
}

// Above the limit of all connections, everyone is refused.
func TestAllConnectionsAreBounded(t *testing.T) {
	s := start(t, Config{MaxConnections: 3})
	for i := range 3 {
		s.slow(fmt.Sprintf("127.0.0.%d", i+1))
	}
	s.connect("127.0.0.4").demand("all 3 connections are taken")
	if n := counted(t, s.limit.refusals.WithLabelValues(boundOfAll)); n != 1 {
		t.Errorf("%v refusals are counted, want 1", n)
	}
}

// An idle connection is closed for a new one: one of the same address if its share is used up,
// one of the address with the most connections if all connections are in use.
func TestIdleConnectionsGoFirst(t *testing.T) {
	s := start(t, Config{MaxConnections: 4, AddressShare: 75})
	idle := func(from string) *client {
		c := s.connect(from)
		c.demand("")
		return c
	}
	await := func(n int) {
		s.await("connections to be idle", func() bool { return s.limit.idle == n })
	}
	other := idle("127.0.0.2")
	await(1)
	first := idle("127.0.0.1")
	await(2)
	second := idle("127.0.0.1")
	await(3)
	third := idle("127.0.0.1")
	await(4)
	fourth := idle("127.0.0.1")
	first.awaitClosed()
	await(4)
	idle("127.0.0.3")
	second.awaitClosed()
	for _, c := range []*client{other, third, fourth} {
		await(4)
		c.demand("")
	}
	if n := counted(t, s.limit.displaced); n != 2 {
		t.Errorf("%v displaced connections are counted, want 2", n)
	}
}

// However many connections exceed the limit, only some of them stay open, and the newest is
// answered.
func TestSpareConnections(t *testing.T) {
	s := start(t, Config{MaxConnections: 16, AddressShare: 1})
	held := s.slow("127.0.0.1")
	var over []*client
	for range 10 {
		over = append(over, s.slow("127.0.0.1"))
	}
	s.connect("127.0.0.1").demand("its share")
	for _, c := range over[:len(over)-s.limit.spares+1] {
		c.awaitClosed()
	}
	held.write("test\r\n\r\n")
	answer, err := http.ReadResponse(held.read, nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the connection within the limit: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
	if s.limit.spares != 2 || len(over) != 10 {
		t.Errorf("%d spare connections, %d over the limit", s.limit.spares, len(over))
	}
}

// The limits also hold for connections with TLS and HTTP/2.
func TestSecureConnections(t *testing.T) {
	authority := transporttest.New(t)
	s := start(t, Config{MaxConnections: 8, AddressShare: 1}, authority.CertFile, authority.KeyFile)
	get := func(want int, refusal string) {
		t.Helper()
		over := &http.Transport{TLSClientConfig: authority.Client(0), ForceAttemptHTTP2: true}
		t.Cleanup(over.CloseIdleConnections)
		answer, err := (&http.Client{Transport: over}).Get("https://" + s.address)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != want || answer.ProtoMajor != 2 || !strings.Contains(string(text), refusal) {
			t.Errorf("%s %s %s, error %v", answer.Proto, answer.Status, text, err)
		}
	}
	get(http.StatusOK, "")
	s.await("the connection to be idle", func() bool { return s.limit.idle == 1 })
	get(http.StatusOK, "") // replaces the first one
	s.await("the connection to be idle", func() bool { return s.limit.idle == 1 })
	s.connect("127.0.0.1") // does not begin its handshake
	get(http.StatusServiceUnavailable, "its share")
}

// The answer to a request whose body nobody reads arrives, as it does without a limit.
func TestRefusalArrivesBeforeALongBody(t *testing.T) {
	s := start(t, Config{MaxConnections: 8, AddressShare: 1})
	s.slow("127.0.0.1")
	answer, err := new(http.Client).Post("http://"+s.address, "text/plain", bytes.NewReader(make([]byte, 8<<20)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "its share") {
		t.Errorf("%s %s, error %v", answer.Status, text, err)
	}
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func TestWhoseShare(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7":          "192.0.2.7",
		"::ffff:192.0.2.7":   "192.0.2.7",
		"2001:db8:1:2:3::4":  "2001:db8:1:2::/64",
		"2001:db8:1:2:ff::1": "2001:db8:1:2::/64",
		"fe80::1%eth0":       "fe80::/64",
	} {
		ip := netip.MustParseAddr(address)
		if got := nameOf(networkOf(net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 1)))); got != want {
			t.Errorf("%s takes from the share of %s, want %s", address, got, want)
		}
	}
	if got := networkOf(&net.UnixAddr{}); got.IsValid() {
		t.Errorf("a connection without an address takes from the share of %s", got)
	}
}

// Both limits are shown before the first refusal: a rate over a counter that does not exist yet misses the
// refusals of its first scrape.
func TestRefusalsBeginAtZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	New("test", Default(), slog.New(slog.DiscardHandler), registry)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, family := range families {
		if family.GetName() == "plumbline_connections_refused_total" {
			shown = len(family.GetMetric())
		}
	}
	if shown != 2 {
		t.Errorf("%d limits are shown, want 2", shown)
	}
}

// A streak of refusals is logged once.
func TestStreakIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New("test", Config{MaxConnections: 1}, slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry())
		for range 50 {
			l.admit(&conn{from: prefix("192.0.2.7/32")})
			time.Sleep(streak / 2)
		}
		time.Sleep(streak)
		l.admit(&conn{from: prefix("192.0.2.7/32")})
		if got := strings.Count(log.String(), "connections are refused"); got != 2 {
			t.Errorf("%d lines, want 2:\n%s", got, log.String())
		}
	})
}

// Whatever connections arrive, become idle, and end: no limit is exceeded, and every count is
// right.
func TestBoundsHold(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLimit(Config{MaxConnections: 1 + random.IntN(12), AddressShare: random.IntN(101)})
		var here []*conn
		for range 300 {
			switch random.IntN(4) {
			case 0, 1:
				c := &conn{limit: l, from: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(5))}), 32)}
				if gone := l.admit(c); gone != nil {
					if gone.refused == "" && gone.element != nil {
						t.Fatalf("seed %d: a closed connection is still idle", seed)
					}
					here = slices.DeleteFunc(here, func(c *conn) bool { return c == gone })
				}
				here = append(here, c)
			case 2:
				if len(here) > 0 {
					l.note(here[random.IntN(len(here))], random.IntN(2) == 0)
				}
			default:
				if len(here) > 0 {
					i := random.IntN(len(here))
					l.leave(here[i])
					l.leave(here[i])
					here = slices.Delete(here, i, i+1)
				}
			}
			l.checkCounts(t, here)
		}
	}
}

// checkCounts compares the limit with the connections that are open.
func (l *Limit) checkCounts(t *testing.T, here []*conn) {
	t.Helper()
	open, idle, spare, of := 0, 0, 0, map[netip.Prefix]int{}
	for _, c := range here {
		switch {
		case c.left:
			t.Fatal("an open connection counts as closed")
		case c.network == nil:
			spare++
		default:
			open++
			of[c.from]++
			if c.element != nil {
				idle++
			}
		}
	}
	if open != l.open || idle != l.idle || spare != l.spare.Len() || len(of) != len(l.networks) {
		t.Fatalf("%d connections, %d idle, %d spare, %d networks; counted are %d, %d, %d and %d",
			open, idle, spare, len(of), l.open, l.idle, l.spare.Len(), len(l.networks))
	}
	for from, n := range of {
		if n != l.networks[from].open || n > l.share || open > l.most || spare > l.spares {
			t.Fatalf("%s: %d connections, %d counted, the share is %d; of all %d of %d, spare %d of %d",
				from, n, l.networks[from].open, l.share, open, l.most, spare, l.spares)
		}
	}
}

// What net/http reports is in the limit's log, whole: the stack of a panic follows after what the panic quotes.
func TestServersReportToTheLog(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer) // read it only after Serve has returned
	limit := New("test", Operators(), slog.New(slog.NewTextHandler(log, nil)), prometheus.NewRegistry())
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- limit.Serve(ctx, t.Context(), &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(`no row "a"`) })}, listener)
	}()
	if answer, err := http.Get("http://" + listener.Addr().String()); err == nil {
		t.Errorf("the answer is %s, error %v", answer.Status, answer.Body.Close())
	}
	stop()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, `no row \"a\"`) || !strings.Contains(got, "TestServersReportToTheLog") {
		t.Errorf("the log is\n%s", got)
	}
}
