package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	held, err := service.Hold(t.Context(), common, pipelinetest.Env(t, stage), false)
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
	if _, err := service.Hold(t.Context(), common, pipelinetest.Env(t, "drift"), false); !errors.Is(err, stream.ErrLeaseHeld) {
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

// A stage that stands by takes the lease when its holder ends, or is killed. It ends when it is asked
// to, without the lease.
func TestStandby(t *testing.T) {
	broker := brokertest.New(t)
	common := brokerOf(broker)
	wire := brokertest.NewWire(t, broker.URL())
	behind := *common
	behind.NATS.URL = wire.URL()
	first := hold(t, &behind, "drift")
	ctx, cancel := context.WithCancel(t.Context())
	env := pipelinetest.Env(t, "drift")
	refused := make(chan error, 1)
	go func() {
		_, err := service.Hold(ctx, common, env, true)
		refused <- err
	}()
	pipelinetest.Await(t, "a stage that stands by", func() bool { return standsBy(env) })
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("a stage that was asked to end while it stood by: %v", err)
	}
	env = pipelinetest.Env(t, "drift")
	taken := make(chan *service.Held, 1)
	go func() {
		held, err := service.Hold(t.Context(), common, env, true)
		if err != nil {
			t.Error(err)
		}
		taken <- held
	}()
	pipelinetest.Await(t, "a stage that stands by", func() bool { return standsBy(env) })
	if err := first.Lease.Confirm(t.Context()); err != nil {
		t.Errorf("the lease while another stage stands by: %v", err)
	}
	wire.Cut() // as if it were killed
	if held := <-taken; held != nil {
		if standsBy(env) {
			t.Error("the stage has the lease and is not ready because it stands by")
		}
		if err := held.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wire.Mend()
}

func standsBy(env *service.Env) bool {
	return strings.Contains(fmt.Sprint(env.Health.Reported()), "stands by")
}
