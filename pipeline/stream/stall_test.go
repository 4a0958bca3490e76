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

// lossy stands between a client and the broker and loses requests for messages
// while told to, which no healthy network shows.
type lossy struct {
	listener net.Listener
	broker   *url.URL
	lose     atomic.Bool
	lost     atomic.Int64
}

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
			if l.lose.Load() && strings.Contains(words[1], ".CONSUMER.MSG.NEXT.") {
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
			client, err := stream.Connect(t.Context(), stream.Config{URL: network.url()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := client.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			})
			network.lose.Store(true)
			cfg.StallAfter = 100 * time.Millisecond
			consumer := open(t, client, cfg)
			var messages []stream.Message
			for len(messages) < 10 { // brief waits, as the stages do
				if messages, err = consumer.Fetch(t.Context(), messages, 10-len(messages), 0, 20*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				if network.lost.Load() > 0 {
					network.lose.Store(false)
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
