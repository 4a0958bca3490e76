package stream_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// A client of several servers leaves one that is connected but has no JetStream. A server that is
// cut off from its peers has none.
func TestIsolatedServerIsLeft(t *testing.T) {
	isolated := runServer(t, server.Options{})
	broker := brokertest.New(t)
	broker.Stop() // so the client starts at the other server
	client, err := stream.Connect(t.Context(), stream.Config{URL: isolated.ClientURL() + "," + broker.URL()})
	if err != nil {
		t.Fatal(err)
	}
	broker.Start()
	if err := client.Ping(t.Context()); err == nil {
		t.Fatal("a server without JetStream answers as if it had it")
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		client.LeaveIsolated(20 * time.Millisecond)
	}()
	pipelinetest.Await(t, "the client at the other server", func() bool { return client.Ping(t.Context()) == nil })
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	<-left
}
