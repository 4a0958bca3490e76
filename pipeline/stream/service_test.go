package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

var echo = stream.ServiceConfig{
	Name: "echo", Version: "1.0.0", Description: "Says it again.", Metadata: map[string]string{"key": "value"},
	Endpoint: "say", Subject: "echo.*",
}

// plain returns a connection of a client that does not use Plumbline.
func plain(t *testing.T, broker *brokertest.Server) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func ask(t *testing.T, conn *nats.Conn, subject, text string) *nats.Msg {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer, err := conn.RequestWithContext(ctx, subject, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestServiceAnswersAsAMicroService(t *testing.T) {
	broker := brokertest.New(t)
	client, asking := connect(t, broker), plain(t, broker)
	service, err := client.Serve(t.Context(), echo, func(_ context.Context, subject string, data []byte) ([]byte, *stream.ServiceFault) {
		if string(data) == "bad" {
			return nil, &stream.ServiceFault{Code: 409, Description: "not that", Data: []byte(`{"error":"bad"}`)}
		}
		return []byte(subject + " " + string(data)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(ask(t, asking, "echo.a", "hello").Data); got != "echo.a hello" {
		t.Errorf("answered %q", got)
	}
	refused := ask(t, asking, "echo.a", "bad")
	if refused.Header.Get(micro.ErrorCodeHeader) != "409" || refused.Header.Get(micro.ErrorHeader) != "not that" || string(refused.Data) != `{"error":"bad"}` {
		t.Errorf("refused with %v %s", refused.Header, refused.Data)
	}
	var info micro.Info
	if err := json.Unmarshal(ask(t, asking, "$SRV.INFO.echo", "").Data, &info); err != nil {
		t.Fatal(err)
	}
	if info.Metadata["key"] != "value" || len(info.Endpoints) != 1 || info.Endpoints[0].Subject != "echo.*" {
		t.Errorf("info is %+v", info)
	}
	if got := string(ask(t, asking, "$SRV.PING.echo", "").Data); !strings.Contains(got, `"echo"`) {
		t.Errorf("ping is answered %s", got)
	}
	pipelinetest.Await(t, "2 requests, 1 error", func() bool { // a request is counted after its answer
		var stats micro.Stats
		if err := json.Unmarshal(ask(t, asking, "$SRV.STATS.echo", "").Data, &stats); err != nil {
			t.Fatal(err)
		}
		return stats.Endpoints[0].NumRequests == 2 && stats.Endpoints[0].NumErrors == 1
	})
	if err := service.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// Drain answers the requests that have arrived, and accepts none after that.
func TestServiceDrains(t *testing.T) {
	broker := brokertest.New(t)
	client, asking := connect(t, broker), plain(t, broker)
	begun, goOn := make(chan struct{}, 3), make(chan struct{})
	service, err := client.Serve(t.Context(), echo, func(_ context.Context, _ string, data []byte) ([]byte, *stream.ServiceFault) {
		begun <- struct{}{}
		<-goOn
		return data, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	inbox := asking.NewRespInbox()
	answers, err := asking.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := asking.PublishRequest("echo.a", inbox, []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	if err := asking.Flush(); err != nil {
		t.Fatal(err)
	}
	<-begun
	drained := make(chan error, 1)
	go func() { drained <- service.Drain(t.Context()) }()
	select {
	case err := <-drained:
		t.Fatalf("drained with requests in hand: %v", err)
	default:
	}
	close(goOn)
	if err := <-drained; err != nil {
		t.Error(err)
	}
	for i := range 3 {
		if _, err := answers.NextMsg(20 * time.Second); err != nil {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	if _, err := asking.Request("echo.a", nil, 20*time.Second); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after the drain: %v, want no responders", err)
	}
}

// The broker is unavailable when one service starts and another one should end. The first one
// receives requests when the broker is back. The other one continues until Drain is called again.
func TestServiceWithoutABroker(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	away := func(do func(ctx context.Context)) {
		broker.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		do(ctx)
		broker.Start()
		pipelinetest.Await(t, "the broker", func() bool { return client.Ping(t.Context()) == nil })
	}
	answered := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		asking := plain(t, broker)
		defer asking.Close()
		_, err := asking.RequestWithContext(ctx, "echo.a", nil)
		return err
	}
	var service *stream.Service
	away(func(ctx context.Context) {
		var err error
		service, err = client.Serve(ctx, echo, func(_ context.Context, _ string, data []byte) ([]byte, *stream.ServiceFault) { return data, nil })
		if err != nil {
			t.Fatal(err)
		}
	})
	if err := answered(); err != nil {
		t.Errorf("begun while the broker was away: %v", err)
	}
	away(func(ctx context.Context) {
		if err := service.Drain(ctx); !errors.Is(err, stream.ErrUnavailable) {
			t.Errorf("ended while the broker is away: %v", err)
		}
	})
	if err := answered(); err != nil {
		t.Errorf("after it could not end: %v", err)
	}
	if err := service.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := answered(); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after it ended: %v", err)
	}
}
