package handshake_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// A handshake consists of four signed messages under one request_id, and its result is stored.
func TestHandshake(t *testing.T) {
	r := newRig(t)
	service := r.service()
	response := answered[*schema.CardResponse](t, service, from("a", request("r-1")))
	if response.RequestID != "r-1" || response.Card.CardID != "b-now" || !response.Timestamp.Equal(noon) {
		t.Errorf("response %+v", response)
	}
	if err := signature.Verify(response.AlignmentCard, *response.Signature, service.Keys()); err != nil {
		t.Errorf("signature of the card: %v", err)
	}
	result := answered[*schema.CoherenceResult](t, service, from("a", check("r-1")))
	if result.RequestID != "r-1" || !result.Coherence.Compatible || !result.Proceed || result.Coherence.Score != 1 {
		t.Errorf("result %+v", result)
	}
	if err := signature.Verify(result.Raw, *result.Signature, service.Keys()); err != nil {
		t.Errorf("signature of the result: %v", err)
	}
	if response.SignedBy != schema.SignedByService || result.SignedBy != schema.SignedByService {
		t.Errorf("the response is signed by %q, the result by %q", response.SignedBy, result.SignedBy)
	}
	other := bytes.Replace(result.Raw, []byte(`"signed_by":"service"`), []byte(`"signed_by":"agent"`), 1)
	if bytes.Equal(other, result.Raw) || signature.Verify(other, *result.Signature, service.Keys()) == nil {
		t.Errorf("the signature does not cover whose it is: %s", other)
	}
	records := r.records()
	if len(records) != 1 {
		t.Fatalf("%d records are kept, want 1", len(records))
	}
	kept := records[0]
	if kept.Initiator != "a" || kept.Responder != "b" || kept.Transport != handshake.OverHTTP || !bytes.Equal(kept.Result, result.Raw) {
		t.Errorf("kept %+v", kept)
	}
}

// The check is judged by the task of its request, which the check does not contain.
func TestTheTaskIsTheRequests(t *testing.T) {
	service := newRig(t).service()
	answered[*schema.CardResponse](t, service, from("a", request("r-1", func(m *schema.CardRequest) {
		m.TaskContext.ValuesRequired = []string{"honesty", "privacy", "courage", "thrift"}
	})))
	result := answered[*schema.CoherenceResult](t, service, from("a", check("r-1", func(m *schema.CoherenceCheck) {
		m.Proposal.ValuesIntersection = []string{"honesty"}
	})))
	if result.Coherence.Score != 0.25 || result.Proceed || result.Metadata.RequiredFrom != schema.RequiredByTask {
		t.Errorf("result %+v", result)
	}
}

// If the task names no values, those that the check proposes do not replace them.
func TestATaskWithoutValuesRequiresThoseOfBothCards(t *testing.T) {
	service := newRig(t).service()
	answered[*schema.CardResponse](t, service, from("a", request("r-1", func(m *schema.CardRequest) { m.TaskContext.ValuesRequired = nil })))
	result := answered[*schema.CoherenceResult](t, service, from("a", check("r-1", func(m *schema.CoherenceCheck) {
		m.Proposal.ValuesIntersection = []string{"honesty"}
	})))
	if result.Metadata.RequiredFrom != schema.RequiredByCards {
		t.Errorf("required by %s, score %v", result.Metadata.RequiredFrom, result.Coherence.Score)
	}
}

