package stream_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// A key that is too long for the broker is refused before it is sent.
func TestLongKeysAreNotSent(t *testing.T) {
	client := connect(t, brokertest.New(t))
	bucket := brokertest.Bucket(t, client, stream.Cards)
	key := strings.Repeat("k", 5000)
	_, _, got := bucket.Get(t.Context(), key)
	_, _, newest := bucket.GetNewest(t.Context(), key)
	_, created := bucket.Create(t.Context(), key, nil)
	_, updated := bucket.Update(t.Context(), key, nil, 1)
	_, put := bucket.Put(t.Context(), key, nil)
	_, all := bucket.WriteAll(t.Context(), []stream.Write{{Key: key}})
	for doing, err := range map[string]error{"get": got, "get newest": newest, "create": created, "update": updated,
		"put": put, "write all": all, "delete": bucket.Delete(t.Context(), key, 1)} {
		if !errors.Is(err, stream.ErrTooLarge) {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if err := client.Ping(t.Context()); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// Closed returns an error for a connection that the broker closed, and nil for one that the
// client closed.
func TestClosedPermanently(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	if err := client.Provoke(); err != nil {
		t.Fatal(err)
	}
	if err := client.Closed(t.Context()); err == nil || !strings.Contains(strings.ToLower(err.Error()), "maximum control line") {
		t.Errorf("closed by the broker: %v", err)
	}
	other, err := stream.Connect(t.Context(), stream.Config{URL: broker.URL()})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := other.Closed(ended); err != nil {
		t.Errorf("while it is open: %v", err)
	}
	if err := errors.Join(other.Close(), other.Closed(t.Context())); err != nil {
		t.Errorf("closed by us: %v", err)
	}
}

// Reading ends with an error when the connection is closed permanently. The consumer can then be
// closed.
func TestCloseOfAConsumerWithoutAConnection(t *testing.T) {
	for _, durable := range []string{stream.VerifierConsumer, ""} {
		broker := brokertest.New(t)
		connect(t, broker)
		client := dial(t, broker, stream.Config{Timeout: 300 * time.Millisecond})
		consumer, err := client.OpenConsumer(t.Context(), stream.ConsumerConfig{Stream: stream.Traces, Durable: durable})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Provoke(); err != nil {
			t.Fatal(err)
		}
		if err := client.Closed(t.Context()); err == nil {
			t.Fatal("the connection is not closed")
		}
		for range 2 {
			if _, err := consumer.Fetch(t.Context(), nil, 1, 0, time.Minute); !errors.Is(err, stream.ErrUnavailable) {
				t.Errorf("durable %q: %v", durable, err)
			}
		}
		consumer.Close()
	}
}

// Fetch returns what the broker sent before it closed the connection permanently, together with the
// error.
func TestFetchKeepsWhatCameWithAnError(t *testing.T) {
	const stored = 20
	broker := brokertest.New(t)
	publish(t, connect(t, broker), stored)
	client := dial(t, broker, stream.Config{Timeout: 300 * time.Millisecond})
	consumer := open(t, client, stream.ConsumerConfig{Stream: stream.Traces})
	fetch(t, consumer, 1)
	pipelinetest.Await(t, "the other messages", func() bool {
		queued, _, _ := consumer.Ahead()
		return queued == stored-1
	})
	if err := client.Provoke(); err != nil {
		t.Fatal(err)
	}
	if err := client.Closed(t.Context()); err == nil {
		t.Fatal("the connection is not closed")
	}
	rest, err := consumer.Fetch(t.Context(), nil, stored, 0, time.Minute)
	if len(rest) != stored-1 || rest[0].Sequence != 2 || !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("%d messages, %v", len(rest), err)
	}
}

// The client tries wrong credentials again until they are right.
func TestCredentialsAreTriedAgain(t *testing.T) {
	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Username: "u", Password: "right"}
	run := func() *server.Server {
		s, err := server.NewServer(options)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("the broker does not start")
		}
		return s
	}
	broker := run()
	options.Port = broker.Addr().(*net.TCPAddr).Port
	refused := make(refusals, 100)
	client, err := stream.Connect(t.Context(), stream.Config{URL: broker.ClientURL(), User: "u", Password: "right",
		Logger: slog.New(slog.NewTextHandler(refused, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, password := range []string{"wrong", "right"} {
		broker.Shutdown()
		broker.WaitForShutdown()
		options.Password = password
		broker = run()
		for range 3 { // nats.go gives up at the second
			if password == "wrong" {
				<-refused
			}
		}
	}
	defer broker.Shutdown()
	pipelinetest.Await(t, "the connection", func() bool { return client.Ping(t.Context()) == nil })
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// refusals receives an element for each line of the log that reports refused credentials.
type refusals chan struct{}

func (r refusals) Write(line []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(line), []byte("authorization")) {
		r <- struct{}{}
	}
	return len(line), nil
}
