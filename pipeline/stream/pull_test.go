package stream_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

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

// A request that got lost is named, and sent again.
func TestLostRequestDoesNotStallTheConsumer(t *testing.T) {
	for name, cfg := range map[string]stream.ConsumerConfig{
		"durable": {Stream: stream.Traces, Durable: stream.VerifierConsumer},
		"reader":  {Stream: stream.Traces},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := brokertest.New(t)
			publish(t, connect(t, broker), 10)
			network := startLossy(t, broker)
			client := network.connect(t, stream.Config{})
			network.lose.Store(&pulls)
			consumer := open(t, client, cfg)
			var messages []stream.Message
			named := false
			for len(messages) < 10 { // brief waits, as the stages do
				var err error
				messages, err = consumer.Fetch(t.Context(), messages, 10-len(messages), 0, 20*time.Millisecond)
				if err != nil && !errors.Is(err, stream.ErrUnavailable) {
					t.Fatal(err)
				}
				named = named || err != nil
				if network.lost.Load() > 0 {
					network.lose.Store(nil)
				}
			}
			if messages[0].Sequence != 1 || messages[9].Sequence != 10 {
				t.Errorf("messages %d to %d, want 1 to 10", messages[0].Sequence, messages[9].Sequence)
			}
			if network.lost.Load() == 0 || !named {
				t.Errorf("%d requests were lost, an error said so: %v", network.lost.Load(), named)
			}
		})
	}
}

// A reader that the server has forgotten goes on, also where the broker does not answer when
// it first begins again.
func TestReadingIsBegunAgainUntilItSucceeds(t *testing.T) {
	broker := brokertest.New(t)
	publish(t, connect(t, broker), 10)
	network := startLossy(t, broker)
	client := network.connect(t, stream.Config{Timeout: time.Second})
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, PrefetchMessages: 4})
	messages := fetch(t, consumer, 2)
	network.lose.Store(&looks)
	broker.Restart()
	failed := 0
	for len(messages) < 10 && failed < 100 {
		var err error
		if messages, err = consumer.Fetch(t.Context(), messages, 10-len(messages), 0, 20*time.Millisecond); err != nil {
			t.Log(err)
			failed++
		}
		if failed > 1 && network.lost.Load() > 0 {
			network.lose.Store(nil)
		}
	}
	if network.lost.Load() == 0 {
		t.Error("no look was lost: the test shows nothing")
	}
	for i, m := range messages {
		if m.Sequence != uint64(i+1) {
			t.Errorf("message %d has sequence %d after %d failures", i, m.Sequence, failed)
		}
	}
	if len(messages) != 10 {
		t.Errorf("%d messages after %d failures, want 10", len(messages), failed)
	}
}

// What an agent publishes is never taken for a control message of the server, which has the
// same form but for its reply subject: empty, with a header Status.
func TestMessagesThatLookLikeControlMessages(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	publish(t, client, 1)
	conn, err := nats.Connect(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	statuses := []string{"100", "400", "404", "408", "409", "412", "423", "503", ""}
	for i, status := range statuses {
		m := nats.NewMsg("aap.trace.mallory")
		m.Header.Set("Status", status)
		m.Header.Set("Description", "Consumer Deleted")
		answer, err := conn.RequestMsg(m, 10*time.Second)
		if err != nil || !strings.Contains(string(answer.Data), fmt.Sprintf(`"seq":%d`, i+2)) {
			t.Fatalf("status %s: %v, %v", status, answer, err)
		}
	}
	last := len(statuses) + 2
	if _, err := newCommitter(t, client, stream.CommitConfig{}).Publish(t.Context(), records("later", 1)); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []stream.ConsumerConfig{
		{Stream: stream.Traces, Durable: stream.VerifierConsumer},
		{Stream: stream.Traces},
	} {
		messages := fetch(t, open(t, client, cfg), last)
		for i, m := range messages {
			if m.Sequence != uint64(i+1) {
				t.Errorf("durable %q: message %d has sequence %d", cfg.Durable, i, m.Sequence)
			}
			if status := i - 1; status >= 0 && status < len(statuses) && (m.Header("Status") != statuses[status] || len(m.Data) > 0) {
				t.Errorf("durable %q: message %d has status %q and %d bytes", cfg.Durable, i, m.Header("Status"), len(m.Data))
			}
		}
		if cfg.Durable != "" {
			if err := stream.Acknowledge(t.Context(), messages); err != nil {
				t.Fatal(err)
			}
		}
	}
	progress, err := client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
	if err != nil || progress.AckFloor != uint64(last) || progress.Unacked != 0 || progress.Pending != 0 {
		t.Errorf("%+v, %v", progress, err)
	}
}
