// Package clients_test runs the tests of the Python and the TypeScript client that need no server, and compares
// the traces that both build with package schema. integration.TestClientsSurviveKillsOfIngest has the tests
// with a real ingest.
package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/clients/clientstest"
	"github.com/plumbline/plumbline/schema"
)

func TestPython(t *testing.T) {
	t.Parallel()
	run(t, clientstest.Python(t, "-m", "unittest"))
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(clientstest.Dir(t, "typescript"), "test", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of the TypeScript client: %v", err)
	}
	run(t, clientstest.Node(t, append([]string{"--test"}, files...)...))
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// decisions are arguments of record. Some make no trace.
var decisions = []string{
	`{"action": "search"}`,
	`{"action": "search", "parameters": {"z": 1e21, "a": [1e-7, 0.1, -0, 5e-324, 1.7976931348623157e308], "é": "€\u000f\"\\", "😀": null, "ﬁ": 1}}`,
	`{"action": "buy", "type": "escalate", "category": "escalation_trigger", "target": {"type": "shop", "identifier": "x"},
		"alternatives": ["wait", {"option_id": "A", "description": "buy", "score": 1, "scoring_factors": {"risk": 0.1}, "flags": ["late"]}], "selected": "A",
		"reasoning": "cheap", "values": ["honesty"], "confidence": 0.5, "turn": 3, "prior": ["tr-0"], "environment": {"client": "web"},
		"escalation": {"required": true, "reason": "price", "escalation_id": "e", "escalation_status": "approved",
			"triggers_checked": [{"trigger": "amount > 100", "matched": true, "value_observed": 250}],
			"principal_response": {"decision": "approved", "timestamp": "2026-01-31T12:05:00Z", "conditions": ["amount <= 300"]}},
		"execution": {"tool_name": "shop", "inputs": {"amount": 250}, "outputs": [1], "cost_cents": 3, "error": "none"}, "metadata": {"model": "m"}}`,
	`{}`,
	`{"action": 5}`,
	`{"action": ""}`,
	`{"action": "x", "type": "buy", "category": "free"}`,
	`{"action": "x", "type": 1, "category": []}`,
	`{"action": "x", "target": "shop"}`,
	`{"action": "x", "target": {"type": null, "identifier": 7}}`,
	`{"action": "x", "parameters": [1]}`,
	`{"action": "x", "alternatives": []}`,
	`{"action": "x", "alternatives": {"a": 1}, "selected": "a"}`,
	`{"action": "x", "alternatives": ["a", "b"]}`,
	`{"action": "x", "alternatives": ["a", "b", "a"], "selected": "c"}`,
	`{"action": "x", "alternatives": [1, {"option_id": "", "description": 2, "score": 2, "scoring_factors": 3, "flags": "f"}, {"option_id": "b", "flags": [1]}], "selected": "b"}`,
	`{"action": "x", "alternatives": [{"option_id": "A", "description": "d", "score": null, "scoring_factors": null, "flags": null}]}`,
	`{"action": "x", "reasoning": 1, "values": "honesty"}`,
	`{"action": "x", "values": [1, null, "v"]}`,
	`{"action": "x", "confidence": 1.5}`,
	`{"action": "x", "confidence": -0.25}`,
	`{"action": "x", "confidence": "high"}`,
	`{"action": "x", "confidence": true}`,
	`{"action": "x", "turn": -1}`,
	`{"action": "x", "turn": 1.5}`,
	`{"action": "x", "turn": "2"}`,
	`{"action": "x", "prior": ["tr-0", 1]}`,
	`{"action": "x", "prior": "tr-0"}`,
	`{"action": "x", "environment": "web", "metadata": "m"}`,
	`{"action": "x", "escalation": true}`,
	`{"action": "x", "escalation": {"evaluated": "yes", "required": null, "reason": 1, "escalation_id": 2, "escalation_status": "open"}}`,
	`{"action": "x", "escalation": {"reason": null, "escalation_id": null, "escalation_status": null, "triggers_checked": null, "principal_response": null}}`,
	`{"action": "x", "escalation": {"triggers_checked": [1, {"trigger": 1, "matched": 1}], "principal_response": {"decision": 1, "timestamp": "now", "conditions": [1]}}}`,
	`{"action": "x", "escalation": {"triggers_checked": {}, "principal_response": []}}`,
	`{"action": "x", "execution": "shop"}`,
	`{"action": "x", "session_id": "~utc-2026-01-31"}`,
	`{"action": "x", "timestamp": "yesterday"}`,
	`{"action": "x", "timestamp": 5}`,
	`{"action": "x", "timestamp": "2026-02-30T12:00:00Z"}`,
	`{"action": "x", "timestamp": "2026-01-31T12:00:00"}`,
	`{"action": "x", "timestamp": "2026-01-31t12:00:00.123456789+02:00"}`,
	`{"action": "x", "timestamp": "2026-06-30T23:59:60Z"}`,
	`{"action": "x", "timestamp": "2026-07-01T01:59:60+02:00"}`,
	`{"action": "x", "timestamp": "2026-06-30T22:59:60Z"}`,
	`{"action": "x", "timestamp": "1969-12-31T23:59:59Z"}`,
	`{"action": "x", "timestamp": "2106-01-01T00:00:00Z"}`,
	`{"action": "x", "timestamp": "2026-01-31T24:00:00Z"}`,
	`{"action": "` + strings.Repeat("é", 257) + `"}`,
	`{"action": "x", "alternatives": ["a"], "selected": "` + strings.Repeat("é", 200) + `"}`,
}

// Both clients build the same bytes, and find the faults that ingest finds, in the same words.
func TestClientsBuildWhatIngestAdmits(t *testing.T) {
	t.Parallel()
	type built struct {
		Trace  string         `json:"trace"`
		Faults []schema.Fault `json:"faults"`
	}
	var lines bytes.Buffer
	for _, d := range decisions {
		if err := json.Compact(&lines, []byte(d)); err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		lines.WriteByte('\n')
	}
	var answers [2][]built
	for i, cmd := range []*exec.Cmd{clientstest.Python(t, "-m", "tests.decisions"), clientstest.Node(t, "test/decisions.mjs")} {
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stderr = bytes.NewReader(lines.Bytes()), &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, &stderr)
		}
		for text := range bytes.Lines(out) {
			var b built
			if err := json.Unmarshal(text, &b); err != nil {
				t.Fatalf("%v: %v: %s", cmd.Args, err, text)
			}
			answers[i] = append(answers[i], b)
		}
		if len(answers[i]) != len(decisions) {
			t.Fatalf("%v: %d answers, want %d", cmd.Args, len(answers[i]), len(decisions))
		}
	}
	valid := 0
	for i, d := range decisions {
		python, typescript := answers[0][i], answers[1][i]
		if python.Trace != typescript.Trace {
			t.Errorf("%s: built in Python\n%s\nin TypeScript\n%s", d, python.Trace, typescript.Trace)
		}
		_, err := schema.Admit("", []byte(python.Trace))
		var refusal *schema.Refusal
		if errors.As(err, &refusal) {
			refusal.Faults = sorted(refusal.Faults)
		} else {
			refusal = new(schema.Refusal)
			valid++
		}
		for name, got := range map[string][]schema.Fault{"Python": sorted(python.Faults), "TypeScript": sorted(typescript.Faults)} {
			if !slices.Equal(got, refusal.Faults) {
				t.Errorf("%s: %s finds %q, ingest finds %q", d, name, got, refusal.Faults)
			}
		}
		form, err := schema.Canonical([]byte(python.Trace))
		if err != nil || string(form) != python.Trace {
			t.Errorf("%s: the trace is not in canonical form: %v\n%s", d, err, python.Trace)
		}
	}
	if valid < 8 || valid > len(decisions)/2 {
		t.Errorf("%d of %d decisions are valid: the list does not test both sides", valid, len(decisions))
	}
}

