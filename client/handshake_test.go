package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/aap/coherence"
	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/client"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/transport/transporttest"
	"github.com/plumbline/plumbline/pipeline/verifier"
	"github.com/plumbline/plumbline/schema"
)

var task = client.Task{
	Type: "compare", ValuesRequired: []string{"honesty", "transparency"}, DataCategories: []string{"prices"},
	AutonomyScope: &schema.AutonomyScope{InitiatorActions: []string{"search"}, ResponderActions: []string{"search"}},
}

// All messages are exchanged over both transports. The result of each handshake and task is in
// ClickHouse exactly once, although no verifier ran when it was reported.
func TestHandshakeOverBothTransports(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, card("a", "transparency"), card("b", "transparency", "privacy"), card("c"))
	url := serve(t, rig.Common())
	keys := keysOf(t, url, nil)
	for name, transport := range map[string]client.Transport{
		"http": overHTTP(t, client.HTTPConfig{URL: url}), "nats": overNATS(t, rig.Broker.URL()),
	} {
		c := &client.Client{Transport: transport, AgentID: "a", CardID: "ac-a", Values: []string{"transparency", "honesty"}, Keys: keys}
		result, err := c.Handshake(t.Context(), "b", task)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !result.Proceed || !result.Verified || result.Card.CardID != "ac-b" || result.Answer.Coherence.Score != 1 || result.Answer.RequestID != result.RequestID ||
			result.SignedBy != schema.SignedByService || result.KeyID != keys[0].KeyID {
			t.Errorf("%s: %+v", name, result)
		}
		report(t, transport, "b", schema.TaskResult{RequestID: result.RequestID, Status: schema.TaskFailed, Result: json.RawMessage(`{"why":"<no offers>"}`)}, "tr-"+name)
		if result, err = c.Handshake(t.Context(), "c", task); err != nil || result.Proceed || result.Answer.Coherence.Score != 0.5 {
			t.Errorf("%s: %+v, error %v", name, result, err)
		}
		report(t, transport, "c", schema.TaskResult{RequestID: result.RequestID, Status: schema.TaskDeclined}, "tr-"+name)
		var refused *client.Problem
		if _, err := c.Handshake(t.Context(), "nobody", task); !errors.As(err, &refused) || refused.Word != "no_card" || refused.Code != http.StatusNotFound {
			t.Errorf("%s: with an unknown agent: error %v", name, err)
		}
	}
	cfg := verifier.Default()
	cfg.Common, cfg.ClickHouse = rig.Common(), rig.ClickHouse()
	env := pipelinetest.Env(t, "verifier")
	pipelinetest.Go(t, func(ctx context.Context) error { return verifier.Serve(ctx, &cfg, env) })
	rig.Publish(t, pipelinetest.Trace("tr-http", "b", "ac-b", "s", "2026-02-01T00:00:00Z", "search"))
	pipelinetest.Await(t, "the results in ClickHouse", func() bool {
		return count(t, rig, "coherence_results FINAL") == 4 && count(t, rig, "visible_task_results") == 4 && count(t, rig, "visible_traces") == 1
	})
	for _, c := range []struct {
		where string
		want  uint64
	}{
		{"compatible AND score = 1 AND responder_agent_id = 'b' AND values_intersection = ['transparency', 'honesty']", 2},
		{"NOT compatible AND score = 0.5 AND unmatched = ['transparency'] AND data_categories = ['prices']", 2},
		{"transport = 'http' AND initiator_agent_id = 'a' AND key_id = '" + keys[0].KeyID + "'", 2},
		{"transport = 'nats' AND JSONExtractString(result, 'message_type') = 'coherence_result'", 2},
	} {
		if got := count(t, rig, "visible_coherence_results WHERE "+c.where); got != c.want {
			t.Errorf("%d rows where %s, want %d", got, c.where, c.want)
		}
	}
	for from, want := range map[string]uint64{
		"visible_task_results WHERE status = 'failed' AND JSONExtractString(result, 'why') = '<no offers>' AND session_id = 's' AND responder_agent_id = 'b'": 2,
		notAgreed: 2, // agent c's
		notThere:  3, // agent b's tr-nats, and what agent c names
	} {
		if got := count(t, rig, from); got != want {
			t.Errorf("%d rows of %s, want %d", got, from, want)
		}
	}
}

