package reading

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { enginetest.MainWithoutLeaks(m) }

// rig is a reading side with a database of its own.
type rig struct {
	t       testing.TB
	dsn     string
	cluster string       // of the tables; empty for one server
	rows    *store.Store // of tenant default
	reading *Service
	url     string
	next    uint64 // stream sequence of the next trace
}

// start serves the routes until the test ends. Each token is "token agents scopes"; without tokens
// everyone may read. change alters the configuration.
func start(t testing.TB, change func(*Config), tokens ...string) *rig {
	t.Helper()
	r := &rig{t: t, next: 1}
	if enginetest.Sharded() { // make shards
		r.cluster = enginetest.Cluster
		r.dsn = enginetest.MigratedShards(t, database.Cluster{Name: r.cluster, WithoutKeeper: true}.Migrate)[0]
	} else {
		r.dsn = enginetest.Migrated(t, database.Migrate)
	}
	r.rows = r.tenant("default")
	cfg := Default()
	cfg.ClickHouse = ClickHouse{DSN: r.dsn, Cluster: r.cluster}
	if change != nil {
		change(&cfg)
	}
	if faults := append(cfg.Validate(), cfg.FileFaults()...); len(faults) > 0 {
		t.Fatal(faults)
	}
	file, log := "", slog.New(slog.DiscardHandler)
	if len(tokens) > 0 {
		file = requests.TokenFile(t, tokens...)
	}
	keeper, err := auth.Open(file, "127.0.0.1:0", log)
	if err != nil {
		t.Fatal(err)
	}
	if r.reading, err = Open(t.Context(), cfg, "default", log); err != nil {
		t.Fatal(err)
	}
	router := request.New(request.Config{Keeper: keeper, Memory: request.MinShare, Timeout: time.Minute, Log: log, Metrics: prometheus.NewRegistry()})
	r.reading.AddRoutes(router)
	server := httptest.NewServer(problem.Routed(router.Mux, ""))
	r.url = server.URL
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := r.reading.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// tenant opens the rig's database for a tenant.
func (r *rig) tenant(name string) *store.Store {
	r.t.Helper()
	s, err := store.Open(r.t.Context(), store.Config{DSN: r.dsn, Cluster: r.cluster, Tenant: name, Stage: "test"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return s
}

// get makes a request, and returns its code and text.
func (r *rig) get(path string, headers ...string) (int, string) {
	r.t.Helper()
	code, _, text := requests.Send(r.t, http.DefaultClient, http.MethodGet, r.url+path, nil, headers...)
	return code, text
}

// refused requires a problem.
func (r *rig) refused(path string, code int, word string, headers ...string) problem.Problem {
	r.t.Helper()
	got, text := r.get(path, headers...)
	p := requests.Problem(r.t, got, text)
	if got != code || p.Word != word {
		r.t.Errorf("%s: %d %s, want %d %s", path, got, text, code, word)
	}
	return p
}

// tracePage is an answer of the routes of traces.
type tracePage struct {
	Traces []struct {
		Trace   json.RawMessage `json:"trace"`
		AgentID string          `json:"agent_id"`
		TraceID string          `json:"trace_id"`
		Digest  schema.Digest   `json:"digest"`
		Altered bool            `json:"altered"`

		StreamSequence uint64 `json:"stream_sequence"`

		Verdict *schema.Verdict `json:"verdict"`
	} `json:"traces"`
	NextCursor string `json:"next_cursor"`
}

// ids returns the ids of the traces, and requires that the bytes are those of their digests.
func (p *tracePage) ids(t testing.TB) (ids []string) {
	t.Helper()
	for _, trace := range p.Traces {
		if schema.DigestOf(trace.Trace) != trace.Digest || trace.Altered {
			t.Errorf("the bytes of trace %s are not those of its digest", trace.TraceID)
		}
		ids = append(ids, trace.TraceID)
	}
	return ids
}

// traces reads a page of traces.
func (r *rig) traces(path string, headers ...string) (page tracePage) {
	r.t.Helper()
	code, text := r.get(path, headers...)
	if err := json.Unmarshal([]byte(text), &page); err != nil || code != http.StatusOK {
		r.t.Fatalf("%s: %d %s, %v", path, code, text, err)
	}
	return page
}

// at is the time of the first trace.
var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// trace returns the record of a trace, so many seconds after the first one. It has a space that an
// encoder would remove.
func trace(t testing.TB, agent, id, session string, seconds float64, text string) *schema.Trace {
	t.Helper()
	record := fmt.Sprintf(`{"trace_id": %q,"agent_id":%q,"card_id":"ac-1","timestamp":%q,"action":{"type":"execute","name":"search","category":"bounded"},`+
		`"decision":{"alternatives_considered":[{"option_id":"a","description":"search"}],"selected":"a","selection_reasoning":%q,"values_applied":["honesty"]},`+
		`"context":{"session_id":%q}}`, id, agent, at.Add(time.Duration(seconds*float64(time.Second))).Format(time.RFC3339Nano), text, session)
	admitted, err := schema.Admit("", []byte(record))
	if err != nil {
		t.Fatal(err)
	}
	return admitted
}

// verdictOn returns a verdict with violations of these types.
func verdictOn(trace *schema.Trace, violations ...string) *schema.Verdict {
	v := &schema.Verdict{
		Verified: len(violations) == 0, Status: schema.StatusJudged, RecommendedAction: schema.Proceed, AgentID: trace.AgentID, TraceID: trace.TraceID, CardID: trace.CardID,
		Timestamp: at.Add(time.Hour), Violations: []schema.Remark{}, Warnings: []schema.Remark{}, Findings: []schema.Remark{},
		Metadata: schema.Metadata{AlgorithmVersion: "1.2.0", EngineVersion: "1", Profile: "spec", CardDigest: schema.DigestOf([]byte("card")), TraceDigest: trace.Digest,
			ChecksPerformed: []string{"autonomy"}, Similarity: schema.SimilarityDetails{Similarities: []float64{1}}},
	}
	for _, kind := range violations {
		v.RecommendedAction = schema.Deny
		v.Violations = append(v.Violations, schema.Remark{Type: kind, Severity: schema.SeverityHigh, Description: "planted"})
	}
	return v
}

// store writes a trace with a verdict that has these violations.
func (r *rig) store(s *store.Store, trace *schema.Trace, violations ...string) {
	r.t.Helper()
	r.storeFor(s, trace, verdictOn(trace, violations...), 90*24*time.Hour)
}

// storeFor writes a trace that is kept for a time from now.
func (r *rig) storeFor(s *store.Store, trace *schema.Trace, v *schema.Verdict, kept time.Duration) {
	r.t.Helper()
	b := s.NewTraceBatch()
	b.Add(trace, store.Meta{Received: at.Add(time.Hour + time.Duration(r.next)*time.Second), StreamCreated: at, Sequence: r.next,
		SessionID: schema.SessionID(trace), RetainUntil: time.Now().Add(kept)}, v)
	r.next++
	if err := s.InsertTraces(r.t.Context(), b); err != nil {
		r.t.Fatal(err)
	}
}
