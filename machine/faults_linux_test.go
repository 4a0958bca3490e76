package machine_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/durable/durabletest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// shownWithin is how soon readiness reports a fault here. The documented limit is ten seconds, which
// drift.TestStuckStageShowsInTime, service.TestFullBrokerIsReportedWithinTenSeconds and
// obs.TestHungPeerIsNamedInTime demand on a simulated clock: a busy machine answers later.
const shownWithin = time.Minute

// Readiness reports each fault by its name, in time, and no longer than it lasts:
// a drift stage that makes no progress, a full disk below the bundles, a full disk below the
// broker, an engine that is gone. Before and between the faults it reports nothing, also under
// load and while the last traces are held for late ones.
func TestFaultsAreNamed(t *testing.T) {
	dir := t.TempDir()
	bundles, broker := durabletest.New(t, filepath.Join(dir, "bundles"), 16), durabletest.New(t, filepath.Join(dir, "broker"), 64)
	m := start(t, machine.Config{DataDir: dir})
	defer stop(t, m)
	at := m.Endpoints()
	demandReadyUnderLoad(t, m)

	pause, resume := driftPause(t, at)
	demandNamed(t, at, "drift", func() { pause(); publishNow(t, at, 1_000_000, 1) })
	resume()

	demandNamed(t, at, "bundle directory", bundles.Fill)
	bundles.Empty()
	awaitDown(t, at)

	demandNamed(t, at, "broker", broker.Fill)
	broker.Empty()
	awaitDown(t, at)

	demandNamed(t, at, "database", func() {
		if err := syscall.Kill(m.Engine().Pid(), syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	awaitDown(t, at)
}

// demandNamed requires that a fault is reported in time.
func demandNamed(t *testing.T, at machine.Endpoints, name string, fault func()) {
	t.Helper()
	fault()
	began, reason := time.Now(), ""
	pipelinetest.Await(t, name+" down", func() bool {
		reason = readiness(t, at).Down[name]
		return reason != ""
	})
	took := time.Since(began)
	t.Logf("%s after %s: %s", name, took, reason)
	if took > shownWithin {
		t.Errorf("%s is named after %s", name, took)
	}
}

// demandReadyUnderLoad publishes for a short time, and requires that readiness reports no fault
// until everything is stored, measured and acknowledged.
func demandReadyUnderLoad(t *testing.T, m *machine.Machine) {
	t.Helper()
	at := m.Endpoints()
	for round := range 10 {
		publishNow(t, at, 100*round, 100)
		if state := readiness(t, at); !state.Ready {
			t.Errorf("round %d: %+v", round, state)
		}
	}
	awaitBacklogs(t, m.Registry(), "of idle consumers", func(found map[string]float64) bool {
		if state := readiness(t, at); !state.Ready {
			t.Errorf("a healthy machine: %+v", state)
		}
		return found["drift"] == 0 && sum(found) == 0
	})
}

// publishNow publishes traces of several agents. Their numbers begin with first.
func publishNow(t *testing.T, at machine.Endpoints, first, traces int) {
	t.Helper()
	var records []stream.Record
	for i := first; i < first+traces; i++ {
		agent := fmt.Sprint("agent-", i%23)
		records = append(records, pipelinetest.Trace(fmt.Sprint("tr-", i), agent, "ac-"+agent, "s", "2026-02-01T00:00:00Z", "search"))
	}
	publishRecords(t, at, records)
}

// driftPause makes the broker deliver nothing to drift.
func driftPause(t *testing.T, at machine.Endpoints) (pause, resume func()) {
	t.Helper()
	conn, err := nats.Connect(at.NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	traces, err := js.Stream(t.Context(), stream.Traces)
	if err != nil {
		t.Fatal(err)
	}
	var readers []string
	consumers := traces.ListConsumers(t.Context())
	for info := range consumers.Info() {
		if info.Config.AckPolicy == jetstream.AckNonePolicy {
			readers = append(readers, info.Name)
		}
	}
	if err := consumers.Err(); err != nil || len(readers) == 0 {
		t.Fatalf("%d readers of the traces, error %v", len(readers), err)
	}
	each := func(change func(consumer string) (*jetstream.ConsumerPauseResponse, error)) {
		for _, reader := range readers {
			if _, err := change(reader); err != nil {
				t.Fatal(err)
			}
		}
	}
	return func() {
			each(func(c string) (*jetstream.ConsumerPauseResponse, error) {
				return js.PauseConsumer(t.Context(), stream.Traces, c, time.Now().Add(time.Hour))
			})
		}, func() {
			each(func(c string) (*jetstream.ConsumerPauseResponse, error) {
				return js.ResumeConsumer(t.Context(), stream.Traces, c)
			})
		}
}