// killed records one trace and ends by SIGKILL; delivers takes over what killed has left, and waits until it
// is stored.
var languages = map[string]struct{ killed, delivers string }{
	"python": {
		killed: `
import os, signal
from plumbline import Recorder
Recorder("did:web:shop.example", "ac-1", durable=True).session().record("python")
os.kill(os.getpid(), signal.SIGKILL)`,
		delivers: `
import time
from plumbline import Recorder
recorder = Recorder("did:web:shop.example", "ac-1")
while recorder.stats()["accepted"] < 1: time.sleep(0.01)
recorder.close()`,
	},
	"go": {killed: "killed", delivers: "delivers"}, // recordInGo
	"typescript": {
		killed: `
import { Recorder } from "./dist/index.js";
new Recorder({ agentId: "did:web:shop.example", cardId: "ac-1", durable: true }).session().record({ action: "typescript" });
process.kill(process.pid, "SIGKILL");`,
		delivers: `
import { Recorder } from "./dist/index.js";
const recorder = new Recorder({ agentId: "did:web:shop.example", cardId: "ac-1" });
while (recorder.stats().accepted < 1) await new Promise((resolve) => setTimeout(resolve, 10));
await recorder.close();`,
	},
}

// scriptVariable makes this test binary run recordInGo.
const scriptVariable = "PLUMBLINE_TEST_GO_SCRIPT"

