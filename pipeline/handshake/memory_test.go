package handshake_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/schema"
)

// A message is answered once, whatever process it reaches and whatever restarts in between. The
// same request_id from another agent is another message.
func TestReplaysAreRefused(t *testing.T) {
	r := newRig(t)
	service := r.service()
	answered[*schema.CardResponse](t, service, from("a", request("r-1")))
	answered[*schema.CoherenceResult](t, service, from("a", check("r-1")))
	r.broker.Restart()
	for name, service := range map[string]*handshake.Service{"the same process": service, "another": r.service()} {
		for _, raw := range [][]byte{request("r-1"), check("r-1"), request("r-1", func(m *schema.CardRequest) { m.Timestamp = noon.Add(time.Second) })} {
			t.Log(name)
			refused(t, service, from("a", raw), handshake.WordReplayed, http.StatusConflict)
		}
	}
	other := request("r-1", func(m *schema.CardRequest) { m.Requester.AgentID = "z" })
	answered[*schema.CardResponse](t, service, from("z", other))
	if got := len(r.records()); got != 1 {
		t.Errorf("%d results are kept, want 1", got)
	}
}

// The broker stores the request, so the check may reach another process, even after a restart of
// everything.
func TestRestartBetweenRequestAndCheck(t *testing.T) {
	r := newRig(t)
	answered[*schema.CardResponse](t, r.service(), from("a", request("r-1")))
	r.broker.Restart()
	if result := answered[*schema.CoherenceResult](t, r.service(), from("a", check("r-1"))); result.Coherence.Score != 1 {
		t.Errorf("result %+v", result)
	}
}

// Of many concurrent requests, in two processes, one is answered.
func TestOneOfManyIsAnswered(t *testing.T) {
	r := newRig(t)
	services := []*handshake.Service{r.service(), r.service()}
	for _, raw := range [][]byte{request("r-1"), check("r-1")} {
		outcomes := make([]string, 16)
		var callers errgroup.Group
		for i := range outcomes {
			callers.Go(func() error {
				_, err := services[i%2].Answer(t.Context(), from("a", raw))
				outcomes[i] = "answered"
				if p := handshake.ProblemOf(err); p != nil {
					outcomes[i] = p.Word
				} else if err != nil {
					return err
				}
				return nil
			})
		}
		if err := callers.Wait(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(outcomes)
		if outcomes[0] != "answered" || outcomes[1] != handshake.WordReplayed || outcomes[len(outcomes)-1] != handshake.WordReplayed {
			t.Errorf("outcomes %v, want one answered and the others replayed", outcomes)
		}
	}
	if got := len(r.records()); got != 1 {
		t.Errorf("%d results are kept, want 1", got)
	}
}

// A check is refused without its request: if there is none, if it went to another agent, if it
// has another request_id, or if two requests match.
func TestCheckWithoutItsRequest(t *testing.T) {
	r := newRig(t)
	service := r.service()
	r.register(card("c", "c-now", "2026-03-01", "", "honesty"))
	refused(t, service, from("a", check("r-1")), handshake.WordNoRequest, http.StatusConflict)
	toC := from("a", request("r-1"))
	toC.Responder = "c"
	answered[*schema.CardResponse](t, service, toC)
	refused(t, service, from("a", check("r-1")), handshake.WordNoRequest, http.StatusConflict)
	refused(t, service, from("a", check("r-2")), handshake.WordNoRequest, http.StatusConflict)

	anyone := func(raw []byte) handshake.Question {
		q := from("", raw)
		q.Speaks = func(string) bool { return true } // as without tokens on loopback
		return q
	}
	for _, agent := range []string{"a", "z"} {
		answered[*schema.CardResponse](t, service, anyone(request("r-3", func(m *schema.CardRequest) {
			m.Requester = schema.Requester{AgentID: agent, CardID: agent + "-now"}
		})))
	}
	refused(t, service, anyone(check("r-3", func(m *schema.CoherenceCheck) { m.InitiatorCardID = "nobody's" })), handshake.WordNoRequest, http.StatusConflict)
	result := answered[*schema.CoherenceResult](t, service, anyone(check("r-3")))
	if !result.Proceed {
		t.Errorf("result %+v", result)
	}
}

// A sender for many agents can store many requests under one id. Others pay only a few lookups,
// and the earliest request is found.
func TestFloodOfRequestsUnderOneID(t *testing.T) {
	r := newRig(t)
	service := r.service()
	answered[*schema.CardResponse](t, service, from("a", request("r-1")))
	anyone := func(raw []byte) handshake.Question {
		q := from("", raw)
		q.Speaks = func(string) bool { return true } // as without tokens on loopback
		return q
	}
	for i := range 80 {
		answered[*schema.CardResponse](t, service, anyone(request("r-1", func(m *schema.CardRequest) {
			m.Requester = schema.Requester{AgentID: fmt.Sprint("z-", i), CardID: "z-now"}
		})))
	}
	looked := r.looks.Load()
	if result := answered[*schema.CoherenceResult](t, service, from("a", check("r-1"))); !result.Proceed {
		t.Errorf("result %+v", result)
	}
	if looked = r.looks.Load() - looked; looked == 0 || looked > 64 {
		t.Errorf("the check looked at %d requests", looked)
	}
}

// Both limits of the five minutes belong to the window. Outside it the answer contains the
// service's time, and the message may be sent again with a correct one.
func TestFreshness(t *testing.T) {
	service := newRig(t).service()
	at := func(offset time.Duration) func(*schema.CardRequest) {
		return func(m *schema.CardRequest) { m.Timestamp = noon.Add(offset) }
	}
	for _, offset := range []time.Duration{-301 * time.Second, 301 * time.Second, -24 * time.Hour} {
		message := refused(t, service, from("a", request("r-1", at(offset))), handshake.WordStale, http.StatusBadRequest)
		if !strings.Contains(message, "2026-06-01T12:00:00Z") {
			t.Errorf("%s: %s", offset, message)
		}
	}
	answered[*schema.CardResponse](t, service, from("a", request("r-1", at(-300*time.Second))))
	ahead := answered[*schema.CardResponse](t, service, from("a", request("r-2", at(300*time.Second))))
	if !ahead.Timestamp.Equal(noon.Add(300 * time.Second)) {
		t.Errorf("the answer is of %s, before what it answers", ahead.Timestamp)
	}
	late := func(m *schema.CoherenceCheck) { m.Timestamp = noon.Add(-301 * time.Second) }
	refused(t, service, from("a", check("r-1", late)), handshake.WordStale, http.StatusBadRequest)
	answered[*schema.CoherenceResult](t, service, from("a", check("r-1")))
}
