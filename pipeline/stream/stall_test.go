package stream_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// lossy stands between a client and the broker and loses requests while told to, which no
// healthy network shows.
type lossy struct {
	listener net.Listener
	broker   *url.URL
	lose     atomic.Pointer[string] // a part of the subjects of requests; nil: none is lost
	lost     atomic.Int64
}

// What lossy may lose.
var (
	pulls = ".CONSUMER.MSG.NEXT."
	looks = ".STREAM.INFO."
)

func startLossy(t *testing.T, broker *brokertest.Server) *lossy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	address, err := url.Parse(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{listener: listener, broker: address}
	go l.serve()
	return l
}

func (l *lossy) url() string {
	address := *l.broker
	address.Host = l.listener.Addr().String()
	return address.String()
}

// connect returns a client whose connection loses what it is told to.
func (l *lossy) connect(t *testing.T, cfg stream.Config) *stream.Client {
	t.Helper()
	cfg.URL = l.url()
	client, err := stream.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return client
}

func (l *lossy) serve() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.broker.Host)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() { l.forward(client, server); _ = server.Close() }()
		go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
	}
}

// forward copies what the client says, protocol message by protocol message.
func (l *lossy) forward(client io.Reader, server io.Writer) {
	from := bufio.NewReaderSize(client, 1<<20)
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return
		}
		message := []byte(line)
		words := strings.Fields(line)
		if verb := strings.ToUpper(words[0]); verb == "PUB" || verb == "HPUB" {
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			payload := make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(from, payload); err != nil {
				return
			}
			message = append(message, payload...)
			if lose := l.lose.Load(); lose != nil && strings.Contains(words[1], *lose) {
				l.lost.Add(1)
				continue
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

func TestLostRequestDoesNotStallTheConsumer(t *testing.T) {
	for name, cfg := range map[string]stream.ConsumerConfig{
		"durable": {Stream: stream.Traces, Durable: stream.VerifierConsumer},
		"reader":  {Stream: stream.Traces},
	} {
		t.Run(name, func(t *testing.T) {
			broker := brokertest.New(t)
			publish(t, connect(t, broker), 10)
			network := startLossy(t, broker)
			client := network.connect(t, stream.Config{})
			network.lose.Store(&pulls)
			cfg.StallAfter = 100 * time.Millisecond
			consumer := open(t, client, cfg)
			var messages []stream.Message
			for len(messages) < 10 { // brief waits, as the stages do
				var err error
				if messages, err = consumer.Fetch(t.Context(), messages, 10-len(messages), 0, 20*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				if network.lost.Load() > 0 {
					network.lose.Store(nil)
				}
			}
			if messages[0].Sequence != 1 || messages[9].Sequence != 10 {
				t.Errorf("messages %d to %d, want 1 to 10", messages[0].Sequence, messages[9].Sequence)
			}
			if network.lost.Load() == 0 {
				t.Error("no request was lost: the test shows nothing")
			}
		})
	}
}

// A reader goes on, too, where the broker does not answer when it first begins to read again.
func TestReadingIsBegunAgainUntilItSucceeds(t *testing.T) {
	broker := brokertest.New(t)
	publish(t, connect(t, broker), 10)
	network := startLossy(t, broker)
	client := network.connect(t, stream.Config{Timeout: 300 * time.Millisecond})
	network.lose.Store(&pulls)
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, StallAfter: 100 * time.Millisecond})
	var messages []stream.Message
	failed := 0
	for len(messages) < 10 && failed < 100 {
		var err error
		if messages, err = consumer.Fetch(t.Context(), messages, 10-len(messages), 0, 20*time.Millisecond); err != nil {
			t.Log(err)
			failed++
		}
		switch {
		case failed > 0:
			network.lose.Store(nil)
		case network.lost.Load() > 0:
			network.lose.Store(&looks)
		}
	}
	if failed == 0 {
		t.Error("no look was lost: the test shows nothing")
	}
	if len(messages) != 10 || messages[0].Sequence != 1 || messages[9].Sequence != 10 {
		t.Errorf("%d messages after %d failures, want 1 to 10", len(messages), failed)
	}
}
