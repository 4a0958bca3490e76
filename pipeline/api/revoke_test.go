package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

func TestRevocationsAreListed(t *testing.T) {
	r := start(t)
	if answer := r.ask("x", revocationPath); answer.code != http.StatusOK || answer.text != `{"revoked":[]}`+"\n" {
		t.Errorf("none: the answer is %d %s", answer.code, answer.text)
	}
	before := time.Now().Truncate(time.Millisecond)
	for _, id := range []string{"b", "a/%2F?"} {
		r.register(card("did:web:a", id))
		if answer := r.revoke(id, `{"reason":"lost \"it\" <b>"}`); answer.code != http.StatusCreated || !strings.Contains(answer.text, `"agent_id":"did:web:a"`) {
			t.Errorf("the answer is %d %s", answer.code, answer.text)
		}
		done := time.Now().Truncate(time.Millisecond)
		r.await(func() bool { // revocations of one millisecond are listed by card id
			state, err := r.api.broker.StreamState(t.Context(), stream.Traces)
			return err != nil || state.Now.Truncate(time.Millisecond).After(done)
		})
	}
	var list map[string][]map[string]string
	answer := r.ask("x", revocationPath)
	if err := json.Unmarshal([]byte(answer.text), &list); err != nil || len(list) != 1 || len(list["revoked"]) != 2 {
		t.Fatalf("%s: %v", answer.text, err)
	}
	if answer.header.Get("Content-Type") != "application/json" {
		t.Errorf("Content-Type %q", answer.header.Get("Content-Type"))
	}
	last := before
	for i, want := range []string{"b", "a/%2F?"} { // in order of time
		got := list["revoked"][i]
		at, err := time.Parse(time.RFC3339, got["revoked_at"])
		if len(got) != 3 || got["card_id"] != want || got["reason"] != `lost "it" <b>` || err != nil {
			t.Errorf("%v, error %v", got, err)
		}
		if at.Before(last) || at.After(time.Now()) || !strings.HasSuffix(got["revoked_at"], "Z") {
			t.Errorf("revoked at %s", got["revoked_at"])
		}
		last = at
	}
}

func TestRevokedOnce(t *testing.T) {
	r := start(t)
	r.register(card("did:web:a", "1"))
	const callers = 8
	answers := make([]reply, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() { answers[i] = r.revoke("1", `{"reason":"`+strings.Repeat("x", i+1)+`"}`) })
	}
	group.Wait()
	created := 0
	for _, answer := range answers {
		if answer.text != answers[0].text {
			t.Errorf("%s and %s", answer.text, answers[0].text)
		}
		if answer.code == http.StatusCreated {
			created++
		} else if answer.code != http.StatusOK {
			t.Errorf("the answer is %d %s", answer.code, answer.text)
		}
	}
	if created != 1 {
		t.Errorf("%d answers say that they revoked it, want 1", created)
	}
	if again := r.revoke("1", `{"reason":"another"}`); again.code != http.StatusOK || again.text != answers[0].text {
		t.Errorf("the answer is %d %s", again.code, again.text)
	}
	events := r.broker.Read(stream.Ledger, "", 4) // the start, its two keys, and one event of the revocation
	if event, err := wire.ParseEvent(events[3].Subject, events[3].ID(), events[3].Data); err != nil || event.Type != "RETRACT" || !strings.Contains(string(event.Data), `"card_id":"1"`) {
		t.Errorf("the ledger's stream holds %+v, error %v", event, err)
	}
	if event, err := wire.ParseEvent(events[0].Subject, events[0].ID(), events[0].Data); err != nil || event.Type != "BOOT" || !strings.Contains(string(event.Data), `"service":"ingest"`) {
		t.Errorf("the ledger's stream begins with %+v, error %v", event, err)
	}
	if again := r.putCard("1", card("did:web:a", "1")); again.code != http.StatusOK {
		t.Errorf("registered again: the answer is %d %s", again.code, again.text)
	}
}