// report sends an agent's result of a task to agent a.
func report(t *testing.T, transport client.Transport, agent string, result schema.TaskResult, traces ...string) {
	t.Helper()
	result.TraceReference = schema.TraceReference{TraceIDs: traces, SessionID: "s"}
	c := &client.Client{Transport: transport, AgentID: agent, CardID: "ac-" + agent}
	receipt, err := c.Report(t.Context(), "a", result)
	if err != nil || receipt.RequestID != result.RequestID {
		t.Errorf("receipt %+v, error %v", receipt, err)
	}
	result.TraceReference.TraceIDs = nil
	var refused *client.Problem
	if _, err := c.Report(t.Context(), "a", result); !errors.As(err, &refused) || refused.Code != http.StatusBadRequest {
		t.Errorf("a result without traces: error %v", err)
	}
}

// The queries of docs/HANDSHAKE.md that compare results of tasks with handshakes and traces.
const (
	notAgreed = `visible_task_results WHERE (initiator_agent_id, responder_agent_id, request_id) NOT IN
		(SELECT initiator_agent_id, responder_agent_id, request_id FROM visible_coherence_results WHERE proceed)`
	notThere = `visible_task_results ARRAY JOIN trace_ids AS trace_id WHERE (responder_agent_id, trace_id) NOT IN
		(SELECT agent_id, trace_id FROM visible_traces)`
)

func count(t *testing.T, rig *pipelinetest.Rig, from string) uint64 {
	t.Helper()
	return rig.Number(t, "SELECT count() FROM "+from)
}

// altering is a Transport that alters answers, as a man in the middle does.
type altering struct {
	client.Transport
	alter func(answer []byte) []byte
}

func (a altering) Exchange(ctx context.Context, responder, requester string, message []byte) ([]byte, error) {
	answer, err := a.Transport.Exchange(ctx, responder, requester, message)
	return a.alter(answer), err
}

func replacing(old, with string) func([]byte) []byte {
	return func(answer []byte) []byte { return bytes.Replace(answer, []byte(old), []byte(with), 1) }
}

func TestInvalidAnswersAreRefused(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, card("a", "transparency"), card("b", "privacy"))
	url := serve(t, rig.Common())
	keys, honest := keysOf(t, url, nil), overHTTP(t, client.HTTPConfig{URL: url})
	stale := func(answer []byte) []byte {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(answer, &m); err != nil {
			return answer
		}
		m["timestamp"] = json.RawMessage(`"2020-01-01T00:00:00Z"`)
		altered, _ := json.Marshal(m)
		return altered
	}
	for name, c := range map[string]struct {
		keys  []schema.Key
		alter func([]byte) []byte
		want  error
	}{
		"the card was changed":        {keys, replacing(`"privacy"`, `"transparency"`), client.ErrSignature},
		"the result was changed":      {keys, replacing(`"score":0.5`, `"score":0.6`), client.ErrSignature},
		"the signature was removed":   {keys, replacing(`"signature":`, `"x_signature":`), client.ErrSignature},
		"another key":                 {[]schema.Key{{KeyID: keys[0].KeyID, PublicKey: make([]byte, 32)}}, replacing("", ""), client.ErrSignature},
		"no key of this id":           {[]schema.Key{{KeyID: "other", PublicKey: keys[0].PublicKey}}, replacing("", ""), client.ErrSignature},
		"another request_id":          {nil, replacing(`"request_id":"`, `"request_id":"x`), client.ErrAnswer},
		"a message out of order":      {nil, func([]byte) []byte { return []byte(`{"message_type":"coherence_result"}`) }, client.ErrAnswer},
		"no message":                  {nil, func([]byte) []byte { return []byte("<html>") }, client.ErrAnswer},
		"the card of another agent":   {nil, replacing(`"agent_id":"b"`, `"agent_id":"c"`), client.ErrAnswer},
		"a card that has expired":     {nil, replacing(`"issued_at"`, `"expires_at":"2026-02-01T00:00:00Z","issued_at"`), client.ErrExpired},
		"a stale answer":              {nil, stale, coherence.ErrStale},
		"an answer to another's card": {nil, replacing(`"agent_id":"b"`, `"agent_id":"B"`), client.ErrAnswer},
	} {
		c2 := &client.Client{Transport: altering{honest, c.alter}, AgentID: "a", CardID: "ac-a", Keys: c.keys}
		if result, err := c2.Handshake(t.Context(), "b", task); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, error %v; want %v", name, result, err, c.want)
		}
	}
	unverified := &client.Client{Transport: honest, AgentID: "a", CardID: "ac-a"}
	if result, err := unverified.Handshake(t.Context(), "b", task); err != nil || result.Verified {
		t.Errorf("without keys: %+v, error %v", result, err)
	}
	ahead := &client.Client{Transport: honest, AgentID: "a", CardID: "ac-a", Now: func() time.Time { return time.Now().Add(10 * time.Minute) }}
	var refused *client.Problem
	if _, err := ahead.Handshake(t.Context(), "b", task); !errors.As(err, &refused) || refused.Word != "stale" || !strings.Contains(refused.Message, time.Now().UTC().Format("2006-01-02T")) {
		t.Errorf("with a wrong clock: error %v", err)
	}
}

