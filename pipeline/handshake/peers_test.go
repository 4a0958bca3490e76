package handshake_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/schema"
)

// peer runs a service with one card of agent p, revoked or not.
func peer(t *testing.T, raw []byte, revoked ...schema.Revocation) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/alignment-card.json", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("agent_id") != "p" {
			http.NotFound(w, r)
			return
		}
		if _, err := w.Write(raw); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("GET /.well-known/alignment-card-revocations.json", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(map[string][]schema.Revocation{"revoked": revoked}); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// The peers are asked for the card of an agent that is not registered here. If the card cannot be
// obtained, it is unknown.
func TestInitiatorsCardByRequest(t *testing.T) {
	good := card("p", "p-1", "2026-03-01", "", "honesty", "transparency")
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		peers  []string
		agent  string
		reason string // "": the agents proceed
	}{
		"the peer has it":              {[]string{peer(t, good)}, "p", ""},
		"the second peer has it":       {[]string{gone.URL, peer(t, card("p", "p-2", "2026-03-01", "", "x")), peer(t, good)}, "p", ""},
		"it is revoked there":          {[]string{peer(t, good, schema.Revocation{CardID: "p-1", RevokedAt: noon.Add(-time.Hour)})}, "p", schema.ReasonCardRevoked},
		"it has expired":               {[]string{peer(t, card("p", "p-1", "2026-01-01", `,"expires_at":"2026-02-01T00:00:00Z"`, "honesty"))}, "p", schema.ReasonCardExpired},
		"it is another's":              {[]string{peer(t, card("q", "p-1", "2026-03-01", "", "honesty", "transparency"))}, "p", schema.ReasonCardUnknown},
		"it is no card":                {[]string{peer(t, []byte(`{"card_id":"p-1"}`))}, "p", schema.ReasonCardUnknown},
		"nobody is there":              {[]string{gone.URL}, "p", schema.ReasonCardUnknown},
		"the agent is registered":      {[]string{peer(t, card("a", "p-1", "2026-03-01", "", "honesty", "transparency"))}, "a", schema.ReasonCardUnknown},
		"nobody is to be asked at all": {nil, "p", schema.ReasonCardUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var err error
			if r.peers, err = handshake.NewPeers(c.peers); err != nil {
				t.Fatal(err)
			}
			service := r.service()
			answered[*schema.CardResponse](t, service, from(c.agent, request("r-1", func(m *schema.CardRequest) {
				m.Requester = schema.Requester{AgentID: c.agent, CardID: "p-1"}
			})))
			result := answered[*schema.CoherenceResult](t, service, from(c.agent, check("r-1", func(m *schema.CoherenceCheck) { m.InitiatorCardID = "p-1" })))
			switch {
			case c.reason == "" && !result.Proceed:
				t.Errorf("result %+v", result)
			case c.reason != "" && (result.Proceed || len(result.Reasons) != 1 || result.Reasons[0].Code != c.reason):
				t.Errorf("reasons %+v, want %s", result.Reasons, c.reason)
			}
		})
	}
}

func TestPeersAreAskedOverSecureConnections(t *testing.T) {
	for address, want := range map[string]bool{
		"https://a.example": true, "http://127.0.0.1:8080/": true, "http://a.example": false, "a.example": false, "ftp://a.example": false, "https://": false,
	} {
		if _, err := handshake.NewPeers([]string{address}); (err == nil) != want {
			t.Errorf("%s: %v, want it accepted: %v", address, err, want)
		}
	}
}