func TestRevocationIsRefused(t *testing.T) {
	r := start(t, withTokens(t, "shop did:web:shop cards:write", "thief did:web:thief cards:write", "reader * cards:read"))
	r.register(card("did:web:shop", "1"), bearing("shop"))
	long := `{"reason":"` + strings.Repeat("x", schema.MaxReasonBytes+1) + `"}`
	for name, c := range map[string]struct {
		id, body, token string
		code            int
		want            string
	}{
		"unknown card":   {"2", `{"reason":"r"}`, "shop", http.StatusNotFound, "unknown_card"},
		"another's card": {"1", `{"reason":"r"}`, "thief", http.StatusForbidden, "forbidden"},
		"scope":          {"1", `{"reason":"r"}`, "reader", http.StatusForbidden, "cards:write"},
		"no reason":      {"1", `{}`, "shop", http.StatusBadRequest, "/reason"},
		"empty reason":   {"1", `{"reason":""}`, "shop", http.StatusBadRequest, "/reason"},
		"long reason":    {"1", long, "shop", http.StatusBadRequest, "a reason may have 1024"},
		"another member": {"1", `{"reason":"r","revoked_at":"2020-01-01T00:00:00Z"}`, "shop", http.StatusBadRequest, "revoked_at"},
		"not JSON":       {"1", `reason`, "shop", http.StatusBadRequest, "want {reason}"},
		"too large":      {"1", `{"reason":"` + strings.Repeat(" ", maxRevocationBytes) + `"}`, "shop", http.StatusRequestEntityTooLarge, "too_large"},
	} {
		answer := r.revoke(c.id, c.body, bearing(c.token))
		if answer.code != c.code || !strings.Contains(answer.text, c.want) {
			t.Errorf("%s: the answer is %d %s, want %d with %s", name, answer.code, answer.text, c.code, c.want)
		}
	}
	if answer := r.ask("x", revocationPath); answer.text != `{"revoked":[]}`+"\n" {
		t.Errorf("after the refusals: %s", answer.text)
	}
}

// TestRevocationReachesOtherInstances checks that a card that one service has revoked is no
// longer served by the other.
func TestRevocationReachesOtherInstances(t *testing.T) {
	first := start(t)
	second := onBrokerOf(t, first)
	first.register(card("did:web:a.example", "1"))
	await := func(what string, code int) {
		t.Helper()
		for second.ask("a.example", currentPath).code != code {
			if t.Context().Err() != nil {
				t.Fatal(what)
			}
		}
	}
	await("the card is there", http.StatusOK)
	if answer := first.revoke("1", `{"reason":"r"}`); answer.code != http.StatusCreated {
		t.Fatal(answer.text)
	}
	await("the card is revoked", http.StatusNotFound)
}

// asleep is a broker whose clock is a day behind.
type asleep struct{ Broker }

func (a asleep) StreamState(ctx context.Context, name string) (stream.State, error) {
	state, err := a.Broker.StreamState(ctx, name)
	state.Now = state.Now.Add(-24 * time.Hour)
	return state, err
}

// A revocation has the time of the same clock as the traces that it is compared with. If the
// clock of the service is slow, no trace is wrongly accused.
func TestRevocationIsDatedByTheBroker(t *testing.T) {
	r := start(t)
	r.api.broker = asleep{r.api.broker}
	r.register(card("did:web:a", "1"))
	var revoked schema.Revocation
	answer := r.revoke("1", `{"reason":"lost"}`)
	if err := json.Unmarshal([]byte(answer.text), &revoked); err != nil || answer.code != http.StatusCreated {
		t.Fatalf("the answer is %d %s", answer.code, answer.text)
	}
	if behind := time.Since(revoked.RevokedAt); behind < 24*time.Hour || behind > 25*time.Hour {
		t.Errorf("revoked at %s, by a broker whose clock is a day behind", revoked.RevokedAt)
	}
}
