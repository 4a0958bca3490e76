package stream_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// lossy is a proxy between a client and the broker. It drops requests on demand, which does not
// happen on a healthy network.
type lossy struct {
	*brokertest.Wire
	lose atomic.Pointer[string] // a part of the subjects of requests to drop; nil: none
	lost atomic.Int64
}

// The requests that lossy may drop.
var (
	pulls = ".CONSUMER.MSG.NEXT."
	looks = ".STREAM.INFO."
)

func startLossy(t *testing.T, broker *brokertest.Server) *lossy {
	t.Helper()
	l := &lossy{Wire: brokertest.NewWire(t, broker.URL())}
	l.Forward(l.forward)
	return l
}

// connect returns a client whose connection goes through the proxy.
func (l *lossy) connect(t *testing.T, cfg stream.Config) *stream.Client {
	t.Helper()
	cfg.URL = l.URL()
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

// forward copies what the client sends, one protocol message at a time.
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

// A lost request is reported, and sent again.
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
			for len(messages) < 10 { // short waits, as in the stages
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

// A reader that the server has forgotten continues, even if the broker does not answer the first
// attempt to begin again.
func TestReaderRestartsUntilItSucceeds(t *testing.T) {
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
		t.Error("no request was lost: the test shows nothing")
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

// A reader notices that the last messages were lost with a connection, though no message follows.
func TestReaderMissesTheLastMessages(t *testing.T) {
	broker := brokertest.New(t)
	direct := connect(t, broker)
	network := startLossy(t, broker)
	reader := open(t, network.connect(t, stream.Config{}), stream.ConsumerConfig{Stream: stream.Traces})
	if early, err := reader.Fetch(t.Context(), nil, 1, 0, time.Second); err != nil || len(early) > 0 { // a request waits at the broker
		t.Fatal(early, err)
	}
	network.Freeze()
	publish(t, direct, 3)
	pipelinetest.Await(t, "the deliveries", func() bool { return stream.DeliveredToReaders(t, direct, stream.Traces) == 3 })
	network.Cut()
	network.Thaw()
	network.Mend()
	var messages []stream.Message
	for end := time.Now().Add(time.Minute); len(messages) < 3 && time.Now().Before(end); {
		var err error
		if messages, err = reader.Fetch(t.Context(), messages, 3-len(messages), 0, 20*time.Millisecond); err != nil {
			t.Log(err) // the connection is lost
		}
	}
	if len(messages) != 3 || messages[0].Sequence != 1 || messages[2].Sequence != 3 {
		t.Errorf("the reader has %d messages, want 1 to 3", len(messages))
	}
}

// A message of an agent is never treated as a control message of the server, even if it has the
// same form, that is, an empty body and a header Status. Only its reply subject differs.
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

// publishSizes publishes one message of each size, in bytes.
func publishSizes(t *testing.T, client *stream.Client, sizes ...int) {
	t.Helper()
	all := make([]stream.Record, len(sizes))
	for i, size := range sizes {
		all[i] = record("did:web:large", fmt.Sprintf("%0*d", size, i))
	}
	if _, err := newCommitter(t, client, stream.CommitConfig{}).Publish(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// awaitRequested waits until everything that the consumer requested has arrived, and returns the number
// of queued messages and their bytes. left is the number of messages that are left in the stream.
// The request ends, because the stream has more than it asks for.
func awaitRequested(t *testing.T, consumer *stream.Consumer, left int) (messages, bytes int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		messages, bytes, more := consumer.Ahead()
		if !more || messages == left {
			return messages, bytes
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages with %d bytes arrived, and the request is still open", messages, bytes)
		}
	}
}

// What is queued for a slow reader is limited in bytes. Everything is read once and in order.
func TestPrefetchIsBoundedByBytes(t *testing.T) {
	const count, bound = 40, 1 << 20
	client := connect(t, brokertest.New(t))
	publishSizes(t, client, slices.Repeat([]int{200 << 10}, count)...)
	for _, durable := range []string{stream.VerifierConsumer, ""} {
		consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: durable, PrefetchBytes: bound})
		most := 0
		for taken := 1; taken <= count; taken++ {
			if m := fetch(t, consumer, 1)[0]; m.Sequence != uint64(taken) || m.Delivery != uint64(taken) && durable == "" || len(m.Data) != 200<<10 {
				t.Fatalf("durable %q: message %d has sequence %d, delivery %d and %d bytes", durable, taken, m.Sequence, m.Delivery, len(m.Data))
			}
			_, bytes := awaitRequested(t, consumer, count-taken)
			most = max(most, bytes)
		}
		if most > bound || most < bound/2 {
			t.Errorf("durable %q: %d bytes were queued, the limit is %d", durable, most, bound)
		}
	}
}

// A message that is larger than the limit is read all the same.
func TestMessageLargerThanTheBound(t *testing.T) {
	const bound = 64 << 10
	sizes := []int{10, 300 << 10, 400 << 10, 50 << 10, 20, 700 << 10, 40 << 10, 30 << 10, 65 << 10, 30}
	client := connect(t, brokertest.New(t))
	publishSizes(t, client, sizes...)
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, PrefetchBytes: bound})
	for i, size := range sizes {
		if m := fetch(t, consumer, 1)[0]; m.Sequence != uint64(i+1) || len(m.Data) != size {
			t.Fatalf("message %d has sequence %d and %d bytes", i, m.Sequence, len(m.Data))
		}
		if n, bytes := awaitRequested(t, consumer, len(sizes)-i-1); bytes > bound && n > 1 {
			t.Errorf("%d messages with %d bytes are queued, the limit is %d", n, bytes, bound)
		}
	}
}

// A request whose bytes are all used is over, although the server does not report that.
func TestRequestThatIsExactlyFull(t *testing.T) {
	client := connect(t, brokertest.New(t))
	publishSizes(t, client, 1000, 1000, 1000, 1000, 1000)
	first := open(t, client, stream.ConsumerConfig{Stream: stream.Traces})
	fetch(t, first, 1)
	if n, _ := awaitRequested(t, first, 4); n != 4 {
		t.Fatalf("%d messages are waiting", n)
	}
	size := first.NextSize()
	second := open(t, client, stream.ConsumerConfig{Stream: stream.Traces, PrefetchBytes: 2 * size})
	for i := range 5 {
		if m := fetch(t, second, 1)[0]; m.Sequence != uint64(i+1) {
			t.Errorf("message %d has sequence %d", i, m.Sequence)
		}
	}
}
