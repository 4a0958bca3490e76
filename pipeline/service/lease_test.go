package service_test

import (
	"errors"
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
