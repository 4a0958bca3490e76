package stream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// The rights that docs/SCHEMA.md gives to publishers are enough to publish. They show no dead
// letter: neither the stream, nor its messages on the way to a service's inbox.
func TestPublishersReadNoDeadLetters(t *testing.T) {
	address := brokerWithPublishers(t)
	service, err := stream.Connect(t.Context(), stream.Config{URL: "nats://service:s@" + address, AllowUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	if err := service.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := service.DeadLetter(t.Context(), wire.DeadLetter{Stage: "ingest", Reason: "invalid_json", Data: []byte("hunter2")}); err != nil {
		t.Fatal(err)
	}
	publisher, err := nats.Connect("nats://agents:a@"+address, nats.CustomInboxPrefix("_INBOX_agents"), nats.PermissionErrOnSubscribe(true))
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	js, err := jetstream.New(publisher, jetstream.WithDefaultTimeout(500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if ack, err := js.Publish(t.Context(), subject.Trace("a"), []byte(`{}`)); err != nil || ack.Stream != stream.Traces {
		t.Errorf("a trace: %+v, %v", ack, err)
	}
	if _, err := js.Stream(t.Context(), stream.DeadLetters); err == nil {
		t.Error("a publisher sees the stream of dead letters")
	}
	for _, watched := range []string{"deadletter.>", "_INBOX.>", ">"} {
		sub, err := publisher.SubscribeSync(watched)
		if err == nil {
			_, err = sub.NextMsg(5 * time.Second)
		}
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("a publisher subscribes to %s: %v", watched, err)
		}
	}
}

// brokerWithPublishers starts a broker with a user for agents.
func brokerWithPublishers(t *testing.T) (address string) {
	t.Helper()
	publishers := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"aap.trace.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_agents.>"}},
	}
	s := runServer(t, server.Options{JetStream: true, Users: []*server.User{
		{Username: "service", Password: "s"}, {Username: "agents", Password: "a", Permissions: publishers},
	}})
	return s.Addr().String()
}