func TestMain(m *testing.M) {
	if script := os.Getenv(scriptVariable); script != "" {
		if err := recordInGo(script); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// recordInGo does what the scripts in the other languages do.
func recordInGo(script string) error {
	recorder, err := client.NewRecorder(client.RecorderConfig{AgentID: "did:web:shop.example", CardID: "ac-1", Durable: script == "killed"})
	if err != nil {
		return err
	}
	if script == "killed" {
		recorder.Session("").Record(client.Decision{Action: "go"})
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	for recorder.Stats().Accepted < 1 {
		time.Sleep(10 * time.Millisecond)
	}
	return recorder.Close(context.Background())
}

// A recorder takes over the files of a dead process, whatever language that was written in.
func TestSpoolIsSharedByAllLanguages(t *testing.T) {
	t.Parallel()
	command := func(t *testing.T, language, script, url, spool string) *exec.Cmd {
		var cmd *exec.Cmd
		switch language {
		case "python":
			cmd = clientstest.Python(t, "-c", script)
		case "typescript":
			cmd = clientstest.Node(t, "--input-type=module", "-e", script)
		default:
			cmd = exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), scriptVariable+"="+script)
		}
		cmd.Env = append(cmd.Environ(), "PLUMBLINE_URL="+url, "PLUMBLINE_SPOOL="+spool)
		return cmd
	}
	for dead, of := range languages {
		for next, to := range languages {
			t.Run(dead+" to "+next, func(t *testing.T) {
				t.Parallel()
				spool := t.TempDir()
				var stored []string
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var trace struct {
						TraceID string `json:"trace_id"`
						Action  struct{ Name string }
					}
					if err := json.NewDecoder(r.Body).Decode(&trace); err != nil {
						t.Error(err)
					}
					stored = append(stored, trace.Action.Name)
					fmt.Fprintf(w, `{"line":1,"trace_id":%q,"status":"accepted","faults":[]}`+"\n", trace.TraceID)
				}))
				defer server.Close()
				away := httptest.NewServer(nil)
				away.Close()
				if out, err := command(t, dead, of.killed, away.URL, spool).CombinedOutput(); err == nil || err.Error() != "signal: killed" {
					t.Fatalf("%v\n%s", err, out)
				}
				if out, err := command(t, next, to.delivers, server.URL, spool).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if !slices.Equal(stored, []string{dead}) {
					t.Errorf("stored: %q", stored)
				}
			})
		}
	}
}

func sorted(faults []schema.Fault) []schema.Fault {
	return slices.SortedFunc(slices.Values(faults), func(a, b schema.Fault) int {
		return strings.Compare(a.Pointer+"\x00"+a.Message, b.Pointer+"\x00"+b.Message)
	})
}
