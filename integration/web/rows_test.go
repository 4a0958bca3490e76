package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/requests"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
	console "github.com/plumbline/plumbline/web"
)

// hostile is a text that is markup, script and half a link to those who do not expect it, reverses what follows it, and is
// too long for a line.
var hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script></td></table></main>"'javascript:alert(1) https://evil.example/` +
	"\u202e" + strings.Repeat("W", 120)

// site is a console on a database of its own.
type site struct {
	t    *testing.T
	url  string
	dsn  string
	rows *store.Store
	dir  string // of the bundles

	traces      []*schema.Trace
	unknownCard bool // of the traces that are stored next, so they are not judged
}

// startSite serves a console. Each token is "token agents scopes"; without tokens everyone may read.
func startSite(t *testing.T, tokens ...string) *site {
	t.Helper()
	if os.Getenv("PLUMBLINE_CHROMIUM") == "" {
		t.Skip("PLUMBLINE_CHROMIUM names no Chromium: run make test-web")
	}
	s := &site{t: t, dir: t.TempDir(), dsn: enginetest.Migrated(t, database.Migrate)}
	cfg := console.Default()
	cfg.ClickHouse.DSN, cfg.LettersDSN, cfg.BundleDir = s.dsn, s.dsn, s.dir
	cfg.QueryTime = 5 * time.Minute      // the machine may be busy
	cfg.IngestURL = "http://127.0.0.1:1" // nobody sends an act: the forms are only shown
	if len(tokens) > 0 {
		cfg.TokenFile = requests.TokenFile(t, tokens...)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + listener.Addr().String()
	if s.rows, err = store.Open(t.Context(), store.Config{DSN: s.dsn, Tenant: "default", Stage: "test"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.must(s.rows.Close()) })
	env := pipelinetest.Env(t, "console")
	pipelinetest.Go(t, func(ctx context.Context) error { return console.ServeOn(ctx, listener, &cfg, env) })
	return s
}

// counted waits until the fleet's page has a text: it may have figures that are some seconds old.
func (s *site) counted(text string) {
	s.t.Helper()
	for page := ""; !strings.Contains(page, text); time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(s.url + "/")
		s.must(err)
		read, err := io.ReadAll(answer.Body)
		s.must(errors.Join(err, answer.Body.Close()))
		page = string(read)
	}
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// tab opens a tab that may ask the console alone.
func (s *site) tab() *tab { return openTab(s.t, s.url+"/") }

// object is a JSON object.
type object map[string]any

// judged stores n traces of an agent's session, received one minute after the other until now, with a verdict each. The
// agent writes text wherever it may write.
func (s *site) judged(agent, session, text string, n int) {
	s.t.Helper()
	b := s.rows.NewTraceBatch()
	for i := range n {
		received := time.Now().Add(-time.Duration(n-1-i) * time.Minute)
		raw, err := json.Marshal(object{
			"trace_id": fmt.Sprint("t-", i, text), "agent_id": agent, "card_id": "c" + text, "timestamp": received.UTC(),
			"action": object{"type": "execute", "name": "search" + text, "category": "bounded", "target": object{"type": text, "identifier": text}, "parameters": object{text: text}},
			"decision": object{"selected": "a" + text, "selection_reasoning": text, "values_applied": []string{text}, "confidence": .5,
				"alternatives_considered": []object{{"option_id": "a" + text, "description": text, "score": .5, "flags": []string{text}}, {"option_id": "b", "description": "wait"}}},
			"escalation": object{"evaluated": true, "required": true, "reason": text, "escalation_id": text, "escalation_status": "approved",
				"triggers_checked": []object{{"trigger": text, "matched": true}}, "principal_response": object{"decision": text, "timestamp": received.UTC(), "conditions": []string{text}}},
			"context": object{"session_id": session, "environment": object{text: text}, "metadata": object{"sequence_number": i + 1, "execution": object{"tool_name": text, "inputs": object{text: text}, "cost_cents": 2, "error": text}}},
		})
		s.must(err)
		trace, err := schema.Admit("", raw)
		s.must(err)
		s.traces = append(s.traces, trace)
		problem := []schema.Remark{{Type: "UNBOUNDED_ACTION", Severity: schema.SeverityCritical, Description: "what is wrong: " + text, Field: "/action/name/" + text}}
		status, recommended := schema.StatusJudged, schema.Deny
		if s.unknownCard {
			status, recommended, problem = schema.StatusCardUnknown, schema.Review, []schema.Remark{}
		}
		b.Add(trace, store.Meta{Received: received, StreamCreated: time.Unix(1, 0), Sequence: uint64(len(s.traces)), SessionID: session, RetainUntil: time.Now().Add(24 * time.Hour)},
			&schema.Verdict{Status: status, RecommendedAction: recommended, AgentID: agent, TraceID: trace.TraceID, CardID: trace.CardID, Timestamp: received,
				Violations: problem, Warnings: []schema.Remark{{Type: "low_behavioral_similarity", Description: text}}, Findings: []schema.Remark{{Type: "DENIED_BUT_ACTED", Severity: schema.SeverityHigh, Description: text, Field: text}},
				Metadata: schema.Metadata{AlgorithmVersion: "1.2.0", EngineVersion: "1", Profile: "spec", TraceDigest: trace.Digest, ChecksPerformed: []string{"autonomy"}, Similarity: schema.SimilarityDetails{Similarities: []float64{1}}}})
	}
	s.must(s.rows.InsertTraces(s.t.Context(), b))
}

// registered stores two cards of an agent with this text in them, the second one in force.
func (s *site) registered(agent, text string) {
	s.t.Helper()
	for i, id := range []string{"former" + text, "c" + text} {
		issued := time.Now().Add(time.Duration(i-2) * 24 * time.Hour)
		raw, err := json.Marshal(object{"aap_version": "0.1.0", "card_id": id, "agent_id": agent, "issued_at": issued.UTC().Format(time.RFC3339),
			"principal":         object{"type": "human", "identifier": text, "relationship": "delegated_authority"},
			"values":            object{"declared": []string{text}, "definitions": object{text: object{"name": text, "description": text}}},
			"autonomy_envelope": object{"bounded_actions": []string{text, fmt.Sprint("action-", i)}, "escalation_triggers": []object{}},
			"audit_commitment":  object{"trace_format": "ap-trace-v1", "retention_days": 90, "queryable": false}})
		s.must(err)
		card, err := schema.DecodeCard(raw)
		s.must(err)
		s.must(s.rows.InsertCards(s.t.Context(), issued, []*schema.Card{card}))
	}
}

// drifted stores what drift measured of the stored traces, the first half of which is the baseline, and an open alert.
func (s *site) drifted(agent, session, text string) {
	s.t.Helper()
	const engine = "plumbline-drift/10 (x)"
	var points []store.DriftPoint
	now, low := time.Now(), .1
	for i, trace := range s.traces {
		p := store.DriftPoint{AgentID: agent, CardID: trace.CardID, TraceID: trace.TraceID, TraceDigest: trace.Digest, EngineVersion: engine, EventTime: trace.Timestamp, Received: trace.Timestamp,
			RetainUntil: store.RetainUntil(now.Add(time.Hour)), StreamCreated: time.Unix(1, 0), Sequence: uint64(i + 1), SessionID: session, Status: "baseline", Threshold: .3, Mode: "sessions"}
		if i >= len(s.traces)/2 {
			p.Status, p.Similarity = "normal", &low
		}
		points = append(points, p)
	}
	ctx, card := s.t.Context(), s.traces[0].CardID
	s.must(s.rows.InsertDriftPoints(ctx, points))
	s.must(s.rows.InsertDriftStates(ctx, []store.DriftState{{AgentID: agent, CardID: card, StreamCreated: time.Unix(1, 0), Version: 1, LastEvent: now}}))
	s.must(s.rows.InsertDriftBaselines(ctx, []store.DriftBaseline{{AgentID: agent, CardID: card, BaselineID: schema.DigestOf([]byte(agent)), Mode: "sessions", EngineVersion: engine,
		FormedAt: s.traces[len(s.traces)/2].Timestamp, Received: now, Traces: uint32(len(s.traces) / 2)}}))
	s.must(s.rows.InsertDriftAlerts(ctx, []store.DriftAlert{{DriftAlert: schema.DriftAlert{AlertID: schema.DigestOf([]byte(agent)), AlertType: "drift_detected", AgentID: agent, CardID: card,
		DetectionTimestamp: now, OpenedAt: now.Add(-2 * time.Minute), State: "opened", Revision: 1, TraceIDs: []string{text}, LastTraceID: text, Count: 3, Summary: "it does " + text, EngineVersion: engine,
		Analysis: schema.DriftAnalysis{SimilarityScore: low, SustainedTraces: 3, Threshold: .3, DriftDirection: "value_drift"}}, Received: now, RetainUntil: now.Add(time.Hour)}}))
}

// sealed stores a bundle of a session with this text in it, and a verdict on it, and returns the bundle's SHA-256.
func (s *site) sealed(agent, session, text string) string {
	s.t.Helper()
	bundle, now := bundleOf(s.t, text, 3), time.Now()
	name := schema.DigestOf(bundle).String() + ".tar.gz"
	s.must(os.WriteFile(filepath.Join(s.dir, name), bundle, 0o600))
	s.must(s.rows.InsertBundles(s.t.Context(), []store.Bundle{{AgentID: agent, SessionID: session, Part: 1, SHA256: schema.DigestOf(bundle), LastPart: true, Path: name, Bytes: uint64(len(bundle)), ActionCount: 5,
		TraceCount: 2, FirstEvent: now, LastEvent: now, LastSequence: 1 << 40, TraceIDs: []string{}, KeyID: "key-1", Reason: "ended", ExportedAt: now}}))
	s.must(s.rows.InsertSessionVerdicts(s.t.Context(), []*schema.SessionVerdict{{AgentID: agent, SessionID: session, Part: 1, LastPart: true, Timestamp: now, RecommendedAction: schema.Review, Traces: schema.SessionTraces{Total: 2, Verified: 1},
		Findings: []schema.SessionFinding{{Type: schema.TraceGap, Severity: schema.SeverityMedium, Description: "the session misses " + text, TraceID: text}},
		Metadata: schema.SessionMetadata{AlgorithmVersion: "1", EngineVersion: "1", Profile: "spec", ChecksPerformed: []string{"gaps"}}}}))
	return schema.DigestOf(bundle).String()
}

// refused stores a dead letter with this text in it, and returns the SHA-256 of its bytes.
func (s *site) refused(agent, text string) string {
	s.t.Helper()
	raw, err := json.Marshal(object{"trace_id": text, text: text})
	s.must(err)
	letter := store.DeadLetter{Stage: "verifier", OriginSequence: 1, Received: time.Now(), RetainUntil: store.RetainUntil(time.Now().Add(time.Hour)), AgentID: agent, TraceID: text, Subject: "aap.trace." + text,
		Reason: "invalid_trace", Raw: raw}
	letter.SetFaults([]schema.Fault{{Pointer: "/" + text, Message: "what is wrong: " + text}, {Message: text}})
	s.must(s.rows.InsertDeadLetters(s.t.Context(), []store.DeadLetter{letter}))
	return schema.DigestOf(letter.Raw).String()
}

// held stores that a session of an agent is held.
func (s *site) held(agent, session, reason string) {
	s.t.Helper()
	s.must(s.rows.InsertSessions(s.t.Context(), []store.Session{{AgentID: agent, SessionID: session, Version: 1, Status: store.SessionHeld, Reason: reason}}))
}
