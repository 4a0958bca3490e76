package reading

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// With a broker that has forgotten a message and a database that has its row, ingest answers duplicate.
// Rows that outlived their stream, or are of another one, make no duplicate: the line is stored again.
func TestForgottenLinesAreDuplicates(t *testing.T) {
	r := start(t, func(cfg *Config) { cfg.DuplicateLookup = time.Minute }) // however busy the machine is
	broker, cfg := brokertest.New(t), ingest.Default()
	cfg.NATS.URL, cfg.NATS.MonitorURL = broker.URL(), broker.MonitorURL()
	cfg.HandshakeKeyFile, cfg.MicroKeyFile = filepath.Join(t.TempDir(), "handshake.key"), filepath.Join(t.TempDir(), "micro.key")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	env := pipelinetest.Env(t, "ingest")
	stage := pipelinetest.Go(t, func(ctx context.Context) error { return ingest.ServeOn(ctx, listener, &cfg, env, r.reading) })
	defer stage.Stop(t)
	pipelinetest.Await(t, "the stage", func() bool { return env.Health.Reported().Ready })
	conn, err := nats.Connect(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	post := func(line *schema.Trace) string {
		_, _, text := requests.Send(t, http.DefaultClient, http.MethodPost, "http://"+listener.Addr().String()+"/v1/traces",
			strings.NewReader(string(line.Raw)), "Content-Type: application/x-ndjson")
		return text
	}
	stored := func(want uint64) {
		t.Helper()
		state, err := broker.Connect().StreamState(t.Context(), stream.Traces)
		if err != nil || state.Messages != want {
			t.Errorf("the stream has %d messages, %v, want %d", state.Messages, err, want)
		}
	}
	forgotten, outlived, gone := trace(t, "a", "t-1", "s", 0, "x"), trace(t, "a", "t-2", "s", 1, "x"), trace(t, "a", "t-3", "s", 2, "x")
	if _, err := conn.Request(subject.Trace("a"), forgotten.Raw, 10*time.Second); err != nil { // without an id
		t.Fatal(err)
	}
	r.store(r.rows, forgotten) // sequence 1: its own message
	r.next = 1                 // as in a stream that was made again:
	r.store(r.rows, outlived)  // sequence 1 is another message,
	r.next = 1000              // and
	r.store(r.rows, gone)      // sequence 1000 is none
	for line, want := range map[*schema.Trace]string{forgotten: "duplicate", outlived: "accepted", gone: "accepted"} {
		if answer := post(line); !strings.Contains(answer, `"status":"`+want+`"`) {
			t.Errorf("%s: %s, want %s", line.TraceID, answer, want)
		}
	}
	stored(3)
}
