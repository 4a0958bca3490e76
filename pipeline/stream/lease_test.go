package stream_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// holder returns a process on a host with this name.
func holder(host string) stream.Holder {
	return stream.Holder{Stage: "drift", Host: host, PID: 4711, Version: "1.2.3", Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// acquire takes the lease for a process on a host.
func acquire(t *testing.T, client *stream.Client, host string) *stream.Lease {
	t.Helper()
	lease, err := client.Acquire(t.Context(), holder(host))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// refused checks that nobody else gets the lease now, for a reason that names its holder.
func refused(t *testing.T, client *stream.Client, why error, host string) {
	t.Helper()
	_, err := client.Acquire(t.Context(), holder("late"))
	names(t, err, why, "process 4711 on host "+host+" (version 1.2.3, since 2026-03-01T12:00:00Z)")
}

// names checks for a permanent error of a kind that contains some text.
func names(t *testing.T, err, kind error, text string) {
	t.Helper()
	var permanent interface{ Permanent() bool }
	if !errors.Is(err, kind) || !errors.As(err, &permanent) || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want %q with %q", err, kind, text)
	}
}

// If several processes start at the same time, one gets the lease. The others get errors that
// name it, until it gives the lease back. Leases of different stages are independent.
func TestLeaseHasOneHolder(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	var got atomic.Pointer[stream.Lease]
	var rivals sync.WaitGroup
	for range 8 {
		rival := dial(t, broker, stream.Config{})
		rivals.Go(func() {
			lease, err := rival.Acquire(t.Context(), holder("one"))
			switch {
			case err != nil:
				names(t, err, stream.ErrLeaseHeld, "host one")
			case got.Swap(lease) != nil:
				t.Error("two processes have the lease")
			}
		})
	}
	rivals.Wait()
	if got.Load() == nil {
		t.Fatal("no process has the lease")
	}
	refused(t, client, stream.ErrLeaseHeld, "one")
	if err := got.Load().Confirm(t.Context()); err != nil {
		t.Error(err)
	}
	other := holder("one")
	other.Stage = "exporter"
	if _, err := client.Acquire(t.Context(), other); err != nil {
		t.Errorf("the lease of another stage: %v", err)
	}
	got.Load().Release(t.Context())
	acquire(t, client, "two")
}

// A process that is gone delays nobody. If it was only cut off, it learns that the lease was
// taken, and by which process.
func TestLeaseOfACutOffHolderIsTakenOver(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	wire := brokertest.NewWire(t, broker.URL())
	cutOff := brokertest.Connect(t, stream.Config{URL: wire.URL()})
	before := acquire(t, cutOff, "one")
	wire.Cut()
	now := acquire(t, client, "two")
	wire.Mend()
	lost(t, before, "process 4711 on host two (version 1.2.3,")
	before.Release(t.Context())
	if err := now.Confirm(t.Context()); err != nil {
		t.Errorf("after the release of a lease that was lost: %v", err)
	}
}

// A stopped process keeps the lease as long as the broker considers it connected. The others
// learn that it is silent.
func TestSilentHolderKeepsTheLease(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	wire := brokertest.NewWire(t, broker.URL())
	stopped := brokertest.Connect(t, stream.Config{URL: wire.URL()})
	lease := acquire(t, stopped, "one")
	wire.Freeze()
	refused(t, client, stream.ErrLeaseSilent, "one")
	wire.Thaw()
	refused(t, client, stream.ErrLeaseHeld, "one")
	if err := lease.Confirm(t.Context()); err != nil {
		t.Error(err)
	}
}

// A restart of the broker ends no lease.
func TestLeaseOutlivesTheBroker(t *testing.T) {
	broker := brokertest.New(t)
	client := connect(t, broker)
	other := dial(t, broker, stream.Config{})
	lease := acquire(t, client, "one")
	broker.Restart()
	confirmed(t, lease)
	pipelinetest.Await(t, "the broker", func() bool { return other.Ping(t.Context()) == nil })
	refused(t, other, stream.ErrLeaseHeld, "one")
}

// A broker that lost its data has lost the lease. The holder learns that, even if the record of
// another process has the same revision.
func TestLeaseIsLostWithTheBrokersData(t *testing.T) {
	broker := brokertest.New(t)
	lease := acquire(t, connect(t, broker), "one")
	broker.Wipe()
	other := connect(t, broker)
	lost(t, lease, "was removed")
	second := acquire(t, other, "two")
	lost(t, lease, "process 4711 on host two (version 1.2.3,")
	lease.Release(t.Context()) // the bucket's record has the same revision
	confirmed(t, second)
}

// answer confirms a lease, and repeats that while the broker is briefly unavailable.
func answer(t *testing.T, lease *stream.Lease) (err error) {
	t.Helper()
	pipelinetest.Await(t, "the lease to be confirmed or lost", func() bool {
		err = lease.Confirm(t.Context())
		return !errors.Is(err, stream.ErrUnavailable)
	})
	return err
}

func confirmed(t *testing.T, lease *stream.Lease) {
	t.Helper()
	if err := answer(t, lease); err != nil {
		t.Error(err)
	}
}

// lost checks that the lease is lost, for a reason.
func lost(t *testing.T, lease *stream.Lease, text string) {
	t.Helper()
	names(t, answer(t, lease), stream.ErrLeaseLost, text)
}

// After an election the new leader of the bucket knows the holder too.
func TestLeaseOutlivesALeader(t *testing.T) {
	cluster := brokertest.NewCluster(t, 3)
	connected := func() *stream.Client {
		client, err := stream.Connect(t.Context(), stream.Config{URL: cluster.URL(), MonitorURL: cluster.MonitorURL(0), Replicas: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	client, other := connected(), connected()
	pipelinetest.EnsureTopology(t, client)
	lease := acquire(t, client, "one")
	leader := -1
	pipelinetest.Await(t, "a leader", func() bool {
		leader = cluster.Leader("KV_" + stream.Leases)
		return leader >= 0
	})
	cluster.Stop(leader)
	confirmed(t, lease)
	pipelinetest.Await(t, "an answer", func() bool {
		_, err := other.Acquire(t.Context(), holder("late"))
		if !errors.Is(err, stream.ErrUnavailable) {
			names(t, err, stream.ErrLeaseHeld, "host one")
		}
		return !errors.Is(err, stream.ErrUnavailable)
	})
}

// An operator may remove the lease of a holder that is gone permanently. A holder that is not gone
// learns of it.
func TestRemovedLeaseIsLost(t *testing.T) {
	client := connect(t, brokertest.New(t))
	lease := acquire(t, client, "one")
	brokertest.RemoveKey(t, brokertest.Bucket(t, client, stream.Leases), "drift")
	lost(t, lease, "was removed")
	acquire(t, client, "two")
}
