package stream_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, brokertest.LeftBehind()...) }

// connect returns a client of a broker with the whole topology.
func connect(t testing.TB, broker *brokertest.Server) *stream.Client {
	t.Helper()
	client := broker.Connect()
	pipelinetest.EnsureTopology(t, client)
	return client
}

// dial returns a client with the given configuration and the broker's URLs.
func dial(t testing.TB, broker *brokertest.Server, cfg stream.Config) *stream.Client {
	t.Helper()
	cfg.URL, cfg.MonitorURL = broker.URL(), broker.MonitorURL()
	return brokertest.Connect(t, cfg)
}

// runServer runs a server with settings of the test, on loopback, until the test ends.
func runServer(t *testing.T, options server.Options) *server.Server {
	t.Helper()
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	options.StoreDir = t.TempDir()
	s, err := server.NewServer(&options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.WaitForShutdown)
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// open opens a consumer that is closed when the test ends.
func open(t testing.TB, client *stream.Client, cfg stream.ConsumerConfig) *stream.Consumer {
	t.Helper()
	consumer, err := client.OpenConsumer(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consumer.Close)
	return consumer
}

// fetch reads exactly n messages.
func fetch(t testing.TB, consumer *stream.Consumer, n int) []stream.Message {
	t.Helper()
	messages, err := consumer.Fetch(t.Context(), nil, n, 0, time.Minute)
	if err != nil || len(messages) != n {
		t.Fatalf("fetched %d messages, want %d; error %v", len(messages), n, err)
	}
	return messages
}
