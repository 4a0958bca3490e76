package accounts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/accounts"
	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/client/overnats"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/drift"
	"github.com/plumbline/plumbline/pipeline/exporter"
	"github.com/plumbline/plumbline/pipeline/ingest"
	"github.com/plumbline/plumbline/pipeline/messages"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/reconcile"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/pipeline/webhook"
	"github.com/plumbline/plumbline/schema"
)

const objectStore = "bundles"

// pipeline is all stages, on a server where each has its own user.
type pipeline struct {
	*site
	rig      *pipelinetest.Rig
	dir      string
	url      string // of ingest
	policies string
	alerts   chan string // ids of the alerts that the endpoint of webhooks received
	serve    map[stream.Role]func(context.Context, *service.Env) error
	stages   []*pipelinetest.Stage
}

func startPipeline(t *testing.T) *pipeline {
	p := &pipeline{
		site: serve(t, accounts.Config{Agents: []string{"a", "b"}, Use: stream.AgentUse{Ledgers: true, Handshakes: true}, ObjectStore: objectStore}),
		dir:  t.TempDir(),
	}
	p.rig = pipelinetest.NewOn(t, p.broker(stream.RoleOperator))
	p.policies = filepath.Join(p.dir, "policies.yaml")
	p.ingest(t)
	judging := verifier.Default()
	judging.Common, judging.ClickHouse, judging.MessagePoliciesFile = p.common(stream.RoleVerifier), p.rig.ClickHouse(), p.policies
	watching := drift.Default()
	watching.Common, watching.ClickHouse, watching.Lateness = p.common(stream.RoleDrift), p.rig.ClickHouse(), 50*time.Millisecond
	sealing := exporter.Default()
	sealing.Common, sealing.ClickHouse, sealing.DataDir, sealing.Every = p.common(stream.RoleExporter), p.rig.ClickHouse(), p.dir, 50*time.Millisecond
	sealing.Copies.ObjectStore = objectStore
	p.alerts = make(chan string, 1000)
	hooks := webhook.Default()
	hooks.Common, hooks.WebhooksFile = p.common(stream.RoleWebhooks), p.endpoint(t)
	p.serve = map[stream.Role]func(context.Context, *service.Env) error{
		stream.RoleWebhooks: func(ctx context.Context, env *service.Env) error { return webhook.Serve(ctx, &hooks, env) },
		stream.RoleVerifier: func(ctx context.Context, env *service.Env) error { return verifier.Serve(ctx, &judging, env) },
		stream.RoleDrift:    func(ctx context.Context, env *service.Env) error { return drift.Serve(ctx, &watching, env) },
		stream.RoleExporter: func(ctx context.Context, env *service.Env) error { return exporter.Serve(ctx, &sealing, env) },
	}
	for role, serve := range p.serve {
		p.run(t, role, serve)
	}
	return p
}

