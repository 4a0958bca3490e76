package api

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/micro"
	"github.com/plumbline/plumbline/schema/published"
)

// scanned returns the scan of the draft's example (section 6.2), with full hashes.
func scanned(members ...string) string {
	scan := map[string]any{"url": "https://example.com", "timestamp": "2026-03-14T10:22:01Z", "scan_origin": "local",
		"dom_hash": "sha256:" + strings.Repeat("a1", 32), "scanner_version_hash": strings.Repeat("de", 32)}
	for i := 0; i+1 < len(members); i += 2 {
		scan[members[i]] = members[i+1]
	}
	text, err := json.Marshal(scan)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (r *rig) micro(path, body string, headers ...string) reply {
	r.t.Helper()
	return r.send(http.MethodPost, path, strings.NewReader(body), append([]string{"Content-Type: application/json"}, headers...)...)
}

// outcome returns the result of verifying a proof.
func (r *rig) outcome(body string) microVerdict {
	r.t.Helper()
	return decided[microVerdict](r.t, r.micro("/v1/micro/verify", body), http.StatusOK)
}

func TestMicroIsSignedAndVerified(t *testing.T) {
	r := start(t)
	answer := r.micro("/v1/micro", scanned("url", "https://example.com/?q=a|b"))
	proof, err := micro.Parse([]byte(answer.text))
	if err != nil || answer.code != http.StatusCreated {
		t.Fatal(answer, err)
	}
	want := "https://example.com/?q=a%7Cb|sha256:" + strings.Repeat("a1", 32) + "|2026-03-14T10:22:01.000000000Z|sha256:" + strings.Repeat("de", 32) + "|local"
	if proof.Payload() != want {
		t.Errorf("signed %s, want %s", proof.Payload(), want)
	}
	if v := r.outcome(answer.text); v.Result != micro.Pass || v.KeyID == "" {
		t.Errorf("own proof: %+v", v)
	}
	if leap := r.micro("/v1/micro", scanned("timestamp", "2016-12-31t23:59:60z")); leap.code != http.StatusCreated || !strings.Contains(leap.text, "2017-01-01T00:00:00.000000000Z") {
		t.Errorf("a leap second in lower case: %+v", leap)
	}
	keys := decided[map[string][]publicKey](t, r.send(http.MethodGet, "/v1/micro/keys", nil), http.StatusOK)["keys"]
	if len(keys) != 1 {
		t.Fatal(keys)
	}
	public := r.api.microKey.Opened().Private.Public().(ed25519.PublicKey)
	other := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	for key, want := range map[string]micro.Result{hex.EncodeToString(public): micro.Pass, hex.EncodeToString(other): micro.Fail} {
		if v := r.outcome(`{"proof":` + answer.text + `,"public_key":"` + key + `"}`); v.Result != want {
			t.Errorf("by %s: %+v, want %s", key, v, want)
		}
	}
	for _, member := range []string{"url", "dom_hash", "timestamp", "scanner_version_hash", "scan_origin"} {
		changed := *proof
		text, err := json.Marshal(&changed)
		if err != nil {
			t.Fatal(err)
		}
		altered := strings.Replace(string(text), map[string]string{"url": "example.com", "dom_hash": "a1a1", "timestamp": "2026", "scanner_version_hash": "dede",
			"scan_origin": "local"}[member], map[string]string{"url": "example.org", "dom_hash": "b1a1", "timestamp": "2027", "scanner_version_hash": "eede", "scan_origin": "cloud"}[member], 1)
		if v := r.outcome(altered); v.Result != micro.Fail || v.Message == "" {
			t.Errorf("%s changed: %+v", member, v)
		}
	}
}

// A proof without a signature proves nothing. A body that is not a proof fails.
func TestMicroVerifyOfUnsignedAndOfNoProof(t *testing.T) {
	r := start(t)
	unsigned := `{"url":"https://swarmsync.ai","dom_hash":"sha256:` + strings.Repeat("26", 32) + `","timestamp":"2026-03-14T10:22:01.000000000Z",` +
		`"signature":"unsigned","scanner_version_hash":"sha256:` + strings.Repeat("6f", 32) + `","scan_origin":"local"}`
	if v := r.outcome(unsigned); v.Result != micro.Skip {
		t.Errorf("the result is %+v", v)
	}
	if v := r.outcome(strings.Replace(unsigned, "26-03-14T", "26-03-14 ", 1)); v.Result != micro.Fail || len(v.Faults) != 1 || v.Faults[0].Pointer != "/timestamp" {
		t.Errorf("the result is %+v", v)
	}
	if v := r.outcome(`{}`); v.Result != micro.Fail || len(v.Faults) != 6 {
		t.Errorf("the result is %+v", v)
	}
	for _, body := range []string{"", "[]", "{", `{"proof":{},"public_key":"x"}`, `{"proof":{},"key":"x"}`, `{"proof":{},"proof":{}}`} {
		if answer := r.micro("/v1/micro/verify", body); answer.code != http.StatusBadRequest {
			t.Errorf("%s: the answer is %+v", body, answer)
		}
	}
}

func TestMicroVerifyOfThePublishedExample(t *testing.T) {
	text := published.Read(t, "conformance/aivs/aivs-spec-examples/aivs-micro.json")
	if v := start(t).outcome(string(text)); v.Result != micro.Skip {
		t.Errorf("the result is %+v", v)
	}
}

func TestMicroRefusesWithEveryFault(t *testing.T) {
	r := start(t)
	answer := r.micro("/v1/micro", scanned("url", "nowhere", "dom_hash", "A1", "scanner_version_hash", "", "scan_origin", "a|b"))
	if p := answer.problem(t); answer.code != http.StatusBadRequest || p.Word != "invalid_scan" || len(p.Faults) != 4 {
		t.Errorf("the answer is %+v", answer)
	}
	for _, body := range []string{"", "[]", `{"url":1}`, scanned("timestamp", "yesterday"), scanned("signature", "unsigned"), `{"url":"a","url":"b"}`} {
		if answer := r.micro("/v1/micro", body); answer.code != http.StatusBadRequest {
			t.Errorf("%s: the answer is %+v", body, answer)
		}
	}
	if answer := r.send(http.MethodPost, "/v1/micro", strings.NewReader(scanned()), "Content-Type: text/plain"); answer.code != http.StatusUnsupportedMediaType {
		t.Errorf("the answer is %+v", answer)
	}
	if answer := r.micro("/v1/micro", scanned("url", "https://e.com/"+strings.Repeat("x", micro.MaxBytes))); answer.code != http.StatusRequestEntityTooLarge {
		t.Errorf("the answer is %+v", answer)
	}
}

// Signing needs its scope. Verifying needs none.
func TestMicroScopes(t *testing.T) {
	r := start(t, withTokens(t, "scanner * micro:write", "agent * traces:write"))
	for token, want := range map[string]int{"scanner": http.StatusCreated, "agent": http.StatusForbidden, "nobody": http.StatusUnauthorized} {
		answer := r.micro("/v1/micro", scanned(), "Authorization: Bearer "+token)
		if answer.code != want {
			t.Errorf("%s: the answer is %+v, want %d", token, answer, want)
		}
		if want != http.StatusCreated {
			continue
		}
		if v := r.outcome(answer.text); v.Result != micro.Pass {
			t.Errorf("the result is %+v", v)
		}
	}
}
