package machine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline/plumbline/machine"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/webhook"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// start runs a machine. The test must stop it.
func start(t *testing.T, cfg machine.Config) *machine.Machine {
	t.Helper()
	cfg.Listen, cfg.Log = "127.0.0.1:0", slog.New(slog.NewTextHandler(t.Output(), nil))
	m, err := machine.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func stop(t *testing.T, m *machine.Machine) {
	t.Helper()
	if err := m.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// What one machine stored is there for the next machine on the same directory; a second
// machine at the same time is refused.
func TestMachineKeepsItsData(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer func() {
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, before)
	}()
	dir := t.TempDir()
	m := start(t, machine.Config{DataDir: dir})
	first := m.Endpoints()
	publish(t, first)
	pipelinetest.Await(t, "the trace stored", func() bool { return traces(t, first) == 1 })
	for path, want := range map[string]string{"/v1/traces?agent_id=a": `"trace_id":"tr-1"`, "/v1/traces?violation=any": `{"traces":[`, "/v1/bundles": `{"bundles":[]}`} {
		if code, text := get(t, first.IngestURL+path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", path, code, text, want)
		}
	}

	for _, gauge := range []string{
		`plumbline_disk_free_bytes{directory="broker",stage="up"} [1-9]`, `plumbline_disk_size_bytes{directory="engine",stage="up"} [1-9]`,
		`plumbline_disk_free_bytes{directory="bundles",stage="exporter"} [1-9]`, `plumbline_dead_letters_open{stage="verifier"} 0`,
		`plumbline_key_expiry_seconds{purpose="session",stage="exporter"} \+Inf`, `plumbline_key_expiry_seconds{purpose="handshake",stage="ingest"} \+Inf`,
		`plumbline_exporter_held_sessions{stage="exporter"} 0`, `plumbline_verifier_verdicts_total{recommended_action="\w+",stage="verifier"} 1`,
	} {
		pipelinetest.Await(t, gauge, func() bool {
			_, text := get(t, first.IngestURL+"/metrics")
			return regexp.MustCompile("(?m)^" + gauge).MatchString(text)
		})
	}

	demandDocumented(t, m)

	_, err := machine.Start(t.Context(), machine.Config{DataDir: dir, Listen: "127.0.0.1:0"})
	if !errors.Is(err, durable.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second machine on the directory: error %v", err)
	}
	if found, err := machine.Find(t.Context(), dir); err != nil || *found != first {
		t.Errorf("found %+v, %v, want %+v", found, err, first)
	}
	info, err := os.Stat(filepath.Join(dir, "endpoints.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("endpoints.json: %v, error %v", info, err)
	}
	stop(t, m)
	if _, err := machine.Find(t.Context(), dir); !errors.Is(err, machine.ErrNotRunning) {
		t.Errorf("a stopped machine is found: error %v", err)
	}

	m = start(t, machine.Config{DataDir: dir})
	defer stop(t, m)
	if got := traces(t, m.Endpoints()); got != 1 {
		t.Errorf("%d traces after the restart, want 1", got)
	}
	if m.Endpoints().PublicKey != first.PublicKey {
		t.Error("the restart made another key")
	}
}

func get(t *testing.T, url string) (code int, text string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func publish(t *testing.T, at machine.Endpoints) {
	t.Helper()
	client, err := stream.Connect(t.Context(), stream.Config{URL: at.NATSURL, MonitorURL: at.NATSMonitorURL, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	registry, err := cards.Open(t.Context(), client, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := registry.Put(t.Context(), pipelinetest.Card("ac", "a")); err != nil {
		t.Fatal(err)
	}
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	trace := pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "search")
	if _, err := committer.Publish(t.Context(), []stream.Record{trace}); err != nil {
		t.Fatal(err)
	}
}

func traces(t *testing.T, at machine.Endpoints) uint64 {
	t.Helper()
	return counts(t, at).Traces
}

// counts returns the counts that the reader's rights show.
func counts(t *testing.T, at machine.Endpoints) store.Counts {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{DSN: at.ClickHouseDSN, Stage: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	counts, err := s.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func TestWrongConfigIsRefusedWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var copies exporter.Copies
	copies.ObjectStore, copies.S3.Endpoint, copies.S3.Bucket, copies.S3.CredentialsFile, copies.S3.CAFile = "a b", "https://h", "bucket", file+".none", file
	_, err := machine.Start(t.Context(), machine.Config{DataDir: filepath.Join(file, "data"), Listen: "nowhere", TokenFile: file + ".none", Stages: []string{machine.Ingest, "judge"}, DrainBudget: -1,
		MemoryBytes: 1, SealIdle: -1, DriftResidentBytes: 1, SealSchedule: []string{"daily"}, Redact: []string{"urls"}, NATS: config.NATS{URL: "nats", CAFile: file + ".none"}, ClickHouse: config.ClickHouse{DSN: "http://h"}, OTLP: &config.OTLP{Endpoint: "grpc://h", CAFile: file},
		Copies: copies, Anchors: exporter.Anchors{TSAURL: "https://h", TSACertFile: file}, Thresholds: new(machine.Thresholds)})
	if !errors.Is(err, config.ErrUsage) {
		t.Fatalf("error is %v, want a usage error", err)
	}
	for _, key := range []string{"listen:", "stages:", "drain_budget:", "memory:", "seal_idle:", "seal_schedule[0]:", "redact:", "nats_url:", "clickhouse_dsn:",
		"token_file:", "data:", "nats_ca_file:", "object_store:", "s3_credentials_file:", "s3_ca_file:", "tsa_cert_file:", "otlp_endpoint:", "otlp_ca_file:", "drift_sustained:", "drift_resident_bytes:"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("error %q does not name %s", err, key)
		}
	}
}

// A machine on external servers starts none and reports their addresses.
func TestMachineOnOwnServers(t *testing.T) {
	rig := pipelinetest.New(t)
	m := start(t, machine.Config{
		DataDir: t.TempDir(), Stages: []string{machine.Verifier},
		NATS:       config.NATS{URL: rig.Broker.URL(), MonitorURL: rig.Broker.MonitorURL()},
		ClickHouse: rig.ClickHouse(),
	})
	defer stop(t, m)
	if m.Broker() != nil || m.Engine() != nil {
		t.Error("an embedded server was started although external ones are configured")
	}
	at := m.Endpoints()
	if at.NATSURL != rig.Broker.URL() || at.ClickHouseDSN != rig.DSN || at.ClickHouseHTTP != "" {
		t.Errorf("endpoints are %+v", at)
	}
	publish(t, at)
	pipelinetest.Await(t, "the trace stored", func() bool { return traces(t, at) == 1 })
}

// A start that fails leaves nothing behind: the directory can be used again.
func TestFailedStartLeavesNothing(t *testing.T) {
	rig := pipelinetest.New(t)
	cfg := machine.Config{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0", Stages: []string{machine.Ingest},
		TokenFile:  filepath.Join(t.TempDir(), "missing"),
		NATS:       config.NATS{URL: rig.Broker.URL(), MonitorURL: rig.Broker.MonitorURL()},
		ClickHouse: rig.ClickHouse(),
	}
	if _, err := machine.Start(t.Context(), cfg); !errors.Is(err, config.ErrUsage) {
		t.Fatalf("start without its token file: error %v", err)
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, "endpoints.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("endpoints.json of a start that failed: error %v", err)
	}
	cfg.TokenFile = ""
	stop(t, start(t, cfg))
}

// A stage that ends by itself ends the machine, with the stage's error.
func TestFailedStageEndsTheMachine(t *testing.T) {
	rig := pipelinetest.New(t)
	dir := t.TempDir()
	m := start(t, machine.Config{
		DataDir: dir, Stages: []string{},
		NATS:       config.NATS{URL: rig.Broker.URL(), MonitorURL: rig.Broker.MonitorURL()},
		ClickHouse: rig.ClickHouse(),
	})
	defer stop(t, m)
	if err := os.WriteFile(filepath.Join(dir, "keys", "session.key"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.StartStage(machine.Exporter); err != nil {
		t.Fatal(err)
	}
	err := m.Wait(t.Context())
	if err == nil || !strings.Contains(err.Error(), "stage exporter ended: ") || !strings.Contains(err.Error(), "session.key") {
		t.Errorf("the machine ended with %v", err)
	}
	if err := m.StartStage(machine.Exporter); err == nil {
		t.Error("a stage was started twice")
	}
}

// An endpoint of webhooks that does not answer takes no stage's time to drain.
func TestHangingEndpointTakesNoTime(t *testing.T) {
	rig := pipelinetest.New(t)
	asked := make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client has gone
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	defer receiver.Close()
	dir := t.TempDir()
	list, secret := filepath.Join(dir, "webhooks.yaml"), filepath.Join(dir, "secret")
	for path, text := range map[string]string{secret: webhook.NewSecret().Text(), list: fmt.Sprintf("endpoints: [{name: hanging, url: %q, secret_file: %q}]", receiver.URL, secret)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := start(t, machine.Config{
		DataDir: t.TempDir(), WebhooksFile: list, DrainBudget: 3 * time.Second,
		NATS:       config.NATS{URL: rig.Broker.URL(), MonitorURL: rig.Broker.MonitorURL()},
		ClickHouse: rig.ClickHouse(),
	})
	if err := rig.Client.PublishAlerts(t.Context(), []wire.Alert{{Kind: subject.AlertDrift, Agent: "a", ID: "alert", Data: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	<-asked
	err := m.Stop(context.WithoutCancel(t.Context()))
	for _, stage := range machine.Stages() {
		if err != nil && strings.Contains(err.Error(), "stage "+stage) {
			t.Errorf("stop: %v", err)
			break
		}
	}
}

// Messages cannot be enforced without tokens: the start is refused before a server
// runs.
func TestEnforceWithoutTokensIsRefused(t *testing.T) {
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(policies, []byte("agents: {shop: {mode: enforce}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := machine.Start(t.Context(), machine.Config{DataDir: dir, Listen: "127.0.0.1:0", MessagePoliciesFile: policies})
	if !errors.Is(err, config.ErrUsage) || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("start: error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "broker")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the broker was started: error %v", err)
	}
}
