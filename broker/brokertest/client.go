package brokertest

import (
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Connect returns a client that is closed when the test ends.
func Connect(t testing.TB, cfg stream.Config) *stream.Client {
	t.Helper()
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

// Connect returns a client of the server that is closed when the test ends.
func (s *Server) Connect() *stream.Client {
	s.t.Helper()
	return Connect(s.t, stream.Config{URL: s.URL(), MonitorURL: s.MonitorURL()})
}

// Bucket opens a bucket.
func Bucket(t testing.TB, client *stream.Client, name string) *stream.Bucket {
	t.Helper()
	bucket, err := client.Bucket(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

// RemoveKey removes a key of a bucket, as an operator may.
func RemoveKey(t testing.TB, bucket *stream.Bucket, key string) {
	t.Helper()
	_, revision, err := bucket.Get(t.Context(), key)
	if err == nil {
		err = bucket.Delete(t.Context(), key, revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns exactly n messages of a stream, as a durable consumer gets them, or from the
// beginning if durable is empty.
func (s *Server) Read(name, durable string, n int) []stream.Message {
	s.t.Helper()
	consumer, err := s.Connect().OpenConsumer(s.t.Context(), stream.ConsumerConfig{Stream: name, Durable: durable})
	if err != nil {
		s.t.Fatal(err)
	}
	defer consumer.Close()
	messages, err := consumer.Fetch(s.t.Context(), nil, n, 0, 20*time.Second)
	if err != nil || len(messages) != n {
		s.t.Fatalf("%d messages in %s, want %d; error %v", len(messages), name, n, err)
	}
	return messages
}

// ReadTraces returns the traces of stream TRACES, without the requests to end a session. It fails
// the test unless there are n.
func (s *Server) ReadTraces(n int) []stream.Message {
	s.t.Helper()
	state, err := s.Connect().StreamState(s.t.Context(), stream.Traces)
	if err != nil {
		s.t.Fatal(err)
	}
	traces := slices.DeleteFunc(s.Read(stream.Traces, "", int(state.Messages)), func(m stream.Message) bool {
		_, requested := wire.EndOf(m.Agent, m.Data)
		return requested
	})
	if len(traces) != n {
		s.t.Fatalf("%d traces in the stream, want %d", len(traces), n)
	}
	return traces
}
