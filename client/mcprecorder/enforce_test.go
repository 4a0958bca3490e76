package mcprecorder

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/ingest"
)

// spooled returns the lines of a spool.
func spooled(t *testing.T, dir string) (all string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

// enforcing is a recorder that asks ingest before each call. Agent "a" accepted a signed message, which
// permits it to read: shop.search reads, shop.fail sends.
type enforcing struct {
	*site

	config Config
	told   *reported
	signed *client.SignedMessage
}

func newEnforcing(t *testing.T) *enforcing {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"policies.yaml": "agents: {a: {mode: enforce, human: [read], tools: {shop.search: read, shop.fail: send}}}",
		"tokens.jsonl": fmt.Sprintf(`{"name":"ann","sha256":%q,"agents":["a"],"scopes":["messages:write"],"source":"human"}`+"\n"+
			`{"name":"rt","sha256":%q,"agents":["a"],"scopes":["runtime","traces:write","sessions:write"]}`, auth.Hash("person"), auth.Hash("runtime")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := &enforcing{site: newSite(t, func(cfg *ingest.Config) {
		cfg.TokenFile, cfg.MessagePoliciesFile = filepath.Join(dir, "tokens.jsonl"), filepath.Join(dir, "policies.yaml")
	})}
	connect := func(token string) *client.HTTP {
		h, err := client.NewHTTP(client.HTTPConfig{URL: e.url, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		return h
	}
	var err error
	if e.signed, err = connect("person").Sign(t.Context(), client.SignRequest{AgentID: "a", SessionID: "s", Text: "What is new?"}); err != nil {
		t.Fatal(err)
	}
	gateway := connect("runtime")
	if _, err := (&client.Runtime{HTTP: gateway, AgentID: "a", SessionID: "s"}).Receive(t.Context(), e.signed.Wrapped, &e.signed.Envelope); err != nil {
		t.Fatal(err)
	}
	e.config, e.told = e.site.config(t)
	e.config.Recorder, err = client.NewRecorder(client.RecorderConfig{AgentID: "a", CardID: "c", URL: e.url, Token: "runtime", Spool: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.config.Recorder.Close(ended)
	})
	e.config.Enforce, e.config.SessionID, e.config.Server = gateway, "s", "shop"
	return e
}

// A call that an ingest which hangs does not decide in time is denied.
func TestEnforceWithAnIngestThatHangs(t *testing.T) {
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gateway, err := client.NewHTTP(client.HTTPConfig{URL: "http://" + silent.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer gateway.Close()
	config, _ := offline(t)
	config.Enforce, config.SessionID, config.AskTimeout = gateway, "s", 50*time.Millisecond
	_, address := proxied(t, config, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the call was passed on") }))
	code, got := post(t, address, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
	if code != http.StatusOK || !strings.Contains(got, "ingest could not be asked") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("the answer is %d %s", code, got)
	}
}

// With Enforce only calls that a message permits are passed on, over both transports. Denied calls
// are answered with a tool error and are on record as not made; the results of permitted ones are
// signed and cited.
func TestEnforce(t *testing.T) {
	e := newEnforcing(t)
	e.overStdio(t)
	_, address := proxied(t, e.config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "fail") || !strings.Contains(string(body), e.signed.ID) && !strings.Contains(string(body), "tools/list") {
			t.Errorf("the server got %s", body)
		}
		respond(w, "", `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	}))
	e.overHTTP(t, address)
	e.inOddRequests(t, address)
	e.onRecord(t, 2, 6)
	e.stage.Stop(t) // ingest has gone: nobody can decide
	if code, got := post(t, address, "", calling(8, "search", e.signed.ID)); code != http.StatusOK || !strings.Contains(got, "ingest could not be asked") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("without ingest: %d %s", code, got)
	}
}

// overStdio makes a permitted and a denied call, which rely on the recorder's own message.
func (e *enforcing) overStdio(t *testing.T) {
	t.Helper()
	config := e.config
	config.MessageID = e.signed.ID
	s := speak(t, config, nil)
	if got, err := s.call(t.Context(), "search", "x"); err != nil || got != "found x" {
		t.Errorf("the permitted call: %q, error %v", got, err)
	}
	if got, err := s.call(t.Context(), "fail", "x"); err != nil || !strings.Contains(got, "error: This tool was not called") || !strings.Contains(got, "out_of_scope") {
		t.Errorf("the denied call: %q, error %v", got, err)
	}
	_ = s.Close()
	<-s.code
	if read := s.file(t, "read"); strings.Contains(string(read), `"name":"fail"`) || !strings.Contains(string(read), `"name":"search"`) {
		t.Errorf("the server read %s", read)
	}
}

// calling returns a call that relies on a message.
func calling(id int, tool, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"_meta":{"plumbline/message_id":%q}}}`, id, tool, message)
}

// overHTTP makes a permitted call and three denied ones; a list passes, and ambiguous JSON does not.
func (e *enforcing) overHTTP(t *testing.T, address string) {
	t.Helper()
	for _, c := range []struct{ sent, want string }{
		{calling(1, "search", e.signed.ID), `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`},
		{calling(2, "search", "other"), `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"This tool was not called: tool \"shop.search\" is blocked: no_message:`},
		{`[` + calling(3, "search", e.signed.ID) + `,` + calling(4, "fail", e.signed.ID) + `]`, `[{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"This tool was not called: another call of the same batch was denied`},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,`},
		{`{"jsonrpc":"2.0","id":6,"method":"ping","method":"tools/call"}`, `"error":{"code":-32700,`},
	} {
		if code, got := post(t, address, "", c.sent); code != http.StatusOK || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s", c.sent, code, got)
		}
	}
}

// inOddRequests makes denied calls that a server could understand in spite of their headers.
func (e *enforcing) inOddRequests(t *testing.T, address string) {
	t.Helper()
	for _, c := range []struct {
		media, coding, sent string
		code                int
	}{
		{"text/plain", "", calling(2, "fail", "other"), http.StatusOK},
		{"application/x-www-form-urlencoded", "", calling(2, "fail", "other"), http.StatusOK},
		{"application/json", "gzip", "fail", http.StatusUnsupportedMediaType},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(c.sent))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {c.media}, "Content-Encoding": {c.coding}}
		connection := &http.Transport{}
		response, err := connection.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		connection.CloseIdleConnections()
		if response.StatusCode != c.code { // and the server would report the call
			t.Errorf("%s %s: HTTP %d", c.media, c.coding, response.StatusCode)
		}
	}
}

// onRecord counts the traces of permitted calls, which cite their signed results, and of blocked ones.
func (e *enforcing) onRecord(t *testing.T, permitted, denied int) {
	t.Helper()
	cited, blocked := 0, 0
	for _, traces := range e.traces(t, e.config.Recorder, permitted+denied) {
		for _, trace := range traces {
			auth := metadata(trace, "message_auth")
			switch {
			case trace.Action.Type == "execute" && strings.Contains(auth, `"tool_results":[{"tool_name":"shop.search","seq":`) && strings.Contains(auth, e.signed.ID):
				cited++
			case trace.Action.Type == "recommend" && !trace.Context.Execution.Present && metadata(trace, "blocked") != "":
				blocked++
			default:
				t.Errorf("%s", trace.Raw)
			}
			if trace.Context.HasSequenceNumber || trace.Context.SessionID != "s" {
				t.Errorf("number or session of %s", trace.Raw)
			}
		}
	}
	if cited != permitted || blocked != denied {
		t.Errorf("%d permitted calls with signed results, %d blocked; reported %q", cited, blocked, e.told.all())
	}
}
