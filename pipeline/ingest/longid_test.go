package ingest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// Ids of any length in URLs are answered and do no harm to the service. The broker would close
// the connection because of a subject made from them.
func TestLongIDsLeaveTheBrokerConnected(t *testing.T) {
	r := start(t)
	id := strings.Repeat("x", 5000)
	for _, request := range [][2]string{
		{http.MethodGet, "/v1/cards/" + id},
		{http.MethodPut, "/v1/cards/" + id},
		{http.MethodPost, "/v1/cards/" + id + "/revoke"},
		{http.MethodPost, "/v1/handshake/" + id},
		{http.MethodGet, "/.well-known/alignment-card.json?agent_id=" + id},
	} {
		answer := r.send(request[0], request[1], strings.NewReader(`{"reason":"x"}`), "Content-Type: application/json")
		if answer.code < 400 || answer.code >= 500 {
			t.Errorf("%s %.40s: %d %.200s", request[0], request[1], answer.code, answer.text)
		}
	}
	end := `{"agent_id":"` + id + `","session_id":"` + id + `"}`
	if answer := r.send(http.MethodPost, "/v1/sessions/end", strings.NewReader(end), "Content-Type: application/json"); answer.code != http.StatusBadRequest {
		t.Errorf("end of a session: %d %.200s", answer.code, answer.text)
	}
	if answer := r.send(http.MethodPost, "/v1/traces", strings.NewReader(trace("did:web:a", "1")), ndjson); answer.code != http.StatusOK {
		t.Errorf("a trace after that: %d %.200s", answer.code, answer.text)
	}
}

// If the broker closes the connection permanently, the stage ends, and its error says so.
func TestClosedConnectionEndsTheStage(t *testing.T) {
	var client *stream.Client
	r := start(t, wired(func(s *server) {
		connect := s.connect
		s.connect = func(ctx context.Context) (_ *stream.Client, err error) {
			client, err = connect(ctx)
			return client, err
		}
	}))
	if _, err := client.StreamState(t.Context(), strings.Repeat("x", 5000)); err == nil { // a subject too long for the broker
		t.Error("the broker has a stream of that name")
	}
	<-r.ended
	if err := r.err; err == nil || !strings.Contains(err.Error(), "closed the connection") {
		t.Errorf("the stage ended with %v", err)
	}
	r.err = nil // as expected
}

// The same holds if the broker closes the connection before the stage has begun its work.
func TestClosedConnectionEndsTheStart(t *testing.T) {
	r := prepare(t, wired(func(s *server) {
		connect := s.connect
		s.connect = func(ctx context.Context) (*stream.Client, error) {
			client, err := connect(ctx)
			if err == nil {
				_, _ = client.StreamState(ctx, strings.Repeat("x", 5000)) // this fails
			}
			return client, err
		}
	}))
	<-r.ended
	if err := r.err; err == nil || !strings.Contains(err.Error(), "closed the connection") {
		t.Errorf("the stage ended with %v", err)
	}
	r.err = nil // as expected
}
