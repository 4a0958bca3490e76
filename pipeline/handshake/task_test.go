package handshake_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// done returns agent b's result of a task. Tests may change it.
func done(id string, change ...func(*schema.TaskResult)) []byte {
	m := &schema.TaskResult{
		RequestID: id, Responder: schema.Requester{AgentID: "b", CardID: "b-now"}, Status: schema.TaskCompleted, Timestamp: noon,
		Result: json.RawMessage(`{"cheapest":"<3>"}`), TraceReference: schema.TraceReference{TraceIDs: []string{"tr-1", "tr-2"}},
	}
	for _, alter := range change {
		alter(m)
	}
	return text(m)
}

// toA returns a message to agent a from a sender that may speak for an agent.
func toA(agent string, raw []byte) handshake.Question {
	q := from(agent, raw)
	q.Responder = "a"
	return q
}

// A result of a task goes from the responder to the initiator, and is stored before its receipt
// is sent.
func TestTaskResultIsStored(t *testing.T) {
	r := newRig(t)
	service := r.service()
	spaced := bytes.Replace(done("r-1"), []byte(`,"status"`), []byte(` ,  "status"`), 1)
	raw, err := service.Answer(t.Context(), toA("b", spaced))
	if err != nil {
		t.Fatal(err)
	}
	form, err := schema.Canonical(done("r-1"))
	var receipt schema.TaskReceipt
	if err := errors.Join(err, json.Unmarshal(raw, &receipt)); err != nil {
		t.Fatal(err)
	}
	if receipt.RequestID != "r-1" || receipt.SHA256 != schema.DigestOf(form) || !receipt.ReceivedAt.Equal(noon) {
		t.Errorf("receipt %s", raw)
	}
	records := r.records()
	if len(records) != 1 {
		t.Fatalf("%d records are kept, want 1", len(records))
	}
	messages, err := records[0].Messages()
	if err != nil {
		t.Fatal(err)
	}
	kept := messages.TaskResult
	if records[0].Initiator != "a" || records[0].Responder != "b" || messages.TaskDigest != receipt.SHA256 || messages.Request != nil ||
		kept.Status != schema.TaskCompleted || len(kept.TraceReference.TraceIDs) != 2 {
		t.Errorf("kept %+v of %+v", kept, records[0])
	}
}

func TestTaskResultsThatAreRefused(t *testing.T) {
	r := newRig(t)
	service := r.service()
	if _, err := service.Answer(t.Context(), toA("b", done("r-1"))); err != nil {
		t.Fatal(err)
	}
	signed := func(m *schema.TaskResult) {
		m.Signature = &schema.Signature{Algorithm: schema.SignatureEd25519, KeyID: "k", Value: strings.Repeat("A", 86) + "=="}
	}
	for name, c := range map[string]struct {
		q    handshake.Question
		word string
		code int
	}{
		"another result":    {toA("b", done("r-1", func(m *schema.TaskResult) { m.Status = schema.TaskFailed })), handshake.WordReplayed, http.StatusConflict},
		"another's":         {toA("a", done("r-2")), handshake.WordForbidden, http.StatusForbidden},
		"stale":             {toA("b", done("r-2", func(m *schema.TaskResult) { m.Timestamp = noon.Add(-time.Hour) })), handshake.WordStale, http.StatusBadRequest},
		"a foreign key":     {toA("b", done("r-2", signed)), handshake.WordSignature, http.StatusBadRequest},
		"without traces":    {toA("b", done("r-2", func(m *schema.TaskResult) { m.TraceReference.TraceIDs = []string{} })), schema.ReasonInvalidHandshake, http.StatusBadRequest},
		"without one form":  {toA("b", done("r-2", func(m *schema.TaskResult) { m.Result = json.RawMessage("9007199254740993") })), schema.ReasonInvalidHandshake, http.StatusBadRequest},
		"an answer of ours": {toA("b", text(&schema.CoherenceResult{RequestID: "r-2", Timestamp: noon})), handshake.WordNotAsked, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) { refused(t, service, c.q, c.word, c.code) })
	}
	if records := r.records(); len(records) != 1 {
		t.Errorf("%d records are kept, want that of the first", len(records))
	}
}

// The same message may be sent again if its receipt was lost or never created. It is stored once.
func TestTaskResultIsSentAgain(t *testing.T) {
	r := newRig(t)
	service, broken := r.service(), r.service(failing{stream.ErrUnavailable})
	if text := refused(t, broken, toA("b", done("r-1")), handshake.WordUnavailable, http.StatusServiceUnavailable); !strings.Contains(text, "send the same message again") {
		t.Errorf("the problem says %q", text)
	}
	var receipts []string
	for range 2 {
		receipt, err := service.Answer(t.Context(), toA("b", done("r-1")))
		if err != nil {
			t.Fatal(err)
		}
		receipts = append(receipts, string(receipt))
	}
	if records := r.records(); len(records) != 1 || receipts[0] != receipts[1] {
		t.Errorf("%d records are kept, receipts %q", len(records), receipts)
	}
}
