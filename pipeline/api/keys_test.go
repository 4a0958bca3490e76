package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/plumbline/plumbline/aivs/keyring"
	aivsmicro "github.com/plumbline/plumbline/aivs/micro"
	"github.com/plumbline/plumbline/pipeline/handshake"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

// keysAt returns the ids of the public keys at a path.
func (r *rig) keysAt(path string) (ids []string) {
	r.t.Helper()
	for _, k := range decided[map[string][]publicKey](r.t, r.send(http.MethodGet, path, nil), http.StatusOK)["keys"] {
		ids = append(ids, k.KeyID)
	}
	return ids
}

// rotate replaces a key while the stage runs, and waits until the new one is published.
func (r *rig) rotate(slot keystore.Slot, shown string) (before, next string) {
	r.t.Helper()
	first, err := slot.Load(r.t.Context(), time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	made, err := slot.Rotate(r.t.Context(), keystore.Period{From: time.Now()}, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	r.await(func() bool { return r.keysAt(shown)[0] == made.Entry.KeyID })
	return first.Entry.KeyID, made.Entry.KeyID
}

// The key of AIVS-Micro is rotated while the stage runs. Proofs from before and after are valid,
// each with its own key, and the ledger has every key.
func TestMicroKeyIsRotated(t *testing.T) {
	r := start(t)
	old := r.micro("/v1/micro", scanned())
	before, next := r.rotate(keystore.Slot{Path: r.api.Config.MicroKeyFile, Purpose: keyring.Micro}, "/v1/micro/keys")
	for want, proof := range map[string]reply{before: old, next: r.micro("/v1/micro", scanned())} {
		if v := r.outcome(proof.text); v.Result != aivsmicro.Pass || v.KeyID != want {
			t.Errorf("got %+v, want key %s", v, want)
		}
	}
	if ids := r.keysAt("/v1/micro/keys"); len(ids) != 2 || ids[1] != before {
		t.Errorf("the keys are %v", ids)
	}
	events := r.broker.Read(stream.Ledger, "", 4) // the start, the keys of micro and of the handshake, and the new key
	if event, err := wire.ParseEvent(events[3].Subject, events[3].ID(), events[3].Data); err != nil || event.Type != "META" || !strings.Contains(string(event.Data), next) {
		t.Errorf("the ledger's stream has %+v, error %v", event, err)
	}
}

// The key of the handshake is rotated as well. The next answer over HTTP is signed with the new
// key, and the service on NATS names it.
func TestHandshakeKeyIsRotated(t *testing.T) {
	r := start(t, withTokens(t, "a did:web:a,did:web:b cards:write,handshake"))
	r.register(card("did:web:a", "1"), bearing("a"))
	r.register(card("did:web:b", "2"), bearing("a"))
	signer := func(id string) string {
		answer := r.shake("did:web:b", cardRequest(id, "did:web:a"), bearing("a"))
		var response struct {
			AlignmentCard json.RawMessage  `json:"alignment_card"`
			Signature     schema.Signature `json:"signature"`
		}
		if err := json.Unmarshal([]byte(answer.text), &response); err != nil || answer.code != http.StatusOK {
			t.Fatal(answer, err)
		}
		if err := signature.Verify(response.AlignmentCard, response.Signature, r.api.handshakes.Keys()); err != nil {
			t.Error(err)
		}
		return response.Signature.KeyID
	}
	first := signer("1")
	before, next := r.rotate(keystore.Slot{Path: r.api.Config.HandshakeKeyFile, Purpose: keyring.Handshake}, "/v1/handshake/keys")
	if second := signer("2"); first != before || second != next {
		t.Errorf("signed by %s, then %s; want %s, %s", first, second, before, next)
	}
	if ids := r.keysAt("/v1/handshake/keys"); len(ids) != 2 || ids[1] != before {
		t.Errorf("the keys are %v", ids)
	}
	conn, err := nats.Connect(r.broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r.await(func() bool {
		answer, err := conn.Request("$SRV.INFO."+handshake.ServiceName, nil, 5*time.Second)
		var info micro.Info
		if err == nil {
			err = json.Unmarshal(answer.Data, &info)
		}
		return err == nil && info.Metadata["key_id"] == next
	})
}

// ended makes the key in a file expire: it ended an hour ago.
func ended(t *testing.T, file string, purpose keyring.Purpose) {
	t.Helper()
	begun := time.Now().Add(-2 * time.Hour)
	if _, err := (keystore.Slot{Path: file, Purpose: purpose}).New(t.Context(), keystore.Period{From: begun, Until: begun.Add(time.Hour)}, begun); err != nil {
		t.Fatal(err)
	}
}

// refusedForKey checks that the answer names the key to rotate.
func refusedForKey(t *testing.T, answer reply, purpose keyring.Purpose) {
	t.Helper()
	if answer.code != http.StatusServiceUnavailable || !strings.Contains(answer.text, "create a new one with: plumbline keys rotate "+string(purpose)) {
		t.Errorf("the answer is %+v", answer)
	}
}

// An expired key signs nothing, and the refusal says what to do.
func TestEndedMicroKey(t *testing.T) {
	r := start(t, func(cfg *setup) { ended(t, cfg.MicroKeyFile, keyring.Micro) })
	answer := r.micro("/v1/micro", scanned())
	refusedForKey(t, answer, keyring.Micro)
	if answer.header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	if keys := r.api.microKeys(nil, time.Now().Add(-90*time.Minute)); len(keys) != 1 {
		t.Errorf("%d keys for a scan within its time", len(keys))
	}
	if keys := r.api.microKeys(nil, time.Now()); len(keys) != 0 {
		t.Errorf("%d keys for a scan after it", len(keys))
	}
}

func TestEndedHandshakeKey(t *testing.T) {
	r := start(t, withTokens(t, "a did:web:a,did:web:b cards:write,handshake"), func(cfg *setup) { ended(t, cfg.HandshakeKeyFile, keyring.Handshake) })
	r.register(card("did:web:a", "1"), bearing("a"))
	r.register(card("did:web:b", "2"), bearing("a"))
	refusedForKey(t, r.shake("did:web:b", cardRequest("1", "did:web:a"), bearing("a")), keyring.Handshake)
}
