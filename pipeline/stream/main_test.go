package stream_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, brokertest.LeftBehind()...) }

// connect returns a client of a broker with the whole topology.
func connect(t testing.TB, broker *brokertest.Server) *stream.Client {
	t.Helper()
	client := dial(t, broker, stream.Config{})
	pipelinetest.EnsureTopology(t, client)
	return client
}

// dial returns a client with the given configuration and the broker's URLs.
func dial(t testing.TB, broker *brokertest.Server, cfg stream.Config) *stream.Client {
	t.Helper()
	cfg.URL, cfg.MonitorURL = broker.URL(), broker.MonitorURL()
	client, err := stream.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
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
	messages, err := consumer.Fetch(t.Context(), nil, n, 0, 20*time.Second)
	if err != nil || len(messages) != n {
		t.Fatalf("fetched %d messages, want %d; error %v", len(messages), n, err)
	}
	return messages
}
