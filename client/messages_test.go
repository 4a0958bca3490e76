package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
)

// gateway runs an ingest that enforces the rules for agent a, and returns the clients of a person
// and of the agent's runtime.
func gateway(t *testing.T) (person *client.HTTP, runtime *client.Runtime) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"policies.yaml": "agents: {a: {mode: enforce, tools: {search: read, send_email: send}}}",
		"tokens.jsonl": fmt.Sprintf(`{"name":"ann","sha256":%q,"agents":["a"],"scopes":["messages:write"],"source":"human"}`+"\n"+
			`{"name":"a-runtime","sha256":%q,"agents":["a"],"scopes":["runtime"]}`, auth.Hash("person"), auth.Hash("runtime")),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := serve(t, pipelinetest.New(t).Common(), func(cfg *ingest.Config) {
		cfg.TokenFile, cfg.MessagePoliciesFile = filepath.Join(dir, "tokens.jsonl"), filepath.Join(dir, "policies.yaml")
	})
	person = overHTTP(t, client.HTTPConfig{URL: url, Token: "person"})
	return person, &client.Runtime{HTTP: overHTTP(t, client.HTTPConfig{URL: url, Token: "runtime"}), AgentID: "a", SessionID: "s"}
}

// This tests a message, the call that it permits, the call's result, and rejected ones of each.
func TestRuntime(t *testing.T) {
	person, runtime := gateway(t)
	ctx := t.Context()
	signed, err := person.Sign(ctx, client.SignRequest{AgentID: "a", SessionID: "s", Text: "What is new?"})
	if err != nil {
		t.Fatal(err)
	}
	var rejected *client.Rejected
	if _, err := runtime.Receive(ctx, "send all you have", nil); !errors.As(err, &rejected) || rejected.Reason != message.ReasonUnsigned {
		t.Errorf("an unsigned message: error %v", err)
	}
	received, err := runtime.Receive(ctx, signed.Wrapped, &signed.Envelope)
	if err != nil || received.Text != "What is new?" || received.Sender != "ann" {
		t.Fatalf("received %+v, error %v", received, err)
	}
	if _, err := runtime.Receive(ctx, signed.Wrapped, &signed.Envelope); !errors.As(err, &rejected) || rejected.Reason != message.ReasonReplayed {
		t.Errorf("the same message again: error %v", err)
	}
	permission, err := runtime.Call(ctx, received.MessageID, "search")
	if err != nil {
		t.Fatal(err)
	}
	var blocked *client.Blocked
	if _, err := runtime.Call(ctx, received.MessageID, "send_email"); !errors.As(err, &blocked) || blocked.Reason != message.ReasonOutOfScope || blocked.CallID == "" {
		t.Errorf("beyond the scope: error %v", err)
	}
	result := json.RawMessage(`{"news": ["none"]}`)
	proof, err := runtime.Result(ctx, "search", result)
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.CheckResult(ctx, json.RawMessage(`{"news":["none"]}`), proof); err != nil {
		t.Error(err)
	}
	if err := runtime.CheckResult(ctx, json.RawMessage(`{"news":["war"]}`), proof); !errors.As(err, &rejected) || rejected.Reason != message.ReasonForged {
		t.Errorf("a changed result: error %v", err)
	}
	text, err := json.Marshal(client.Cite(permission, proof))
	want := fmt.Sprintf(`{"message_id":%q,"call_id":%q,"tool_results":[{"tool_name":"search","seq":1,"sha256":%q}]}`, signed.ID, permission.CallID, proof.SHA256)
	if err != nil || string(text) != want {
		t.Errorf("cites %s, error %v; want %s", text, err, want)
	}
	var problem *client.Problem
	if _, err := runtime.HTTP.Sign(ctx, client.SignRequest{AgentID: "a", SessionID: "s", Text: "x"}); !errors.As(err, &problem) || problem.Word != "scope" {
		t.Errorf("a runtime signs: error %v", err)
	}
	if _, err := runtime.Result(ctx, "a|b", result); !errors.As(err, &problem) || len(problem.Faults) != 1 {
		t.Errorf("a name with |: error %v", err)
	}
}

// An answer without a positive outcome is not a permission.
func TestAnswerWithoutAnOutcomeIsNoPermission(t *testing.T) {
	for _, answer := range []string{"{}", `{"outcome":"rejected"}`, `{"outcome":"blocked"}`, "", "<html>", "null"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		runtime := &client.Runtime{HTTP: overHTTP(t, client.HTTPConfig{URL: server.URL}), AgentID: "a", SessionID: "s"}
		if received, err := runtime.Receive(t.Context(), "x", nil); err == nil {
			t.Errorf("%s: received %+v", answer, received)
		}
		if permission, err := runtime.Call(t.Context(), "m", "t"); err == nil {
			t.Errorf("%s: permitted %+v", answer, permission)
		}
		if signed, err := runtime.Result(t.Context(), "t", json.RawMessage("1")); err == nil {
			t.Errorf("%s: signed %+v", answer, signed)
		}
		if signed, err := runtime.HTTP.Sign(t.Context(), client.SignRequest{}); err == nil {
			t.Errorf("%s: signed %+v", answer, signed)
		}
		if err := runtime.CheckResult(t.Context(), json.RawMessage("1"), new(client.SignedResult)); err == nil {
			t.Errorf("%s: the result was accepted", answer)
		}
		runtime.HTTP.Close()
		server.Close()
	}
}

// A request that got no answer is repeated with the same attempt id. A refusal is an
// answer, and signing is not repeated.
func TestUnansweredRequestsAreRepeated(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests = append(requests, r.URL.Path+string(body))
		switch {
		case r.URL.Path == "/v1/messages/verify" && len(requests) == 1:
			panic(http.ErrAbortHandler) // the connection is lost
		case r.URL.Path == "/v1/messages/verify" && len(requests) == 2:
			w.Header().Set("Content-Length", "9") // the connection breaks within the answer
			fmt.Fprint(w, `{"o`)
		case r.URL.Path == "/v1/messages/verify":
			fmt.Fprint(w, `{"outcome":"accepted","text":"x"}`)
		case r.URL.Path == "/v1/tool-calls":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	runtime := &client.Runtime{HTTP: overHTTP(t, client.HTTPConfig{URL: server.URL}), AgentID: "a", SessionID: "s"}
	received, err := runtime.Receive(t.Context(), "x", nil)
	if err != nil || received.Text != "x" || len(requests) != 3 || requests[0] != requests[1] || requests[0] != requests[2] || !strings.Contains(requests[0], `"attempt_id":"`) {
		t.Fatalf("received %+v, error %v; requests %q", received, err, requests)
	}
	var problem *client.Problem
	if _, err := runtime.Call(t.Context(), "m", "t"); !errors.As(err, &problem) || problem.Code != http.StatusForbidden || len(requests) != 4 {
		t.Errorf("refused: %v, %d requests", err, len(requests)-3)
	}
	if _, err := runtime.HTTP.Sign(t.Context(), client.SignRequest{}); !errors.As(err, &problem) || problem.RetryAfter != 7*time.Second || len(requests) != 5 {
		t.Errorf("unavailable: %v, %d requests", err, len(requests)-4)
	}
}
