package mcprecorder

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

// proxied runs a recorder before an upstream, and returns its address.
func proxied(t *testing.T, config Config, upstream http.Handler) (proxy *HTTP, address string) {
	t.Helper()
	server := httptest.NewServer(upstream)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy = NewHTTP(config, at, true)
	listening := httptest.NewServer(proxy)
	t.Cleanup(func() {
		listening.CloseClientConnections()
		listening.Close()
		proxy.End()
	})
	return proxy, listening.URL
}

func offline(t *testing.T) (Config, *reported) {
	return (&site{url: "http://127.0.0.1:1"}).config(t)
}

// The official client and server speak streamable HTTP in all its forms through the recorder.
func TestHTTP(t *testing.T) {
	site := newSite(t, nil)
	config, told := site.config(t)
	sessions, total := map[string]bool{}, 0
	for name, c := range map[string]struct {
		options mcp.StreamableHTTPOptions
		version string
	}{
		"sessions, events":    {mcp.StreamableHTTPOptions{}, "2025-11-25"},
		"sessions, resumable": {mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}, "2025-11-25"},
		"sessions, JSON":      {mcp.StreamableHTTPOptions{JSONResponse: true}, "2025-06-18"},
		"no sessions":         {mcp.StreamableHTTPOptions{Stateless: true}, ""},
	} {
		started := make(chan struct{}, 1)
		server := tools(func() { started <- struct{}{} })
		proxy, address := proxied(t, config, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &c.options))
		var calls sync.WaitGroup
		for range 2 { // clients, whose ids are equal
			calls.Go(func() {
				connection := &http.Transport{}
				defer connection.CloseIdleConnections()
				s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
					&mcp.StreamableClientTransport{Endpoint: address + "/mcp?x=1;y", HTTPClient: &http.Client{Transport: connection}}, &mcp.ClientSessionOptions{ProtocolVersion: c.version})
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				if _, err := s.ListTools(t.Context(), nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				for _, tool := range []string{"search", "fail", "missing"} {
					_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"q": "x"}})
					if (err != nil) != (tool == "missing") {
						t.Errorf("%s: %s: %v", name, tool, err)
					}
				}
				if err := s.Close(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		calls.Wait()
		proxy.End()
		total += 6
		all := site.traces(t, config.Recorder, total)
		for tool, want := range map[string]string{"search": "", "fail": "no stock", "missing": "unknown tool"} {
			if traces := all[tool]; len(traces) != total/3 {
				t.Errorf("%s: %d traces of %s", name, len(traces), tool)
			}
			for _, trace := range all[tool] {
				sessions[trace.Context.SessionID] = true
				if e := &trace.Context.Execution; !strings.Contains(strings.ToLower(e.Error), want) || e.ToolName != "shop."+tool || len(trace.Decision.Alternatives) < 5 {
					t.Errorf("%s: %s: %s", name, tool, trace.Raw)
				}
			}
		}
	}
	if len(sessions) != 3*2+1 {
		t.Errorf("%d sessions, want one for each MCP session and one for the server without sessions", len(sessions))
	}
	if said := told.all(); len(said) > 0 {
		t.Errorf("reported %q", said)
	}
}

