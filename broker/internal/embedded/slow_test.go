package embedded

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A service that does not read for a while, because the machine is busy, keeps its connection, however much it has
// asked for. With the server's own defaults it loses it: the two cases show that the test would notice.
func TestSlowReadersKeepTheirConnections(t *testing.T) {
	const (
		messages = 48
		size     = 2 << 20 // bytes of a message; together more than the server's default of max_pending, and less than ours
	)
	for name, c := range map[string]struct {
		change  func(*server.Options)
		paused  time.Duration // at most: less once the server has dropped the connection
		dropped bool
	}{
		"much unread, the defaults":  {func(o *server.Options) { o.MaxPending = server.MAX_PENDING_SIZE }, 2 * time.Minute, true},
		"long unread, the defaults":  {func(o *server.Options) { o.WriteDeadline = server.DEFAULT_FLUSH_DEADLINE }, 2 * time.Minute, true},
		"much and long unread, ours": {func(*server.Options) {}, 15 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			at, err := Assign(dir, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			opts, err := options(dir, at)
			if err != nil {
				t.Fatal(err)
			}
			c.change(opts)
			s, err := server.NewServer(opts)
			if err != nil {
				t.Fatal(err)
			}
			s.Start()
			defer s.WaitForShutdown()
			defer s.Shutdown()
			if !s.ReadyForConnections(30 * time.Second) {
				t.Fatal("the server is not ready")
			}
			fill(t, at.URL(), messages, size)

			var gate gate
			var lost atomic.Int64
			conn, err := nats.Connect(at.URL(), nats.SetCustomDialer(&gate), nats.PingInterval(time.Hour),
				nats.DisconnectErrHandler(func(*nats.Conn, error) { lost.Add(1) }))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var came atomic.Int64
			sub, err := conn.Subscribe("mine", func(m *nats.Msg) {
				if len(m.Data) == size {
					came.Add(1)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := sub.SetPendingLimits(-1, -1); err != nil {
				t.Fatal(err)
			}
			if err := conn.Flush(); err != nil {
				t.Fatal(err)
			}
			gate.shut()
			if err := conn.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.S.c", "mine", fmt.Appendf(nil, `{"batch":%d,"expires":%d}`, messages, time.Minute)); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(c.paused); time.Now().Before(end) && s.NumSlowConsumers() == 0; {
				time.Sleep(10 * time.Millisecond)
			}
			gate.open()
			for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && lost.Load() == 0 && came.Load() < messages; {
				time.Sleep(10 * time.Millisecond)
			}
			if dropped := lost.Load() > 0; dropped != c.dropped || !dropped && came.Load() != messages || (s.NumSlowConsumers() > 0) != c.dropped {
				t.Errorf("dropped: %t, with %d of %d messages; slow consumers: %d", dropped, came.Load(), messages, s.NumSlowConsumers())
			}
		})
	}
}

// fill creates stream S with so many messages, and consumer c.
func fill(t *testing.T, url string, messages, size int) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	for range messages {
		if _, err := js.Publish(t.Context(), "s", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckNonePolicy}); err != nil {
		t.Fatal(err)
	}
}

// gate is a dialer whose connections read nothing while it is shut.
type gate struct{ closed atomic.Pointer[chan struct{}] }

func (g *gate) shut() {
	closed := make(chan struct{})
	g.closed.Store(&closed)
}

func (g *gate) open() { close(*g.closed.Load()) }

// Dial connects.
func (g *gate) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return gated{conn, g}, err
}

type gated struct {
	net.Conn
	gate *gate
}

// Read waits until the gate is open.
func (c gated) Read(into []byte) (int, error) {
	if closed := c.gate.closed.Load(); closed != nil {
		<-*closed
	}
	return c.Conn.Read(into)
}
