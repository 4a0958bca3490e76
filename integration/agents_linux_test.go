package integration_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// minutes is how long a step may take with many agents.
const minutes = time.Hour

var manyAgents = flag.Int("agents", 0, "agents of TestMemoryOfManyAgents and TestDriftOfManyAgents, each with a card of its own; 0 leaves them out")

// TestMemoryOfManyAgents measures the resident memory of services that know the cards of many
// agents: after their start, and after a trace of each agent.
func TestMemoryOfManyAgents(t *testing.T) {
	if *manyAgents == 0 {
		t.Skip("a measurement of some minutes: make agents, or -agents N")
	}
	s := newServers(t, place{})
	if err := database.Migrate(t.Context(), s.engine.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	if err := s.client.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := fleet.New(fleet.Config{Seed: 1, Agents: *manyAgents, Traces: *manyAgents, Start: time.Now()})
	s.registerAll(f.Cards())
	begin := func(name string) *service {
		began := time.Now()
		service := s.service(name)
		pipelinetest.AwaitWithin(t, minutes, name+" to be ready", service.ready)
		t.Logf("%s ready after %s", name, time.Since(began).Round(time.Second/10))
		return service
	}
	s.ingest = begin("ingest")
	s.verifier = begin("verifier")
	began := time.Now()
	pipelinetest.AwaitWithin(t, minutes, "a row for every card", func() bool {
		return strings.Contains(metricsOf(t, s.verifier), `plumbline_backlog_messages{consumer="cards",stage="verifier"} 0`)
	})
	t.Logf("every card a row %s later", time.Since(began).Round(time.Second/10))
	s.resident("every card known", s.ingest, s.verifier)
	var records []stream.Record
	for line := range f.Lines() {
		records = append(records, pipelinetest.Record(line.Agent, line.Raw))
	}
	began = time.Now()
	committer := s.client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	outcomes, err := committer.Publish(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for i := range outcomes {
		last = max(last, outcomes[i].Sequence)
	}
	published := time.Since(began)
	pipelinetest.AwaitWithin(t, minutes, "every trace judged", func() bool {
		progress, err := s.client.ConsumerProgress(t.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.AckFloor >= last
	})
	t.Logf("%d traces published in %s, judged after %s", len(records), published.Round(time.Second/10), time.Since(began).Round(time.Second/10))
	s.resident("a trace of each agent judged", s.ingest, s.verifier)
}

// registerAll writes cards into the bucket as a registry would, many concurrently.
func (s *site) registerAll(cards []fleet.Card) {
	s.t.Helper()
	bucket, err := s.client.Bucket(s.t.Context(), stream.Cards)
	if err != nil {
		s.t.Fatal(err)
	}
	size := 0
	writes := make([]stream.Write, len(cards))
	for i, card := range cards {
		writes[i] = stream.Write{Key: subject.Token(card.CardID), Value: card.Raw}
		size += len(card.Raw)
	}
	const together = 1000
	for from := 0; from < len(writes); from += together {
		if _, err := bucket.WriteAll(s.t.Context(), writes[from:min(from+together, len(writes))]); err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Logf("%d cards registered, %d bytes each", len(cards), size/len(cards))
}

// resident logs the resident memory of each service.
func (s *site) resident(when string, services ...*service) {
	s.t.Helper()
	for _, service := range services {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", service.cmd.Process.Pid))
		if err != nil {
			s.t.Fatal(err)
		}
		line := when + ": " + service.name
		for each := bufio.NewScanner(bytes.NewReader(status)); each.Scan(); {
			if name, value, _ := strings.Cut(each.Text(), ":"); name == "VmRSS" || name == "VmHWM" {
				line += " " + name + " " + strings.TrimSpace(value)
			}
		}
		for each := range strings.Lines(metricsOf(s.t, service)) {
			if strings.HasPrefix(each, "plumbline_card") || strings.HasPrefix(each, "plumbline_drift_series") || strings.HasPrefix(each, "go_memstats_heap_alloc_bytes") {
				line += ", " + strings.TrimSpace(each)
			}
		}
		s.t.Log(line)
	}
}

// metricsOf returns the metrics of a service.
func metricsOf(t testing.TB, s *service) string {
	t.Helper()
	answer, err := http.Get("http://" + s.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