// Beyond loopback nothing is sent unencrypted, and both sides of both transports refuse
// TLS 1.2.
func TestTLS13IsRequired(t *testing.T) {
	if _, err := client.NewHTTP(client.HTTPConfig{URL: "http://10.0.0.1:8080"}); !errors.Is(err, client.ErrInsecure) {
		t.Errorf("plain HTTP to another machine: error %v", err)
	}
	authority := transporttest.New(t)
	broker := brokertest.NewTLS(t, authority.Server(0))
	common := config.DefaultCommon("")
	common.NATS.URL, common.NATS.MonitorURL, common.NATS.CAFile = broker.URL(), broker.MonitorURL(), authority.CAFile
	url := serve(t, common, withTLS(authority))
	register(t, url, authority, card("a", "transparency"), card("b", "transparency"))

	for name, transport := range map[string]client.Transport{
		"http": overHTTP(t, client.HTTPConfig{URL: url, Roots: authority.Roots}),
		"nats": overNATS(t, broker.URL(), nats.Secure(authority.Client(0))),
	} {
		c := &client.Client{Transport: transport, AgentID: "a", CardID: "ac-a", Keys: keysOf(t, url, authority.Client(0))}
		if result, err := c.Handshake(t.Context(), "b", task); err != nil || !result.Proceed || !result.Verified {
			t.Errorf("%s, TLS 1.3: %+v, error %v", name, result, err)
		}
	}

	old := &http.Client{Transport: &http.Transport{TLSClientConfig: authority.Client(tls.VersionTLS12)}}
	defer old.CloseIdleConnections()
	if answer, err := old.Get(url + "/v1/handshake/keys"); err == nil {
		_ = answer.Body.Close()
		t.Error("ingest accepted a client with TLS 1.2")
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = authority.Server(tls.VersionTLS12)
	server.StartTLS()
	defer server.Close()
	c := &client.Client{Transport: overHTTP(t, client.HTTPConfig{URL: server.URL, Roots: authority.Roots}), AgentID: "a", CardID: "ac-a"}
	if _, err := c.Handshake(t.Context(), "b", task); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("a server of TLS 1.2: error %v", err)
	}
}

func register(t *testing.T, url string, authority *transporttest.Authority, cards ...[]byte) {
	t.Helper()
	http13 := &http.Client{Transport: &http.Transport{TLSClientConfig: authority.Client(0)}}
	defer http13.CloseIdleConnections()
	for _, raw := range cards {
		var id struct {
			CardID string `json:"card_id"`
		}
		if err := json.Unmarshal(raw, &id); err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/v1/cards/"+id.CardID, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := http13.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusCreated {
			t.Fatalf("register %s: %s", id.CardID, answer.Status)
		}
	}
}
