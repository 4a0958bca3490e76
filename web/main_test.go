package web

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

func TestMain(m *testing.M) { enginetest.MainWithoutLeaks(m) }

// rig is a console on a database of its own.
type rig struct {
	t       testing.TB
	dsn     string
	cluster string       // of the tables; empty for one server
	rows    *store.Store // of tenant default
	url     string

	server  *server
	digests map[string]schema.Digest // of the traces, by their ids
	records map[string]string        // the traces' bytes

	tokens string // file
	next   uint64 // stream sequence of the next trace
}

// start serves the console until the test ends. Each token is "token agents scopes"; without tokens everyone may
// read. change alters the configuration.
func start(t testing.TB, change func(*Config), tokens ...string) *rig {
	t.Helper()
	r := &rig{t: t, next: 1, digests: map[string]schema.Digest{}, records: map[string]string{}}
	if enginetest.Sharded() { // make shards
		r.cluster = enginetest.Cluster
		r.dsn = enginetest.MigratedShards(t, database.Cluster{Name: r.cluster, WithoutKeeper: true}.Migrate)[0]
	} else {
		r.dsn = enginetest.Migrated(t, database.Migrate)
	}
	r.rows = r.tenant("default")
	cfg := Default()
	cfg.ClickHouse.DSN, cfg.ClickHouse.Cluster = r.dsn, r.cluster
	cfg.QueryTime = time.Minute // the machine may be busy
	if change != nil {
		change(&cfg)
	}
	if faults := cfg.Validate(); len(faults) > 0 {
		t.Fatal(faults)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	if len(tokens) > 0 {
		r.tokens = requests.TokenFile(t, tokens...)
	}
	keeper, err := auth.Open(r.tokens, "127.0.0.1:0", log)
	if err != nil {
		t.Fatal(err)
	}
	env := service.NewEnv("console", "test", log, obs.NewRegistry("test"), new(obs.Health))
	env.Started()
	s, err := newServer(&cfg, env, keeper)
	if err != nil {
		t.Fatal(err)
	}
	s.fleets.fresh, s.services.fresh, s.textTime = true, true, time.Minute
	r.server = s
	served := httptest.NewServer(s.handler())
	r.url = served.URL
	t.Cleanup(func() {
		served.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// tenant opens the rig's database for a tenant.
func (r *rig) tenant(name string) *store.Store {
	r.t.Helper()
	s, err := store.Open(r.t.Context(), store.Config{DSN: r.dsn, Tenant: name, Stage: "test", Cluster: r.cluster})
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

// visitor is a browser without a screen: it keeps cookies, and follows redirects.
type visitor struct {
	t      testing.TB
	url    string
	client *http.Client
}

// visitor returns a browser that has logged in with a token, or that needs none.
func (r *rig) visitor(token string) *visitor {
	r.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	transport := &http.Transport{}
	r.t.Cleanup(transport.CloseIdleConnections)
	v := &visitor{r.t, r.url, &http.Client{Jar: jar, Transport: transport}}
	if token != "" {
		v.post("/login", url.Values{"token": {token}})
	}
	return v
}

// do makes a request, and returns its code and text. headers are names and values in turn.
func (v *visitor) do(method, path string, form url.Values, headers ...string) (int, string) {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := v.client.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, strings.ReplaceAll(string(text), "<wbr>", "") // where a name may break
}

func (v *visitor) get(path string, headers ...string) (int, string) {
	v.t.Helper()
	return v.do(http.MethodGet, path, nil, headers...)
}

func (v *visitor) post(path string, form url.Values, headers ...string) (int, string) {
	v.t.Helper()
	return v.do(http.MethodPost, path, form, headers...)
}

// page requires a page that has all of these texts, and returns it.
func (v *visitor) page(path string, texts ...string) string {
	v.t.Helper()
	code, text := v.get(path)
	if code != http.StatusOK {
		v.t.Fatalf("%s: %d %s", path, code, text)
	}
	for _, want := range texts {
		if !strings.Contains(text, want) {
			v.t.Errorf("%s has no %q:\n%s", path, want, withoutCharts(text))
		}
	}
	return text
}

// withoutCharts shortens a page for the output of a test.
func withoutCharts(page string) string {
	return regexp.MustCompile(`(?s)<svg.*?</svg>`).ReplaceAllString(page, "<svg/>")
}

// fact is one trace that a test stores.
type fact struct {
	agent, trace, session string
	ago                   time.Duration // since the broker received it
	at                    time.Time     // when it did, instead of ago
	text                  string        // of the reasoning
	action, value         string        // search and honesty where empty
	violations, findings  []string      // types
	benefit, execution    string        // JSON; empty: none

	record string        // the whole trace, instead of one that is made of the above
	judged time.Duration // after its receipt; 200 ms where zero
	engine string        // 1 where empty

	unknown bool // its card is, so it is not judged
}

// put stores facts of a tenant.
func (r *rig) put(s *store.Store, facts ...fact) {
	r.t.Helper()
	b := s.NewTraceBatch()
	for _, f := range facts {
		received := time.Now().Add(-f.ago)
		if !f.at.IsZero() {
			received = f.at
		}
		record := fmt.Sprintf(`{"trace_id":%q,"agent_id":%q,"card_id":"ac-1","timestamp":%q,"action":{"type":"execute","name":%q,"category":"bounded"},`+
			`"decision":{"alternatives_considered":[{"option_id":"b","description":"wait","scoring_factors":{"principal_benefit":1}},{"option_id":"a","description":"search"%s}],"selected":"a","selection_reasoning":%q,"values_applied":[%q]},"context":{"session_id":%q%s}}`,
			f.trace, f.agent, received.UTC().Format(time.RFC3339Nano), cmp.Or(f.action, "search"), member(`,"scoring_factors":{"principal_benefit":%s}`, f.benefit), f.text, cmp.Or(f.value, "honesty"), f.session,
			member(`,"metadata":{"execution":%s}`, f.execution))
		record = cmp.Or(f.record, record)
		r.records[f.trace] = record
		t, err := schema.Admit("", []byte(record))
		if err != nil {
			r.t.Fatal(err)
		}
		v := &schema.Verdict{Verified: len(f.violations) == 0, Status: schema.StatusJudged, RecommendedAction: schema.Proceed, AgentID: f.agent, TraceID: f.trace, CardID: "ac-1",
			Timestamp: received.Add(cmp.Or(f.judged, 200*time.Millisecond)), Violations: remarks(f.violations, f.text), Warnings: []schema.Remark{}, Findings: remarks(f.findings, f.text),
			Metadata: schema.Metadata{AlgorithmVersion: "1.2.0", EngineVersion: cmp.Or(f.engine, "1"), Profile: "spec", CardDigest: schema.DigestOf([]byte("card")), TraceDigest: t.Digest,
				ChecksPerformed: []string{"autonomy"}, Similarity: schema.SimilarityDetails{Similarities: []float64{1}}}}
		if f.unknown {
			v.Status, v.RecommendedAction, v.Metadata.CardDigest = schema.StatusCardUnknown, schema.Review, schema.Digest{}
		}
		b.Add(t, store.Meta{Received: received, StreamCreated: time.Unix(1, 0), Sequence: r.next, SessionID: schema.SessionID(t), RetainUntil: time.Now().Add(90 * 24 * time.Hour)}, v)
		r.next++
		r.digests[f.trace] = t.Digest
	}
	if err := s.InsertTraces(r.t.Context(), b); err != nil {
		r.t.Fatal(err)
	}
}

// member returns a member of an object, unless its value is empty.
func member(format, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf(format, value)
}

func remarks(types []string, text string) []schema.Remark {
	all := []schema.Remark{}
	for _, kind := range types {
		all = append(all, schema.Remark{Type: kind, Severity: schema.SeverityCritical, Description: text, Field: text})
	}
	return all
}

// alert stores an open alert of drift for each summary.
func (r *rig) alert(s *store.Store, agent string, summaries ...string) {
	r.t.Helper()
	opened := time.Now().Add(-10 * time.Minute)
	var alerts []store.DriftAlert
	for _, summary := range summaries {
		alerts = append(alerts, store.DriftAlert{DriftAlert: schema.DriftAlert{
			AlertID: schema.DigestOf([]byte(agent + summary)), AlertType: "drift_detected", AgentID: agent, CardID: "ac-1", DetectionTimestamp: opened, OpenedAt: opened,
			State: "opened", Revision: 1, TraceIDs: []string{"t"}, LastTraceID: summary, Count: 3, Summary: summary, EngineVersion: "plumbline-drift/10 (x)",
			Analysis: schema.DriftAnalysis{SimilarityScore: .2, SustainedTraces: 3, Threshold: .3, DriftDirection: "value_drift"}},
			Received: opened, RetainUntil: time.Now().Add(90 * 24 * time.Hour)})
	}
	if err := s.InsertDriftAlerts(r.t.Context(), alerts); err != nil {
		r.t.Fatal(err)
	}
}
