package stream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// brokerWithLimited starts a broker with a user who may do everything except what is denied.
func brokerWithLimited(t *testing.T, publish, subscribe []string) (whole, limited *stream.Client) {
	t.Helper()
	denied := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{">"}, Deny: publish},
		Subscribe: &server.SubjectPermission{Allow: []string{">"}, Deny: subscribe},
	}
	s := runServer(t, server.Options{JetStream: true, Users: []*server.User{
		{Username: "whole", Password: "w"}, {Username: "limited", Password: "l", Permissions: denied},
	}})
	connect := func(user, password string) *stream.Client {
		client, err := stream.Connect(t.Context(), stream.Config{URL: "nats://" + s.Addr().String(), User: user, Password: password, Name: "tester", AllowUnsafe: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	return connect("whole", "w"), connect("limited", "l")
}

// Each request without the necessary right ends with the refusal, which names the subject and the
// user. Without that, it would look like a request to a slow broker.
func TestRefusedRequestsAreNamed(t *testing.T) {
	whole, limited := brokerWithLimited(t,
		[]string{"$JS.API.DIRECT.GET.OBJ_zz.>", "$JS.API.CONSUMER.CREATE.KV_cards.>", "$JS.API.CONSUMER.MSG.NEXT.TRACES.>", "ledger.BOOT"}, []string{"asked.*"})
	if err := whole.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := whole.Objects(t.Context(), "zz"); err != nil {
		t.Fatal(err)
	}
	for subject, request := range map[string]func(context.Context) error{
		"$JS.API.DIRECT.GET.OBJ_zz.": func(ctx context.Context) error {
			_, err := limited.Objects(ctx, "zz")
			return err
		},
		"$JS.API.CONSUMER.CREATE.KV_cards.": func(ctx context.Context) error {
			bucket, err := limited.Bucket(ctx, stream.Cards)
			if err != nil {
				return err
			}
			return bucket.Watch(ctx, ">", 0, func(stream.Change) {}, func() {})
		},
		"$JS.API.CONSUMER.MSG.NEXT.TRACES.verifier": func(ctx context.Context) error {
			consumer, err := limited.OpenConsumer(ctx, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
			if err != nil {
				return err
			}
			defer consumer.Close()
			_, err = consumer.Fetch(ctx, nil, 1, 0, time.Hour)
			return err
		},
		"ledger.BOOT": func(ctx context.Context) error {
			return limited.AppendLedger(ctx, ledger.Event{Type: "BOOT", ID: "1", Data: []byte("{}")})
		},
		"asked.*": func(ctx context.Context) error {
			_, err := limited.Serve(ctx, stream.ServiceConfig{Name: "answers", Version: "1.0.0", Endpoint: "asked", Subject: "asked.*"},
				func(context.Context, string, []byte) ([]byte, *stream.ServiceFault) { return nil, nil })
			return err
		},
	} {
		err := request(t.Context())
		if !errors.Is(err, stream.ErrRefused) || !errors.Is(err, stream.ErrUnavailable) || !strings.Contains(err.Error(), `"`+subject) ||
			!strings.Contains(err.Error(), "user limited of tester") {
			t.Errorf("%s: %v", subject, err)
		}
	}
	if state, err := limited.StreamState(t.Context(), stream.Traces); err != nil || state.Created.IsZero() {
		t.Errorf("what is permitted works on: %+v, %v", state, err)
	}
}
