package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/transport"
	"github.com/plumbline/plumbline/schema"
)

// shake sends a handshake message to the agent in a path.
func (r *rig) shake(path string, message schema.Handshake, headers ...string) reply {
	r.t.Helper()
	raw, err := json.Marshal(message)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.send(http.MethodPost, "/v1/handshake/"+path, bytes.NewReader(raw), append(headers, "Content-Type: application/json")...)
}

func cardRequest(id, agent string) *schema.CardRequest {
	return &schema.CardRequest{RequestID: id, Requester: schema.Requester{AgentID: agent, CardID: "card-a"}, Timestamp: time.Now()}
}

// The token decides who may be the sender of a message. The URL decides the receiver.
func TestHandshakeRoute(t *testing.T) {
	r := start(t, withTokens(t, "a did:web:a,did:web:b cards:write,handshake", "writer * traces:write"))
	for id, agent := range map[string]string{"card-a": "did:web:a", "card-b": "did:web:b"} {
		if answer := r.putCard(id, card(agent, id), bearing("a")); answer.code != http.StatusCreated {
			t.Fatalf("the answer is %d %s", answer.code, answer.text)
		}
	}
	answer := r.shake("did:web:b", cardRequest("1", "did:web:a"), bearing("a"))
	if answer.code != http.StatusOK || answer.header.Get("Content-Type") != "application/json" {
		t.Fatalf("the answer is %d %s", answer.code, answer.text)
	}
	if m, err := schema.DecodeHandshake([]byte(answer.text)); err != nil || m.Type() != schema.MessageCardResponse {
		t.Errorf("%v in %s", err, answer.text)
	}
	for name, c := range map[string]struct {
		answer reply
		code   int
		word   string
	}{
		"without a token": {r.shake("did:web:b", cardRequest("2", "did:web:a")), http.StatusUnauthorized, "token"},
		"another scope":   {r.shake("did:web:b", cardRequest("2", "did:web:a"), bearing("writer")), http.StatusForbidden, "scope"},
		"another agent":   {r.shake("did:web:b", cardRequest("2", "did:web:x"), bearing("a")), http.StatusForbidden, handshake.WordForbidden},
		"a replay":        {r.shake("did:web:b", cardRequest("1", "did:web:a"), bearing("a")), http.StatusConflict, handshake.WordReplayed},
		"unknown agent":   {r.shake("https:%2F%2Fx%2Fy", cardRequest("2", "did:web:a"), bearing("a")), http.StatusNotFound, handshake.WordNoCard},
		"another type": {r.send(http.MethodPost, "/v1/handshake/did:web:b", strings.NewReader("{}"), bearing("a"), "Content-Type: text/plain"),
			http.StatusUnsupportedMediaType, "media_type"},
		"no JSON": {r.send(http.MethodPost, "/v1/handshake/did:web:b", strings.NewReader("{"), bearing("a"), "Content-Type: application/json"),
			http.StatusBadRequest, schema.ReasonInvalidJSON},
	} {
		if c.answer.code != c.code || c.answer.problem(t).Word != c.word {
			t.Errorf("%s: %d %s, want %d %s", name, c.answer.code, c.answer.text, c.code, c.word)
		}
	}
	if answer := r.shake("https:%2F%2Fx%2Fy", cardRequest("2", "did:web:a"), bearing("a")); !strings.Contains(answer.problem(t).Message, `"https://x/y"`) {
		t.Errorf("the agent of the address is read as %s", answer.text)
	}
	if answer := r.send(http.MethodGet, "/v1/handshake/keys", nil); answer.code != http.StatusOK || !strings.Contains(answer.text, r.api.handshakes.Keys()[0].KeyID) {
		t.Errorf("keys: the answer is %d %s", answer.code, answer.text)
	}
}

