// Package requests makes HTTP requests to a service under test, for the tests of packages ingest
// and api.
//
// It owns what these tests send and how they read an answer: headers, token files, a card, a problem.
// It compares every answer with the OpenAPI document (schema/openapi). It starts no service; each
// package's own tests do.
package requests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/problem"
)

// Send makes a request and reads its answer, which the OpenAPI document must describe. Headers are
// given as "Name: value".
func Send(t testing.TB, client *http.Client, method, url string, body io.Reader, headers ...string) (code int, header http.Header, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			request.Host = value
			continue
		}
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	Describes(t, request, answer.StatusCode, answer.Header, string(read))
	return answer.StatusCode, answer.Header, string(read)
}

// Problem decodes an answer as a problem.
func Problem(t testing.TB, code int, text string) (p problem.Problem) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.Word == "" || p.Message == "" {
		t.Fatalf("the answer %d %q is not a problem: %v", code, text, err)
	}
	return p
}

// TokenFile writes a token file. Each entry is "token agents scopes", with comma-separated lists.
func TokenFile(t testing.TB, entries ...string) (path string) {
	t.Helper()
	var text bytes.Buffer
	for i, entry := range entries {
		fields := strings.Fields(entry)
		if err := json.NewEncoder(&text).Encode(map[string]any{
			"name": fmt.Sprint("entry-", i), "sha256": auth.Hash(fields[0]),
			"agents": strings.Split(fields[1], ","), "scopes": strings.Split(fields[2], ","),
		}); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), "tokens.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Card returns a valid card.
func Card(agent, id string) string {
	return fmt.Sprintf(`{"aap_version":"0.1.0","card_id":%q,"agent_id":%q,"issued_at":"2026-01-01T00:00:00Z",`+
		`"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":["honesty"]},`+
		`"autonomy_envelope":{"bounded_actions":["search"],"escalation_triggers":[]},`+
		`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`, id, agent)
}
