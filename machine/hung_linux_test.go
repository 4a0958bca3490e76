package machine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// Readiness reports a server that hangs, as opposed to one that is gone, in its next answer,
// and also reports its recovery. The waiting messages are shown as the backlog of
// each consumer; if the broker does not report the backlog, there is no value.
func TestHungServersAreNamed(t *testing.T) {
	m := start(t, machine.Config{DataDir: t.TempDir()})
	defer stop(t, m)
	at := m.Endpoints()
	awaitDown(t, at)
	idle := []string{"verifier", "deadletters", "coherence", "messages", "findings", "cards", "drift", "exporter", "ledger", "agent_ledgers"}
	awaitBacklogs(t, m.Registry(), "of idle consumers", func(found map[string]float64) bool { return len(found) == len(idle) && sum(found) == 0 })

	resume := suspend(t, m.Engine().Pid())
	demandDown(t, at, "database")
	awaitDown(t, at, "database")
	publish(t, at)
	publishForSinks(t, at)
	awaitBacklogs(t, m.Registry(), "of those who store", func(found map[string]float64) bool {
		for _, consumer := range []string{"verifier", "deadletters", "cards", "drift", "ledger", "agent_ledgers"} {
			if found[consumer] == 0 {
				return false
			}
		}
		return found["exporter"] == 0 && found["messages"] == 0
	})
	demandDown(t, at, "database")
	resume()
	awaitBacklogs(t, m.Registry(), "of idle consumers again", func(found map[string]float64) bool { return len(found) == len(idle) && sum(found) == 0 })
	awaitDown(t, at)

	resume = suspend(t, m.Broker().Pid())
	demandDown(t, at, "broker")
	awaitDown(t, at, "broker")
	awaitBacklogs(t, m.Registry(), "unknown", func(found map[string]float64) bool { return len(found) == 1 && found["cards"] == 0 })
	resume()
	awaitDown(t, at)

	free := takePort(t, m, at)
	awaitDown(t, at, "broker")
	pipelinetest.Await(t, "the port named", func() bool { return strings.Contains(readiness(t, at).Down["broker"], "is taken") })
	free()
	awaitDown(t, at)
}

// takePort kills the broker and listens on its port in its place.
func takePort(t *testing.T, m *machine.Machine, at machine.Endpoints) (free func()) {
	t.Helper()
	broker, err := url.Parse(at.NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if pid := m.Broker().Pid(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		if stranger, err := net.Listen("tcp", broker.Host); err == nil {
			free = sync.OnceFunc(func() { _ = stranger.Close() })
			t.Cleanup(free)
			return free
		}
	}
}

// suspend stops a process, which then behaves like a hung one: its sockets stay open.
func suspend(t *testing.T, pid int) (resume func()) {
	t.Helper()
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	resume = func() { signal(syscall.SIGCONT) }
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	pipelinetest.Await(t, "the process suspended", func() bool {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			stat, err := os.ReadFile(task)
			if err != nil || !strings.Contains(string(stat), ") T ") {
				return false
			}
		}
		return len(tasks) > 0
	})
	return resume
}

// demandDown requires that the next answer names the peer.
func demandDown(t *testing.T, at machine.Endpoints, peer string) {
	t.Helper()
	if state := readiness(t, at); state.Down[peer] == "" {
		t.Errorf("%s hangs: readiness is %+v", peer, state)
	}
}

// awaitDown waits until these servers are down, and no other server; without arguments,
// until everything is up. Readiness may also name what a stage cannot do without a server.
func awaitDown(t *testing.T, at machine.Endpoints, servers ...string) {
	t.Helper()
	pipelinetest.Await(t, fmt.Sprintf("%q down, no other server", servers), func() bool {
		down := readiness(t, at).Down
		if len(servers) == 0 {
			return len(down) == 0
		}
		maps.DeleteFunc(down, func(name, _ string) bool { return name != "broker" && name != "database" })
		return slices.Equal(slices.Sorted(maps.Keys(down)), servers)
	})
}

// readiness requests readiness once. The answer comes even if a server hangs; obs.TestHungPeerIsNamedInTime demands
// on a simulated clock that it comes in time.
func readiness(t *testing.T, at machine.Endpoints) (state obs.Readiness) {
	t.Helper()
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(at.IngestURL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if state.Ready != (answer.StatusCode == http.StatusOK) {
		t.Errorf("%s: %s", answer.Status, text)
	}
	return state
}

// publishForSinks publishes messages that are only stored: a dead letter, an event of the
// operator's ledger, an entry of an agent's ledger.
func publishForSinks(t *testing.T, at machine.Endpoints) {
	t.Helper()
	client, err := stream.Connect(t.Context(), stream.Config{URL: at.NATSURL, MonitorURL: at.NATSMonitorURL, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.DeadLetter(t.Context(), wire.DeadLetter{Stage: "verifier", Reason: "test", Agent: "a", Sequence: 1000, Data: []byte("{}")}); err != nil {
		t.Error(err)
	}
	if err := client.AppendLedger(t.Context(), ledger.Event{Type: "META", ID: "1", Data: []byte("{}")}); err != nil {
		t.Error(err)
	}
	conn, err := nats.Connect(at.NATSURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Request(subject.Ledger("a"), []byte("no entry"), time.Minute); err != nil {
		t.Error(err)
	}
}

// awaitBacklogs waits until the gauges of the backlogs have the expected values.
func awaitBacklogs(t *testing.T, metrics prometheus.Gatherer, what string, holds func(map[string]float64) bool) {
	t.Helper()
	var last map[string]float64
	pipelinetest.Await(t, "backlogs "+what, func() bool {
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]float64{}
		for _, family := range families {
			if family.GetName() != "plumbline_backlog_messages" {
				continue
			}
			for _, metric := range family.GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetName() == "consumer" {
						found[label.GetValue()] = metric.GetGauge().GetValue()
					}
				}
			}
		}
		if !maps.Equal(found, last) {
			t.Logf("backlogs %v", found)
			last = found
		}
		return holds(found)
	})
}

func sum(values map[string]float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}
