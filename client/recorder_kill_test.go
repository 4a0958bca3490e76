package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/child"
	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/schema"
)

const ingestChild = "ingest of a test"

func init() { child.Register(ingestChild, runIngest) }

// runIngest is an ingest in a process of its own: broker, its monitor, address and directory.
func runIngest(ctx context.Context, args []string) error {
	cfg := ingest.Default()
	cfg.Common = config.DefaultCommon("")
	cfg.NATS.URL, cfg.NATS.MonitorURL, cfg.NATS.Replicas = args[0], args[1], 1
	cfg.HandshakeKeyFile, cfg.MicroKeyFile = filepath.Join(args[3], "handshake.key"), filepath.Join(args[3], "micro.key")
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", args[2])
	if err != nil {
		return err
	}
	return ingest.ServeOn(ctx, listener, &cfg, service.NewEnv("ingest", "test", slog.New(slog.DiscardHandler), obs.NewRegistry("test"), new(obs.Health)), nil)
}

// startIngest starts an ingest that can be killed: it is started again at the same address.
func startIngest(t *testing.T, broker *brokertest.Server, over *http.Client) (server *child.Process, address string) {
	t.Helper()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server, err = child.Start(t.Context(), child.Config{
		Name: "ingest", Self: ingestChild, Args: []string{broker.URL(), broker.MonitorURL(), address, dir}, Output: filepath.Join(dir, "output"),
		Ready: func(ctx context.Context) error { return ready(ctx, over, address) }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server, address
}

// Ingest is killed three times while an agent records, and one of its recorders ends while ingest
// is away. Nothing is lost and nothing doubled.
func TestRecorderSurvivesKillsOfIngest(t *testing.T) {
	broker := brokertest.New(t)
	pipelinetest.EnsureTopology(t, broker.Connect())
	connections := &http.Transport{}
	t.Cleanup(connections.CloseIdleConnections)
	over := &http.Client{Transport: connections}
	server, address := startIngest(t, broker, over)
	spool := t.TempDir()
	start := func() *client.Recorder {
		r, err := client.NewRecorder(client.RecorderConfig{
			AgentID: "a", CardID: "c", URL: "http://" + address, Spool: spool, HTTP: over,
			OnError: func(e *client.RecordError) {
				if e.Kind != client.KindUnreachable {
					t.Error(e)
				}
			},
			OnWarning: func(string, string, string) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const sessions, each = 3, 1000
	recorder, before := start(), 0
	for n := range sessions {
		s := recorder.Session(fmt.Sprint("s-", n))
		for i := range each {
			s.Record(client.Decision{Action: "search", Parameters: map[string]any{"i": i}})
			if i != each/2 {
				continue
			}
			pipelinetest.Await(t, "a stored trace of the session", func() bool { return recorder.Stats().Accepted > before })
			if err := syscall.Kill(server.State().Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		s.End()
		if n == 1 { // the process ends while ingest is away
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_ = recorder.Close(ended) // it stops waiting at once
			recorder = start()
		}
		before = recorder.Stats().Accepted
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := recorder.Close(ctx); err != nil {
		t.Fatal(err)
	}
	stored(t, broker, sessions, each)
}

// stored checks that stream TRACES has each trace of the sessions once.
func stored(t *testing.T, broker *brokertest.Server, sessions, each int) {
	t.Helper()
	numbers := map[string]map[uint64]bool{}
	for _, message := range broker.ReadTraces(sessions * each) {
		trace, err := schema.Admit("a", message.Data)
		if err != nil {
			t.Fatal(err)
		}
		if numbers[trace.Context.SessionID] == nil {
			numbers[trace.Context.SessionID] = map[uint64]bool{}
		}
		numbers[trace.Context.SessionID][trace.Context.SequenceNumber] = true
	}
	for n := range sessions {
		if got := numbers[fmt.Sprint("s-", n)]; len(got) != each || !got[1] || !got[uint64(each)] {
			t.Errorf("session %d has %d different traces", n, len(got))
		}
	}
}

func ready(ctx context.Context, over *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := over.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", answer.StatusCode)
	}
	return nil
}