// With a card that is not in force, is unknown, or belongs to another agent, the result is an
// answer that does not permit to proceed.
func TestCardsThatDoNotCount(t *testing.T) {
	r := newRig(t)
	service := r.service()
	withdrawn := r.register(card("a", "a-revoked", "2026-02-01", "", "honesty", "transparency"))
	if _, _, err := r.registry.Revoke(t.Context(), withdrawn.Entry, "lost", noon.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		initiator, responder, reason string
		side                         schema.Side
	}{
		{"a-old", "b-now", schema.ReasonCardExpired, schema.Initiator},
		{"a-revoked", "b-now", schema.ReasonCardRevoked, schema.Initiator},
		{"a-unknown", "b-now", schema.ReasonCardUnknown, schema.Initiator},
		{"b-now", "b-now", schema.ReasonAgentMismatch, schema.Initiator},
		{"a-now", "b-old", schema.ReasonCardExpired, schema.Responder},
		{"a-now", "b-unknown", schema.ReasonCardUnknown, schema.Responder},
		{"a-now", "a-now", schema.ReasonAgentMismatch, schema.Responder},
	} {
		id := fmt.Sprint("r-", i)
		answered[*schema.CardResponse](t, service, from("a", request(id)))
		result := answered[*schema.CoherenceResult](t, service, from("a", check(id, func(m *schema.CoherenceCheck) {
			m.InitiatorCardID, m.ResponderCardID = c.initiator, c.responder
		})))
		if result.Coherence.Compatible || result.Proceed || len(result.Reasons) != 1 || result.Reasons[0].Code != c.reason || result.Reasons[0].Side != c.side {
			t.Errorf("%s and %s: %+v, want %s of the %s", c.initiator, c.responder, result, c.reason, c.side)
		}
	}
}

// Both sides are judged by their cards in force. Otherwise a check could name an older card to
// evade the limits of the newer one.
func TestNewerCardsCount(t *testing.T) {
	r := newRig(t)
	service := r.service()
	for _, agent := range []string{"a", "b"} {
		r.register(card(agent, agent+"-before", "2026-02-15", "", "honesty", "transparency"))
		r.register(card(agent, agent+"-later", "2026-07-01", "", "honesty"))
	}
	for i, c := range []struct{ initiator, responder, reasons string }{
		{"a-now", "b-now", ""},
		{"a-now", "b-before", `responder card_superseded b-before: the agent has the newer card "b-now" in force`},
		{"a-before", "b-now", `initiator card_superseded a-before: the agent has the newer card "a-now" in force`},
	} {
		id := fmt.Sprint("r-", i)
		answered[*schema.CardResponse](t, service, from("a", request(id)))
		result := answered[*schema.CoherenceResult](t, service, from("a", check(id, func(m *schema.CoherenceCheck) {
			m.InitiatorCardID, m.ResponderCardID = c.initiator, c.responder
		})))
		var reasons []string
		for _, reason := range result.Reasons {
			reasons = append(reasons, fmt.Sprintf("%s %s %s: %s", reason.Side, reason.Code, reason.CardID, reason.Description))
		}
		if got := strings.Join(reasons, "; "); got != c.reasons || result.Proceed != (c.reasons == "") {
			t.Errorf("%s and %s: proceed %v, reasons %s", c.initiator, c.responder, result.Proceed, got)
		}
	}
}

// A responder without an issued card has no answer. The request may be sent again once it has
// one.
func TestResponderWithoutACard(t *testing.T) {
	r := newRig(t)
	service := r.service()
	q := from("a", request("r-1"))
	q.Responder = "c"
	r.register(card("c", "c-next", "2026-12-01", "", "honesty"))
	refused(t, service, q, handshake.WordNoCard, http.StatusNotFound)
	r.register(card("c", "c-now", "2026-03-01", "", "honesty"))
	if response := answered[*schema.CardResponse](t, service, q); response.Card.CardID != "c-now" {
		t.Errorf("answered with card %s", response.Card.CardID)
	}
	q.Responder, q.Raw = "d", request("r-2")
	r.register(card("d", "d-old", "2026-01-01", `,"expires_at":"2026-02-01T00:00:00Z"`, "honesty"))
	if response := answered[*schema.CardResponse](t, service, q); response.Card.CardID != "d-old" {
		t.Errorf("an agent whose card has expired answers with %s; the check says that it has", response.Card.CardID)
	}
}

func TestWhoMaySpeak(t *testing.T) {
	service := newRig(t).service()
	refused(t, service, from("x", request("r-1")), handshake.WordForbidden, http.StatusForbidden)
	answered[*schema.CardResponse](t, service, from("a", request("r-1")))
	refused(t, service, from("x", check("r-1")), handshake.WordNoRequest, http.StatusConflict) // hides that a request exists
	answered[*schema.CoherenceResult](t, service, from("a", check("r-1")))
}