// Requests and responses pass unchanged: bodies, headers, status, query and compression.
func TestHTTPPassesUnchanged(t *testing.T) {
	config, _ := offline(t)
	var seen *http.Request
	var read []byte
	answer := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"gut"}]}}`)
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	_, _ = zip.Write(answer)
	_ = zip.Close()
	_, address := proxied(t, config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		read, _ = io.ReadAll(r.Body)
		w.Header()["Mcp-Session-Id"], w.Header()["X-Odd"] = []string{"s1"}, []string{"a", "b"}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusNonAuthoritativeInfo)
		_, _ = w.Write(compressed.Bytes())
	}))
	body := "{\n \"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}\r\n"
	connection := &http.Transport{DisableCompression: true}
	defer connection.CloseIdleConnections()
	for _, codings := range []struct{ sent, passed []string }{{[]string{"gzip, br;q=0.5, zstd"}, []string{"gzip"}}, {[]string{"br"}, []string{"identity"}}, {nil, nil}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/a%2Fb/mcp?q=1;2&z", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer secret"},
			"X-Forwarded-For": {"10.0.0.1"}, "User-Agent": {"odd/1"}, "Mcp-Session-Id": {"s1"},
		}
		want := maps.Clone(request.Header)
		want["Content-Length"] = []string{fmt.Sprint(len(body))}
		if codings.sent != nil {
			request.Header["Accept-Encoding"], want["Accept-Encoding"] = codings.sent, codings.passed
		}
		response, err := connection.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !bytes.Equal(got, compressed.Bytes()) || response.StatusCode != http.StatusNonAuthoritativeInfo || fmt.Sprint(response.Header["X-Odd"]) != "[a b]" {
			t.Errorf("the response is %q with %v and %d, error %v", got, response.Header, response.StatusCode, err)
		}
		if string(read) != body || seen.RequestURI != "/a%2Fb/mcp?q=1;2&z" || !maps.EqualFunc(seen.Header, want, slices.Equal) {
			t.Errorf("the server read %q, %s and %v, want %v", read, seen.RequestURI, seen.Header, want)
		}
	}
	if stats := config.Recorder.Stats(); stats.Recorded != 3 {
		t.Errorf("recorded %+v", stats)
	}
}

// An event passes as soon as the server has sent it, and a call whose stream breaks off is on record.
func TestHTTPStreams(t *testing.T) {
	for _, resumable := range []bool{false, true} {
		config, _ := offline(t)
		received := make(chan struct{})
		proxy, address := proxied(t, config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if resumable {
				fmt.Fprint(w, "id: 1\n")
			}
			fmt.Fprint(w, "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"notifications/progress\"}\r\n\r\n")
			w.(http.Flusher).Flush()
			select {
			case <-received:
			case <-r.Context().Done():
				return
			}
			panic(http.ErrAbortHandler) // the connection breaks
		}))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {"s1"}}
		connection := &http.Transport{}
		response, err := connection.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(response.Body)
		for line := ""; line != "\r\n"; {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		close(received)
		if _, err := io.ReadAll(lines); err == nil {
			t.Error("the client did not see the end of the connection")
		}
		_ = response.Body.Close()
		connection.CloseIdleConnections()
		if got := config.Recorder.Stats().Recorded; (got == 0) != resumable {
			t.Errorf("resumable %t: %d traces after the end of the stream", resumable, got)
		}
		proxy.End()
		if got := config.Recorder.Stats().Recorded; got != 1 {
			t.Errorf("resumable %t: %d traces at the end", resumable, got)
		}
	}
}

// post sends a message to a recorder and returns the answer.
func post(t *testing.T, address, host, message string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if host != "" {
		request.Host = host
	}
	connection := &http.Transport{DisableCompression: true}
	defer connection.CloseIdleConnections()
	response, err := connection.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// Failures of the server, and answers that are none, are on record with their reason.
func TestHTTPFailures(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`
	for want, answer := range map[string]http.HandlerFunc{
		"HTTP 500":                      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) },
		"HTTP 202":                      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) },
		"could not be reached":          func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		`encoding \"br\" is unknown`:    func(w http.ResponseWriter, _ *http.Request) { respond(w, "br", "x") },
		"it is no gzip":                 func(w http.ResponseWriter, _ *http.Request) { respond(w, "gzip", "xxxxxxxxxxxxxxx") },
		"neither a result nor an error": func(w http.ResponseWriter, _ *http.Request) { respond(w, "", `[{"id":7}]`) },
	} {
		config, _ := offline(t)
		dir := t.TempDir()
		recorder, err := client.NewRecorder(client.RecorderConfig{AgentID: "a", CardID: "c", URL: "http://127.0.0.1:1", Spool: dir, Durable: true,
			OnError: func(*client.RecordError) {}})
		if err != nil {
			t.Fatal(err)
		}
		config.Recorder = recorder
		_, address := proxied(t, config, answer)
		post(t, address, "", call)
		pipelinetest.Await(t, "the trace", func() bool { return recorder.Stats().Recorded == 1 })
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = recorder.Close(ended)
		if got := spooled(t, dir); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("%s: recorded %s", want, got)
		}
	}
}

func respond(w http.ResponseWriter, coding, body string) {
	w.Header().Set("Content-Type", "application/json")
	if coding != "" {
		w.Header().Set("Content-Encoding", coding)
	}
	_, _ = io.WriteString(w, body)
}

// An MCP session without requests ends, and no other does.
func TestHTTPEndsIdleSessions(t *testing.T) {
	config, _ := offline(t)
	dir := t.TempDir()
	recorder, err := client.NewRecorder(client.RecorderConfig{AgentID: "a", CardID: "c", URL: "http://127.0.0.1:1", Spool: dir, OnError: func(*client.RecordError) {}})
	if err != nil {
		t.Fatal(err)
	}
	config.Recorder = recorder
	proxy, address := proxied(t, config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Mcp-Session-Id", r.URL.Query().Get("s"))
		respond(w, "", `[{"id":1,"result":{}},{"id":2,"result":{"content":[]}}]`)
	}))
	for _, id := range []string{"idle", "busy"} {
		post(t, address+"?s="+id, "", `[{"id":1,"method":"initialize"},{"id":2,"method":"tools/call","params":{"name":"x"}}]`)
	}
	pipelinetest.Await(t, "the end of both exchanges", func() bool {
		proxy.mu.Lock()
		defer proxy.mu.Unlock()
		return proxy.known["idle"].open+proxy.known["busy"].open == 0
	})
	proxy.mu.Lock()
	session := proxy.known["idle"].id
	proxy.known["idle"].seen = time.Now().Add(-idleVisit - time.Second)
	proxy.mu.Unlock()
	proxy.tidy()
	proxy.mu.Lock()
	left := len(proxy.known)
	proxy.mu.Unlock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = recorder.Close(ended)
	if got := spooled(t, dir); left != 1 || strings.Count(got, `"end_session"`) != 1 || !strings.Contains(got, `"session_id":"`+session+`"}}`) {
		t.Errorf("%d sessions are left, recorded %s", left, got)
	}
}

// A web page that reaches the recorder by way of DNS is refused.
func TestHTTPRefusesOtherHosts(t *testing.T) {
	config, _ := offline(t)
	_, address := proxied(t, config, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request was passed on") }))
	if code, text := post(t, address, "evil.example", "{}"); code != http.StatusForbidden || !strings.Contains(text, "evil.example") {
		t.Errorf("the answer is %d %s", code, text)
	}
}
