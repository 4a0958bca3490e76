package mcprecorder

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/locked"
)

// session is an MCP client that speaks with this binary as a server, through a recorder.
type session struct {
	*mcp.ClientSession

	dir           string // of the server's files
	read, written *locked.Text
	code          chan int
	stderr        string
}

// speak starts the server behind a recorder, and connects a client.
func speak(t *testing.T, config Config, signals <-chan os.Signal) *session {
	t.Helper()
	s := &session{dir: t.TempDir(), read: new(locked.Text), written: new(locked.Text), code: make(chan int, 1)}
	stderr, err := os.Create(filepath.Join(s.dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	s.stderr = stderr.Name()
	in, toRecorder := io.Pipe()
	fromRecorder, out := io.Pipe()
	recorder := Stdio{
		Config: config, Command: []string{os.Args[0]}, Env: append(os.Environ(), serverDir+"="+s.dir),
		In: in, Out: out, Err: stderr, Signals: signals,
	}
	go func() {
		code, err := recorder.Run(context.Background())
		if err != nil {
			t.Error(err)
		}
		_ = stderr.Close()
		_ = in.Close()
		s.code <- code
	}()
	s.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.IOTransport{
		Reader: struct {
			io.Reader
			io.Closer
		}{io.TeeReader(fromRecorder, s.read), fromRecorder},
		Writer: struct {
			io.Writer
			io.Closer
		}{io.MultiWriter(s.written, toRecorder), toRecorder},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *session) call(ctx context.Context, tool, q string) (string, error) {
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"q": q}})
	if err != nil {
		return "", err
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		return "", fmt.Errorf("content %T", result.Content[0])
	}
	if result.IsError {
		return "error: " + text.Text, nil
	}
	return text.Text, nil
}

func (s *session) file(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each call of the official client is on record, with what the server offered and answered, and
// no byte between the two is changed.
func TestStdio(t *testing.T) {
	site := newSite(t, nil)
	config, told := site.config(t)
	s := speak(t, config, nil)
	if _, err := s.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			if got, err := s.call(t.Context(), "search", fmt.Sprint(i)); err != nil || got != fmt.Sprint("found ", i) {
				t.Errorf("the answer is %q, error %v", got, err)
			}
		})
	}
	calls.Wait()
	if got, err := s.call(t.Context(), "fail", ""); err != nil || got != "error: no stock" {
		t.Errorf("the answer is %q, error %v", got, err)
	}
	if got, err := s.call(t.Context(), "huge", ""); err != nil || len(got) < 100_000 {
		t.Errorf("the answer has %d bytes, error %v", len(got), err)
	}
	if _, err := s.call(t.Context(), "missing", ""); err == nil {
		t.Error("a tool that does not exist was called")
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls.Go(func() {
		if _, err := s.call(ctx, "slow", ""); err == nil {
			t.Error("the cancelled call was answered")
		}
	})
	pipelinetest.Await(t, "the slow tool", func() bool { _, err := os.Stat(filepath.Join(s.dir, "slow")); return err == nil })
	cancel()
	calls.Wait()
	if _, err := s.call(t.Context(), "die", ""); err == nil {
		t.Error("a server that died has answered")
	}
	if code := <-s.code; code != 3 {
		t.Errorf("the exit code is %d, want that of the server, 3", code)
	}
	// What the client writes after the death of the server is not read any more.
	if got, want := s.file(t, "read"), []byte(s.written.String()); !bytes.HasPrefix(want, got) || !bytes.Contains(got, []byte(`"name":"die"`)) {
		t.Errorf("the server read\n%.2000s\nthe client wrote\n%.2000s", got, want)
	}
	if got, want := []byte(s.read.String()), s.file(t, "written"); !bytes.Equal(got, want) {
		t.Errorf("the client read %d bytes, the server wrote %d", len(got), len(want))
	}
	if got, err := os.ReadFile(s.stderr); err != nil || string(got) != "the server speaks\n" {
		t.Errorf("standard error is %q, %v", got, err)
	}

	all := site.traces(t, config.Recorder, 25)
	numbers := map[uint64]bool{}
	for _, traces := range all {
		for _, trace := range traces {
			numbers[trace.Context.SequenceNumber] = true
		}
	}
	if len(all["search"]) != 20 || len(numbers) != 25 || !numbers[1] || !numbers[25] {
		t.Errorf("%d traces of search, %d numbers", len(all["search"]), len(numbers))
	}
	search := all["search"][0]
	d := &search.Decision
	if len(d.Alternatives) != 5 || d.Selected != "search" || d.SelectedAlternative().Description != "looks for goods" || !strings.Contains(d.Reasoning, "do not contain the model's reasons") {
		t.Errorf("the decision is %+v", d)
	}
	if e := &search.Context.Execution; e.ToolName != "shop.search" || !strings.Contains(string(e.Outputs), "found ") || !strings.Contains(string(e.Inputs), `"q":`) || metadata(search, "duration_ms") == "" {
		t.Errorf("the execution is %+v", e)
	}
	for tool, want := range map[string]string{
		"fail": "no stock", "missing": "unknown tool", "slow": "cancelled by the client", "die": "the server ended without an answer (exit status 3)",
	} {
		if traces := all[tool]; len(traces) != 1 || !strings.Contains(strings.ToLower(traces[0].Context.Execution.Error), want) {
			t.Errorf("%s: %+v", tool, traces)
		}
	}
	if huge := all["huge"]; len(huge) != 1 || !strings.Contains(string(huge[0].Context.Execution.Outputs), `"omitted_bytes"`) {
		t.Errorf("huge: %+v", huge)
	}
	if said := told.all(); len(said) > 0 {
		t.Errorf("reported %q", said)
	}
}