// endpoint starts a receiver of webhooks, which refuses one alert at first, and returns the file that names it.
func (p *pipeline) endpoint(t *testing.T) string {
	var refused atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusBadRequest) // with one attempt the alert is given up, in the ledger
			return
		}
		p.alerts <- r.Header.Get(webhook.HeaderID)
	}))
	t.Cleanup(receiver.Close)
	secret, list := filepath.Join(p.dir, "webhook.secret"), filepath.Join(p.dir, "webhooks.yaml")
	for name, text := range map[string]string{
		secret: webhook.NewSecret().Text(),
		list:   fmt.Sprintf("endpoints: [{name: here, url: %q, secret_file: %q, attempts: 1}]", receiver.URL, secret),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// run starts a stage and waits until it is ready.
func (p *pipeline) run(t *testing.T, role stream.Role, serve func(context.Context, *service.Env) error) {
	env := pipelinetest.Env(t, string(role))
	p.stages = append(p.stages, pipelinetest.Go(t, func(ctx context.Context) error { return serve(ctx, env) }))
	pipelinetest.Await(t, string(role)+" to be ready", func() bool { return env.Health.Readiness().Ready })
}

func (p *pipeline) common(role stream.Role) config.Common {
	common, broker := p.rig.Common(), p.broker(role)
	common.NATS.NKeySeedFile, common.NATS.InboxPrefix = broker.NKeySeedFile, broker.InboxPrefix
	return common
}

func (p *pipeline) ingest(t *testing.T) {
	for name, text := range map[string]string{
		"policies.yaml": "agents: {a: {mode: enforce, human: [read], tools: {search: read}}}",
		"tokens.jsonl": fmt.Sprintf(`{"name":"ann","sha256":%q,"agents":["a"],"scopes":["messages:write"],"source":"human"}`+"\n"+
			`{"name":"runtime","sha256":%q,"agents":["a"],"scopes":["runtime"]}`+"\n"+
			`{"name":"publisher","sha256":%q,"agents":["*"],"scopes":["traces:write","sessions:write","cards:write","dead-letters:write"]}`,
			auth.Hash("ann"), auth.Hash("runtime"), auth.Hash("publisher")),
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := ingest.Default()
	cfg.Common, cfg.MessagePoliciesFile, cfg.TokenFile = p.common(stream.RoleIngest), p.policies, filepath.Join(p.dir, "tokens.jsonl")
	cfg.HandshakeKeyFile, cfg.MicroKeyFile = filepath.Join(p.dir, "keys", "handshake.key"), filepath.Join(p.dir, "keys", "micro.key")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://" + listener.Addr().String()
	p.run(t, stream.RoleIngest, func(ctx context.Context, env *service.Env) error {
		return ingest.ServeOn(ctx, listener, &cfg, env, nil)
	})
}

// send sends a request with the publisher's token and requires a status code.
func (p *pipeline) send(method, path, kind string, body []byte, code int) string {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Authorization", "Bearer publisher")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != code {
		p.t.Fatalf("%s %s: %d %s, want %d: %v", method, path, answer.StatusCode, text, code, err)
	}
	return string(text)
}

// Each service works with its own user, and the server refuses none of its requests:
// traces over HTTP and NATS, cards, dead letters, messages, handshakes, verdicts,
// drift, bundles, copies, ledgers, check --deep and replay. No service has a right that it
// does not use.
func TestServicesWorkWithTheirRights(t *testing.T) {
	p := startPipeline(t)
	p.overHTTP(t)
	p.overNATS(t)
	for what, from := range map[string]string{
		"traces": "visible_traces HAVING count() = 4 + 16 + 3", "violations": "violations", "dead letters": "visible_dead_letters HAVING count() = 2",
		"points": "visible_drift_points HAVING count() = 4 + 16 + 3", "handshakes": "visible_coherence_results", "messages": "visible_messages HAVING count() >= 3",
		"marks": "visible_dead_letter_marks", "bundles": "visible_bundles", "copies": "visible_bundle_copies", "agents' ledgers": "visible_ledger WHERE ledger = 'b'",
		"findings in the ledger": "visible_ledger WHERE type = 'VERIFY'", "an alert given up": "visible_ledger WHERE type = 'META' AND position(data, 'webhook_given_up') > 0", "claims": "visible_ledger WHERE type = 'CLAIM'", "session findings": "session_findings",
	} {
		pipelinetest.Await(t, what+" in ClickHouse", func() bool { return p.rows(t, from) > 0 })
	}
	pipelinetest.Await(t, "an alert at the endpoint", func() bool { return len(p.alerts) > 0 })
	p.operate(t)
	for _, stage := range p.stages {
		stage.Stop(t)
	}
	p.run(t, stream.RoleExporter, p.serve[stream.RoleExporter]) // it released its lease
	p.stages[len(p.stages)-1].Stop(t)
	p.removeLease(stream.RoleExporter)
	for _, violation := range p.log.violations() {
		t.Error(violation)
	}
	for _, role := range stream.Roles() {
		for _, right := range role.Rights(objectStore).Publish {
			if role != stream.RoleUp && !rare.MatchString(string(role)+" "+right) && !p.log.uses(string(role), right) {
				t.Errorf("%s has the right to publish on %s, and does not need it", role, right)
			}
		}
	}
}

// rare matches the rights for cases that this test does not have: flow control
// of buckets other than cards, the second form of the server's subjects, a reader that starts
// again, a trace that is published again long after it was sealed, a card that a replica
// lacks, several cards that are not in memory, an alert of drift, what replay finds missing.
var rare = regexp.MustCompile(`\$JS\.FC\.KV_[^c]|\$JS\.(FC|ACK)\.\*|CONSUMER\.DELETE\.[A-Z]+\.\*|exporter \$JS\.API\.(DIRECT\.GET\.TRACES|STREAM\.MSG\.GET\.KV_cards)|` +
	`(verifier|drift) \$JS\.API\.DIRECT\.GET\.KV_cards$|drift aap\.alert\.drift|operator (aap\.alert|receipts|deadletter)\.`)

const (
	asJSON  = "application/json"
	asLines = "application/x-ndjson"
)

// overHTTP uses every function of ingest.
func (p *pipeline) overHTTP(t *testing.T) {
	for _, agent := range []string{"a", "b"} {
		p.send(http.MethodPut, "/v1/cards/ac-"+agent, asJSON, pipelinetest.Card("ac-"+agent, agent), http.StatusCreated)
	}
	for i := range 12 { // enough bytes for the server to request confirmation from watchers
		large := bytes.Replace(pipelinetest.Card(fmt.Sprintf("ac-%d", i), "c"), []byte("{"), fmt.Appendf(nil, `{"extensions":{"x":{"y":%q}},`, strings.Repeat("x", 200<<10)), 1)
		p.send(http.MethodPut, fmt.Sprintf("/v1/cards/ac-%d", i), asJSON, large, http.StatusCreated)
	}
	p.send(http.MethodPut, "/v1/cards/ac-a", asJSON, pipelinetest.Card("ac-a", "a"), http.StatusOK)
	trace, bad := pipelinetest.Trace("tr-1", "a", "ac-a", "s", "2026-02-01T00:00:00Z", "search").Data, []byte(`{"trace_id":1}`)
	lines := [][]byte{
		trace, bad,
		annotated("tr-2", "pay", `"sequence_number":1`),
		annotated("tr-3", "search", `"sequence_number":3,"message_auth":`+p.messages(t)),
	}
	for i, reached := 0, map[int]bool{}; len(reached) < subject.Partitions; i++ {
		agent := fmt.Sprintf("n-%d", i)
		if partition := subject.Partition(agent); !reached[partition] {
			reached[partition] = true
			lines = append(lines, pipelinetest.Trace("tr", agent, "ac-unknown", "s", "2026-02-01T00:00:00Z", "search").Data)
		}
	}
	for i := range 3 { // a loop
		raw := pipelinetest.Trace(fmt.Sprint("tr-", i), "l", "ac-unknown", "s", "2026-02-01T00:00:00Z", "search").Data
		lines = append(lines, bytes.Replace(raw, []byte(`"category":"bounded"`), []byte(`"category":"escalation_trigger","target":{"type":"t","identifier":"1"}`), 1))
	}
	p.send(http.MethodPost, "/v1/traces", asLines, bytes.Join(lines, []byte("\n")), http.StatusMultiStatus)
	if answer := p.send(http.MethodPost, "/v1/traces", asLines, trace, http.StatusOK); !strings.Contains(answer, `"duplicate"`) {
		t.Errorf("repeated: %s", answer)
	}
	p.send(http.MethodPost, "/v1/dead-letters/marks", asJSON, fmt.Appendf(nil, `{"mark":"dropped","digests":[%q]}`, schema.DigestOf(bad)), http.StatusAccepted)
	p.send(http.MethodPost, "/v1/sessions/end", asJSON, []byte(`{"agent_id":"a","session_id":"s"}`), http.StatusAccepted)
}

// overNATS uses every right of agents, and then revokes a card.
func (p *pipeline) overNATS(t *testing.T) {
	conn := p.connect("b")
	if _, err := publish(t, conn, "b", nil); err != nil {
		t.Error(err)
	}
	for name, data := range map[string]string{subject.Trace("b"): "{}", subject.Ledger("b"): "{}"} {
		if _, err := conn.Request(name, []byte(data), 10*time.Second); err != nil {
			t.Error(err)
		}
	}
	asking := &client.Client{Transport: overnats.New(p.connect("a")), AgentID: "a", CardID: "ac-a"}
	if result, err := asking.Handshake(t.Context(), "b", client.Task{Type: "t", ValuesRequired: []string{"honesty"}}); err != nil || !result.Proceed {
		t.Errorf("a handshake: %+v, %v", result, err)
	}
	for _, code := range []int{http.StatusCreated, http.StatusOK} {
		p.send(http.MethodPost, "/v1/cards/ac-b/revoke", asJSON, []byte(`{"reason":"test"}`), code)
	}
}

// messages signs and receives a message to agent a and acts on it. It returns what a
// trace cites of it.
func (p *pipeline) messages(t *testing.T) (citation string) {
	person, err := client.NewHTTP(client.HTTPConfig{URL: p.url, Token: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	asking, err := client.NewHTTP(client.HTTPConfig{URL: p.url, Token: "runtime"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(person.Close)
	t.Cleanup(asking.Close)
	signed, err := person.Sign(t.Context(), client.SignRequest{AgentID: "a", SessionID: "s", Text: "What is new?"})
	if err != nil {
		t.Fatal(err)
	}
	runtime := &client.Runtime{HTTP: asking, AgentID: "a", SessionID: "s"}
	received, err := runtime.Receive(t.Context(), signed.Wrapped, &signed.Envelope)
	if err != nil {
		t.Fatal(err)
	}
	permission, err := runtime.Call(t.Context(), received.MessageID, "search")
	if err != nil {
		t.Fatal(err)
	}
	var rejected *client.Rejected
	if _, err := runtime.Receive(t.Context(), signed.Wrapped, &signed.Envelope); !errors.As(err, &rejected) {
		t.Errorf("the same message again: %v", err)
	}
	cited, err := json.Marshal(client.Cite(permission))
	if err != nil {
		t.Fatal(err)
	}
	return string(cited)
}

// annotated returns a trace of agent a with metadata.
func annotated(id, action, metadata string) []byte {
	raw := pipelinetest.Trace(id, "a", "ac-a", "s", "2026-02-01T00:00:02Z", action).Data
	return bytes.Replace(raw, []byte(`"context":{`), fmt.Appendf(nil, `"context":{"metadata":{%s},`, metadata), 1)
}

func (p *pipeline) rows(t *testing.T, from string) uint64 {
	t.Helper()
	return p.rig.Number(t, "SELECT count() FROM "+from)
}

// removeLease removes a lease as the operator.
func (p *pipeline) removeLease(role stream.Role) {
	p.t.Helper()
	leases, err := p.rig.Client.Bucket(p.t.Context(), stream.Leases)
	if err == nil {
		err = leases.Delete(p.t.Context(), string(role), 0)
	}
	if err != nil {
		p.t.Error(err)
	}
}

// operate runs check --deep and replay as the operator.
func (p *pipeline) operate(t *testing.T) {
	site := reconcile.Site{
		Client: p.rig.Client, Store: p.rig.Store, Bundles: filepath.Join(p.dir, "bundles"), Ledger: filepath.Join(p.dir, "ledger"),
		Log: filepath.Join(p.dir, "log"), KeyList: filepath.Join(p.dir, "keys", "keys.jsonl"), Stamps: filepath.Join(p.dir, "timestamps"),
	}
	_, err := reconcile.Run(t.Context(), site, func(d *reconcile.Difference) error { t.Errorf("check: %+v", d); return nil })
	if err != nil {
		t.Error(err)
	}
	if err := p.rig.Client.AppendLedger(t.Context(), ledger.Event{Type: "VERIFY", ID: "check", Data: []byte("{}")}); err != nil {
		t.Error(err)
	}
	policies, err := messages.OpenPolicies(p.policies, false, pipelinetest.Env(t, "replay").Log)
	if err != nil {
		t.Fatal(err)
	}
	again := verifier.Replay{Client: p.rig.Client, Store: p.rig.Store, Policies: policies, Rules: verifier.DefaultRules(), Log: pipelinetest.Env(t, "replay").Log}
	if s, err := again.Run(t.Context()); err != nil || s.Unchanged < 20 {
		t.Errorf("replay: %+v, %v", s, err)
	}
	folded := drift.Replay{Client: p.rig.Client, Store: p.rig.Store, Rules: drift.DefaultRules(), Log: pipelinetest.Env(t, "replay").Log}
	if s, err := folded.Run(t.Context()); err != nil || s.Points != 4+16+3 {
		t.Errorf("replay of drift: %+v, %v", s, err)
	}
}
