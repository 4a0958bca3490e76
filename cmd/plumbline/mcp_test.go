package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// A server in Python that writes a line of its log where only messages may be, and ends with code 7
// unless it sees the recorder's token.
const mcpServer = `
import json, os, sys
print("clock 1.0 starts", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "clock", "version": "1.0"}},
            "tools/list": {"tools": [{"name": "time", "description": "tells the time", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "noon"}]},
        }[message["method"]]
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
sys.exit(8 if "PLUMBLINE_TOKEN" in os.environ else 7)
`

const (
	mcpHello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	mcpList = `{"jsonrpc":"2.0","id":"é/1","method":"tools/list"}
`
	mcpCall = `{"jsonrpc":"2.0","id":"é/2","method":"tools/call","params":{"name":"time","arguments":{"zone":"utc"}}}
`
)

// recordMCP does what docs/MCP.md says: with ingest, without it, and with it again.
func (v *visitor) recordMCP(t *testing.T) {
	v.write(t, "server.py", mcpServer)
	v.write(t, "talk", mcpHello+mcpList+mcpCall)
	v.write(t, "call", mcpHello+mcpCall)
	run := func(arguments, input string, wants ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		cmd := v.shell(t.Context(), "PLUMBLINE_TOKEN=unused plumbline mcp "+arguments+" -- python3 server.py <"+input)
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if cmd.ProcessState == nil || wants[0] != "" && (cmd.ProcessState.ExitCode() != 7 || !strings.HasPrefix(out.String(), wants[0])) {
			t.Errorf("%s: %v\n%s%s", arguments, err, &out, &errs)
		}
		for _, want := range wants[1:] {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s: want %q on standard error:\n%s", arguments, want, &errs)
			}
		}
	}
	const answers = "clock 1.0 starts\n{\"jsonrpc\": \"2.0\", \"id\": 0, \"result\": {"
	run("--agent ann-assistant --register", "talk", answers, `writes lines that are no messages, such as "clock 1.0 starts"`, "registered card ac-mcp-ann-assistant-", "which permits time")
	run("--agent ann-assistant --url http://127.0.0.1:1", "talk", answers, "they wait in the spool")
	run("--agent bob --url http://127.0.0.1:1", "talk", "", "the card of agent bob is not known, because ingest does not answer")
	run("--agent bob", "talk", "", "agent bob has no card in force", "--register")
	run("--agent bob --register", "call", answers, "no card was registered, because the client never asked the server for its tools")
	run("--agent ann-assistant --durable --session monday", "talk", answers)

	text, err := os.ReadFile("../../docs/MCP.md")
	if err != nil {
		t.Fatal(err)
	}
	_, query, found := strings.Cut(string(text), "        plumbline sql \"SELECT event_time, ")
	query, _, _ = strings.Cut(query, "\"\n")
	if !found || !strings.Contains(query, "ann-assistant") {
		t.Fatal("docs/MCP.md lacks the query")
	}
	const three = "three calls of time without an error"
	v.await(t, "plumbline sql --format TSV \"SELECT "+query+"\"", func(out []byte) bool { return string(out) == strings.Repeat("time\t\n", 3) }, three)
	v.await(t, "plumbline sql --format TSV \"SELECT status, verified FROM current_verdicts WHERE agent_id = 'ann-assistant'\"",
		func(out []byte) bool { return string(out) == strings.Repeat("judged\ttrue\n", 3) }, "three verdicts by the registered card")
}