// The end of the client's input ends the server; a signal reaches it.
func TestStdioEnds(t *testing.T) {
	site := &site{url: "http://127.0.0.1:1"} // nobody: the traffic does not need ingest
	config, _ := site.config(t)
	s := speak(t, config, nil)
	if got, err := s.call(t.Context(), "search", "x"); err != nil || got != "found x" {
		t.Errorf("without ingest the answer is %q, error %v", got, err)
	}
	_ = s.Close()
	if code := <-s.code; code != 0 {
		t.Errorf("the exit code is %d after the end of input", code)
	}
	signals := make(chan os.Signal, 1)
	s = speak(t, config, signals)
	signals <- syscall.SIGTERM
	if code := <-s.code; code != 128+int(syscall.SIGTERM) {
		t.Errorf("the exit code is %d after SIGTERM", code)
	}
	if got := config.Recorder.Stats(); got.Recorded != 1 || got.Waiting == 0 {
		t.Errorf("recorded %+v", got)
	}
	missing := Stdio{Config: config, Command: []string{filepath.Join(t.TempDir(), "no-such-server")}}
	if _, err := missing.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-server") {
		t.Errorf("error %v", err)
	}
}

// Anything passes, also what is no JSON-RPC, has no end or is very long.
func TestStdioPassesAnything(t *testing.T) {
	site := &site{url: "http://127.0.0.1:1"}
	config, told := site.config(t)
	sent := "no json\n\n{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}\r\n[" + strings.Repeat(" ", 200_000) + "]\n" + "{\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"y\"}}"
	var got locked.Text
	code, err := (&Stdio{Config: config, Command: []string{"cat"}, In: strings.NewReader(sent), Out: &got, Err: os.Stderr}).Run(t.Context())
	if err != nil || code != 0 || got.String() != sent {
		t.Errorf("passed %d of %d bytes, code %d, error %v", len(got.String()), len(sent), code, err)
	}
	if stats := config.Recorder.Stats(); stats.Recorded != 2 {
		t.Errorf("recorded %+v", stats)
	}
	if said := told.all(); len(said) < 1 || !strings.Contains(said[0], "a message of the client is passed on, and cannot be recorded") {
		t.Errorf("reported %q", said)
	}
}

// An answer that is too long to be read was an answer: the trace does not say that there was none.
func TestStdioAnswerThatIsNotRead(t *testing.T) {
	config, told := offline(t)
	dir := t.TempDir()
	recorder, err := client.NewRecorder(client.RecorderConfig{AgentID: "a", CardID: "c", URL: "http://127.0.0.1:1", Spool: dir, OnError: func(*client.RecordError) {}})
	if err != nil {
		t.Fatal(err)
	}
	config.Recorder = recorder
	server := fmt.Sprintf("read call; echo '[INFO] the log'; echo '[INFO] more'; head -c %d /dev/zero; echo", maxMessage+1)
	call := `{"id":1,"method":"tools/call","params":{"name":"x"}}` + "\n"
	code, err := (&Stdio{Config: config, Command: []string{"sh", "-c", server}, In: strings.NewReader(call), Out: io.Discard, Err: os.Stderr}).Run(t.Context())
	if err != nil || code != 0 {
		t.Errorf("code %d, error %v", code, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = recorder.Close(ended)
	if got := spooled(t, dir); !strings.Contains(got, "was passed on unread, which may be the answer") {
		t.Errorf("recorded %s", got)
	}
	if said := told.all(); len(said) != 2 || !strings.Contains(said[0], `no messages, such as "[INFO] the log"`) || !strings.Contains(said[1], "is not recorded") {
		t.Errorf("reported %q", said)
	}
}