// Results are judged by the configured minimum score. They name it and its methodology (AAP
// section 8.3).
func TestMinCoherenceIsSet(t *testing.T) {
	const methodology = "half of the values suffice between our own agents"
	r := start(t, func(cfg *setup) { cfg.MinCoherence, cfg.Methodology = 0.5, methodology })
	for id, agent := range map[string]string{"card-a": "did:web:a", "card-b": "did:web:b"} {
		if answer := r.putCard(id, card(agent, id)); answer.code != http.StatusCreated {
			t.Fatalf("the answer is %d %s", answer.code, answer.text)
		}
	}
	request := cardRequest("1", "did:web:a")
	request.TaskContext = &schema.TaskContext{TaskType: "t", ValuesRequired: []string{"honesty", "speed"}}
	if answer := r.shake("did:web:b", request); answer.code != http.StatusOK {
		t.Fatalf("the answer is %d %s", answer.code, answer.text)
	}
	answer := r.shake("did:web:b", &schema.CoherenceCheck{
		RequestID: "1", InitiatorCardID: "card-a", ResponderCardID: "card-b", Proposal: schema.Collaboration{TaskType: "t"}, Timestamp: time.Now(),
	})
	m, err := schema.DecodeHandshake([]byte(answer.text))
	if err != nil {
		t.Fatalf("the answer is %d %s: %v", answer.code, answer.text, err)
	}
	result := m.(*schema.CoherenceResult)
	if !result.Proceed || result.Coherence.Score != 0.5 || result.Metadata.MinCoherence != 0.5 || result.Metadata.Methodology != methodology {
		t.Errorf("at the threshold: %s", answer.text)
	}
}

// Handshake messages are refused, before they are read, if they would travel unencrypted.
func TestHandshakeOverInsecureConnections(t *testing.T) {
	insecure := fmt.Errorf("%w: set something", transport.ErrInsecure)
	secure, unencrypted := func() error { return nil }, func() error { return insecure }
	for name, a := range map[string]*API{"the listener": {Parts: Parts{Insecure: insecure}, link: secure}, "the connection": {link: unencrypted}} {
		for route, handle := range map[string]request.Handler{"message": a.postHandshake, "keys": a.getHandshakeKeys} {
			if route == "keys" && a.Insecure != nil {
				continue // this route is public
			}
			answer := httptest.NewRecorder()
			_, err := handle(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), auth.Grant{})
			refused, ok := errors.AsType[*problem.Problem](err)
			if !ok {
				t.Fatalf("%s, %s: %v", name, route, err)
			}
			code := refused.Write(answer)
			text := answer.Body.String()
			if code != http.StatusUpgradeRequired || !strings.Contains(text, `"insecure"`) || !strings.Contains(text, "set something") || answer.Header().Get("Upgrade") == "" {
				t.Errorf("%s, %s: %d %s", name, route, code, text)
			}
		}
	}
}

// If the broker is unavailable when the service for handshakes starts, the stage does not end.
// The service answers once the broker is back, in addition to the one that the stage started
// before.
func TestHandshakesAwaitTheBroker(t *testing.T) {
	r := start(t)
	known, ended := make(chan struct{}), make(chan error, 1)
	second := *r.api
	second.Broker = r.broker.Connect()
	close(known)
	r.broker.Stop()
	ctx, end := context.WithCancel(t.Context())
	work, over := context.WithCancel(t.Context())
	over() // what it waits for never arrives
	go func() { ended <- second.answerNATS(ctx, work, known) }()
	r.broker.Start()
	asking, err := nats.Connect(r.broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer asking.Close()
	inbox, services := asking.NewInbox(), map[string]bool{}
	answers, err := asking.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	r.await(func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the service ended: error %v", err)
		default:
		}
		if err := asking.PublishRequest("$SRV.PING."+handshake.ServiceName, inbox, nil); err != nil {
			t.Fatal(err)
		}
		for answer, err := answers.NextMsg(time.Second / 10); err == nil; answer, err = answers.NextMsg(time.Second / 10) {
			services[string(answer.Data)] = true
		}
		return len(services) == 2
	})
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
