package ingest

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/reading"
	"github.com/plumbline/plumbline/schema/openapi"
)

// withReading adds the reading side, without a database.
func withReading(t testing.TB) func(*Config, *server) {
	return wired(func(s *server) {
		reader, err := reading.Open(t.Context(), reading.Default(), "default", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s.read(reader)
	})
}

// Every route is in the OpenAPI document with its scope, and the document has no other one.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	agentCard := filepath.Join(t.TempDir(), "agent-card.json")
	if err := os.WriteFile(agentCard, []byte(`{"name":"shop","url":"https://shop.example"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, configured(func(cfg *Config) { cfg.A2AAgentCards = []string{"did:web:shop.example=" + agentCard} }), withReading(t))
	var document struct {
		Paths map[string]map[string]struct {
			Security []map[string][]string `json:"security"`
		} `json:"paths"`
	}
	served := r.send("GET", "/v1/openapi.json", nil)
	if err := json.Unmarshal([]byte(served.text), &document); err != nil || served.text != string(openapi.Text) {
		t.Fatalf("%d %.200s, %v", served.code, served.text, err)
	}
	var mounted, described []string
	for _, route := range r.server.router.Routes() {
		mounted = append(mounted, route.Pattern+" "+string(route.Scope))
	}
	for path, operations := range document.Paths {
		for method, o := range operations {
			scope := ""
			if len(o.Security) > 0 {
				scope = o.Security[0]["token"][0]
			}
			described = append(described, strings.ToUpper(method)+" "+path+" "+scope)
		}
	}
	slices.Sort(mounted)
	slices.Sort(described)
	if !slices.Equal(mounted, described) {
		t.Errorf("mounted are\n%s\ndescribed are\n%s", strings.Join(mounted, "\n"), strings.Join(described, "\n"))
	}
}

// An ingest without a database says so to readers, after it has checked their token.
func TestWithoutADatabaseReadersAreTold(t *testing.T) {
	r := start(t, withReading(t), withTokens(t, "reader did:web:a traces:read,bundles:read"))
	for _, path := range []string{"/v1/traces", "/v1/traces/t-1", "/v1/bundles", "/v1/bundles/" + strings.Repeat("0", 64)} {
		answer := r.send("GET", path, nil, "Authorization: Bearer reader")
		if p := answer.problem(t); answer.code != 404 || p.Word != "no_database" || !strings.Contains(p.Message, "clickhouse_dsn") {
			t.Errorf("%s: %d %s", path, answer.code, answer.text)
		}
		if answer := r.send("GET", path, nil); answer.code != 401 || requests.Problem(t, 401, answer.text).Word != "token" {
			t.Errorf("%s without a token: %d %s", path, answer.code, answer.text)
		}
	}
}