func TestMessagesThatAreNone(t *testing.T) {
	service := newRig(t).service()
	for name, c := range map[string]struct {
		raw, word string
		code      int
	}{
		"no JSON":          {`{`, schema.ReasonInvalidJSON, http.StatusBadRequest},
		"no request_id":    {strings.Replace(string(request("r")), `"request_id":"r",`, "", 1), schema.ReasonInvalidHandshake, http.StatusBadRequest},
		"no timestamp":     {strings.Replace(string(request("r")), `"timestamp":"2026-06-01T12:00:00Z"`, `"x":1`, 1), schema.ReasonInvalidHandshake, http.StatusBadRequest},
		"too large":        {strings.Repeat(" ", 10) + `{"a":"` + strings.Repeat("x", schema.MaxHandshakeBytes) + `"}`, schema.ReasonTooLarge, http.StatusRequestEntityTooLarge},
		"an answer":        {string(text(&schema.CardResponse{RequestID: "r", AlignmentCard: card("b", "b-now", "2026-03-01", "", "honesty"), Timestamp: noon})), handshake.WordNotAsked, http.StatusBadRequest},
		"an unknown type":  {`{"message_type":"greeting","request_id":"r","timestamp":"2026-06-01T12:00:00Z"}`, schema.ReasonInvalidHandshake, http.StatusBadRequest},
		"a member twice":   {strings.Replace(string(request("r")), `{`, `{"request_id":"q",`, 1), schema.ReasonInvalidJSON, http.StatusBadRequest},
		"another case":     {strings.Replace(string(request("r")), `"request_id"`, `"Request_ID"`, 1), schema.ReasonInvalidHandshake, http.StatusBadRequest},
		"nothing whatever": {"", schema.ReasonInvalidJSON, http.StatusBadRequest},
	} {
		t.Log(name)
		refused(t, service, from("a", []byte(c.raw)), c.word, c.code)
	}
}

// A message may be signed with a key of the sender's card. A signature must be valid.
func TestSignedMessages(t *testing.T) {
	r := newRig(t)
	service := r.service()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	public := base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	r.register(card("a", "a-keys", "2026-04-01",
		`,"extensions":{"plumbline":{"keys":[{"key_id":"k","algorithm":"Ed25519","public_key":"`+public+`"}]}}`, "honesty"))
	sign := func(id, keyID string) string {
		raw := request(id, func(m *schema.CardRequest) { m.Requester.CardID = "a-keys" })
		s, err := signature.Sign(raw, keyID, private)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signature.Attach(raw, s)
		if err != nil {
			t.Fatal(err)
		}
		return string(signed)
	}
	refused(t, service, from("a", []byte(strings.Replace(sign("r-1", "k"), "compare", "destroy", 1))), handshake.WordSignature, http.StatusBadRequest)
	refused(t, service, from("a", []byte(sign("r-1", "other"))), handshake.WordSignature, http.StatusBadRequest)
	refused(t, service, from("a", []byte(strings.Replace(sign("r-1", "k"), "a-keys", "a-now", 1))), handshake.WordSignature, http.StatusBadRequest)
	answered[*schema.CardResponse](t, service, from("a", []byte(sign("r-1", "k"))))
}

// No result is sent before it is stored. A refusal for that reason asks the requester to begin
// again.
func TestResultsAreDurableBeforeTheAnswer(t *testing.T) {
	r := newRig(t)
	for i, c := range []struct {
		err  error
		word string
		code int
	}{
		{fmt.Errorf("publish: %w", stream.ErrUnavailable), handshake.WordUnavailable, http.StatusServiceUnavailable},
		{fmt.Errorf("publish: %w", stream.ErrTooLarge), handshake.WordTooLarge, http.StatusRequestEntityTooLarge},
	} {
		service, id := r.service(failing{c.err}), fmt.Sprint("r-", i)
		answered[*schema.CardResponse](t, service, from("a", request(id)))
		refused(t, service, from("a", check(id)), c.word, c.code)
	}
	service := r.service(failing{errBroken})
	answered[*schema.CardResponse](t, service, from("a", request("r")))
	if _, err := service.Answer(t.Context(), from("a", check("r"))); err == nil || handshake.ProblemOf(err) != nil {
		t.Errorf("a fault of the service's own: %v", err)
	}
}
