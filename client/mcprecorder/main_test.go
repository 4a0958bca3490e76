package mcprecorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/schema"
)

// serverDir is the variable that makes this binary an MCP server over stdio: the directory of the
// files in which it records what it reads and writes, and of the events that it reports.
const serverDir = "PLUMBLINE_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		os.Exit(serveStdio(dir))
	}
	pipelinetest.Main(m)
}

// tools returns an MCP server. started is called when the tool slow begins.
func tools(started func()) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	type query struct {
		Q string `json:"q"`
	}
	text := func(text string) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "search", Description: "looks for goods"}, func(_ context.Context, _ *mcp.CallToolRequest, in query) (*mcp.CallToolResult, any, error) {
		return text("found " + in.Q)
	})
	mcp.AddTool(server, &mcp.Tool{Name: "fail", Description: "fails"}, func(context.Context, *mcp.CallToolRequest, query) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("no stock")
	})
	mcp.AddTool(server, &mcp.Tool{Name: "huge", Description: "returns much"}, func(context.Context, *mcp.CallToolRequest, query) (*mcp.CallToolResult, any, error) {
		return text(strings.Repeat("x", schema.MaxTraceBytes))
	})
	mcp.AddTool(server, &mcp.Tool{Name: "slow", Description: "never ends"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ query) (*mcp.CallToolResult, any, error) {
		started()
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(server, &mcp.Tool{Name: "die", Description: "ends the server"}, func(context.Context, *mcp.CallToolRequest, query) (*mcp.CallToolResult, any, error) {
		os.Exit(3)
		return nil, nil, nil
	})
	return server
}

// serveStdio is the MCP server over stdio.
func serveStdio(dir string) int {
	file := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			panic(err)
		}
		return f
	}
	fmt.Fprintln(os.Stderr, "the server speaks")
	transport := &mcp.IOTransport{
		Reader: struct {
			io.Reader
			io.Closer
		}{io.TeeReader(os.Stdin, file("read")), os.Stdin},
		Writer: struct {
			io.Writer
			io.Closer
		}{io.MultiWriter(file("written"), os.Stdout), os.Stdout},
	}
	if err := tools(func() { file("slow") }).Run(context.Background(), transport); err != nil {
		return 1
	}
	return 0
}

// site is a broker with an ingest.
type site struct {
	broker *brokertest.Server
	url    string
	stage  *pipelinetest.Stage
}

func newSite(t *testing.T, change func(*ingest.Config)) *site {
	t.Helper()
	s := &site{broker: brokertest.New(t)}
	pipelinetest.EnsureTopology(t, s.broker.Connect())
	cfg := ingest.Default()
	cfg.Common = config.DefaultCommon("")
	cfg.NATS.URL, cfg.NATS.MonitorURL, cfg.NATS.Replicas = s.broker.URL(), s.broker.MonitorURL(), 1
	cfg.HandshakeKeyFile, cfg.MicroKeyFile = filepath.Join(t.TempDir(), "handshake.key"), filepath.Join(t.TempDir(), "micro.key")
	if change != nil {
		change(&cfg)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + listener.Addr().String()
	env := pipelinetest.Env(t, "ingest")
	s.stage = pipelinetest.Go(t, func(ctx context.Context) error { return ingest.ServeOn(ctx, listener, &cfg, env, nil) })
	pipelinetest.Await(t, "the ingest to be ready", func() bool { return env.Health.Readiness().Ready })
	return s
}

// config returns the configuration of agent a's recorder, and what it reports.
func (s *site) config(t *testing.T) (Config, *reported) {
	t.Helper()
	told := new(reported)
	recorder, err := client.NewRecorder(client.RecorderConfig{
		AgentID: "a", CardID: "c", URL: s.url, Spool: t.TempDir(),
		OnError: func(e *client.RecordError) { told.say(e.Error()) }, OnWarning: func(string, string, string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = recorder.Close(ended)
	})
	return Config{AgentID: "a", CardID: "c", Recorder: recorder, Report: told.say}, told
}

// traces waits until the recorder has delivered all, and returns the n traces that are stored, by
// the names of their tools.
func (s *site) traces(t *testing.T, recorder *client.Recorder, n int) map[string][]*schema.Trace {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := recorder.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got := recorder.Stats(); got.Accepted != n || got.Recorded != n {
		t.Errorf("recorded %+v, want %d traces", got, n)
	}
	all := map[string][]*schema.Trace{}
	for _, message := range s.broker.ReadTraces(n) {
		trace, err := schema.Admit("a", message.Data)
		if err != nil {
			t.Fatal(err)
		}
		all[trace.Action.Name] = append(all[trace.Action.Name], trace)
	}
	return all
}

type reported struct {
	mu   sync.Mutex
	said []string
}

func (r *reported) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, text)
}

func (r *reported) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.said...)
}

func metadata(t *schema.Trace, name string) string {
	raw, _ := t.Context.Metadata.Get(name)
	return string(raw)
}
