package service_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// brokerOf returns the configuration of a service on a broker.
func brokerOf(broker *brokertest.Server) *config.Common {
	common := config.DefaultCommon("")
	common.NATS.URL, common.NATS.MonitorURL = broker.URL(), broker.MonitorURL()
	return &common
}

func hold(t *testing.T, common *config.Common, stage string) *service.Held {
	t.Helper()
	held, err := service.Hold(t.Context(), common, pipelinetest.Env(t, stage))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := held.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return held
}

// A refused stage appends no event of its start. The stage with the lease does.
func TestRefusedStageDoesNotBoot(t *testing.T) {
	common := brokerOf(brokertest.New(t))
	held := hold(t, common, "drift")
	if _, err := service.Hold(t.Context(), common, pipelinetest.Env(t, "drift")); !errors.Is(err, stream.ErrLeaseHeld) {
		t.Errorf("a second stage: %v", err)
	}
	for want := range uint64(2) {
		state, err := held.Broker.StreamState(t.Context(), stream.Ledger)
		if err != nil || state.Messages != want {
			t.Errorf("the ledger's stream has %d messages (%v), want %d", state.Messages, err, want)
		}
		if err := held.Booted(t.Context(), pipelinetest.Env(t, "drift")); err != nil {
			t.Fatal(err)
		}
	}
}

// A holder that writes nothing also ends when its lease is removed.
func TestIdleHolderLearnsThatItLostTheLease(t *testing.T) {
	held := hold(t, brokerOf(brokertest.New(t)), "exporter")
	ended := make(chan error, 1)
	go func() { ended <- held.Watch(t.Context()) }()
	brokertest.RemoveKey(t, brokertest.Bucket(t, held.Broker, stream.Leases), "exporter")
	if err := <-ended; !errors.Is(err, stream.ErrLeaseLost) {
		t.Errorf("the watch ended with %v", err)
	}
}

// A process that waits for the lease takes it when its holder is killed. It ends when it is asked to,
// without the lease.
func TestLeaseIsAwaited(t *testing.T) {
	broker := brokertest.New(t)
	common := brokerOf(broker)
	wire := brokertest.NewWire(t, broker.URL())
	behind := *common
	behind.NATS.URL = wire.URL()
	first := hold(t, &behind, "exporter")
	env := pipelinetest.Env(t, "exporter")
	client, err := service.Connect(t.Context(), common, env)
	if err != nil {
		t.Fatal(err)
	}
	waiting := &service.Held{Broker: client}
	defer func() {
		if err := waiting.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	if err := waiting.Await(ctx, env, cancel); !errors.Is(err, context.Canceled) || waiting.Lease != nil {
		t.Errorf("asked to end while it waited: %v, lease %v", err, waiting.Lease)
	}
	once := sync.OnceFunc(func() {
		if err := first.Lease.Confirm(t.Context()); err != nil {
			t.Errorf("the lease while another process waits for it: %v", err)
		}
		wire.Cut() // as if it were killed
	})
	if err := waiting.Await(t.Context(), env, once); err != nil || waiting.Lease == nil {
		t.Fatalf("waited for the lease: %v", err)
	}
	if err := errors.Join(waiting.Lease.Confirm(t.Context()), waiting.Await(t.Context(), env, nil)); err != nil {
		t.Error(err)
	}
	wire.Mend()
}
