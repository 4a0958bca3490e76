package aivs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/schema/published"
)

func TestVectorsEnvelope(t *testing.T) {
	var vector struct {
		PAE      string          `json:"pae_sha256"`
		Length   int             `json:"pae_len"`
		Envelope json.RawMessage `json:"envelope"`
		Key      string          `json:"public_key_hex"`
	}
	if err := json.Unmarshal(published.Read(t, "conformance/aivs/dsse_example.json"), &vector); err != nil {
		t.Fatal(err)
	}
	key, err := hex.DecodeString(vector.Key)
	if err != nil {
		t.Fatal(err)
	}
	payload, _, err := readEnvelope(vector.Envelope, key)
	if err != nil {
		t.Fatal(err)
	}
	if signed := preAuthentication(payloadType, payload); len(signed) != vector.Length || hexSHA256(signed) != vector.PAE {
		t.Errorf("%d bytes are signed, with digest %s", len(signed), hexSHA256(signed))
	}
	if _, _, err := readEnvelope(vector.Envelope, publicOf(testKey("other"))); err == nil {
		t.Error("the signature verifies with another key")
	}
}

// withFile returns the bundle's archive with one file replaced, or without it where change
// returns nil.
func withFile(t *testing.T, bundle []byte, name string, change func([]byte) []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	a, found := newArchive(&b), false
	for _, file := range entries(t, aivstest.Gunzip(t, bundle)) {
		if file.Name == name {
			found = true
			if file.Data = change(file.Data); file.Data == nil {
				continue
			}
		}
		a.bytes(file.Name, file.Data)
	}
	if err := a.close(); err != nil || !found {
		t.Fatalf("%s found: %v, error %v", name, found, err)
	}
	return b.Bytes()
}

func TestAttestationIsRequired(t *testing.T) {
	in := sampleInput(3)
	bundle := build(t, in, testKey("a")).Bytes
	if r := judge(t, bundle, Options{}); !r.Intact || !r.Attested {
		t.Fatalf("%+v", r)
	}
	var theirs []byte
	withFile(t, build(t, in, testKey("b")).Bytes, attestationFile, func(data []byte) []byte { theirs = data; return data })
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"gone":        {func([]byte) []byte { return nil }, "missing"},
		"another's":   {func([]byte) []byte { return theirs }, "no signature in it"},
		"not JSON":    {func([]byte) []byte { return []byte("{") }, ""},
		"white space": {func(data []byte) []byte { return append(data, ' ') }, "not written as"},
	} {
		r := judge(t, withFile(t, bundle, attestationFile, c.change), Options{})
		if r.Intact || !strings.Contains(r.Faults[0].Where+": "+r.Faults[0].Message, attestationFile+": "+c.want) {
			t.Errorf("%s: %+v", name, r.Faults)
		}
	}
	if r := judge(t, build(t, in, nil).Bytes, Options{}); !r.Intact || r.Attested {
		t.Errorf("an unsigned bundle: %+v", r)
	}
}

// TestAttestationCoversAPlainBundle checks that the attestation covers outputs, generator and
// verify.py, which the draft's own hash does not cover.
func TestAttestationCoversAPlainBundle(t *testing.T) {
	bundle := published.Read(t, "conformance/aivs/bundle_with_dsse.tar.gz")
	if r := judge(t, bundle, Options{}); !r.Intact || !r.Attested || r.Dialect == DialectPlumbline {
		t.Fatalf("%+v", r)
	}
	for name, change := range map[string]func([]byte) []byte{
		verifierFile:  func(data []byte) []byte { return append(data, "\n# changed"...) },
		manifestFile:  func(data []byte) []byte { return append(data, '\n') },
		keyFile:       func(data []byte) []byte { return append(data, '\n') },
		signatureName: func(data []byte) []byte { return append(data, '\n') },
		logFile:       func(data []byte) []byte { return append(data, '\n') },
	} {
		r := judge(t, withFile(t, bundle, name, change), Options{})
		if r.Intact || r.Faults[0].Where != attestationFile || !strings.Contains(r.Faults[0].Message, name) {
			t.Errorf("%s: %+v", name, r.Faults)
		}
	}
}

// envelopeWith returns an envelope with the encoded payload and entries as given, signed by the
// key over the plain payload.
func envelopeWith(payload []byte, kind, encoded, entries string) []byte {
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(testKey("k"), preAuthentication(kind, payload)))
	return fmt.Appendf(nil, `{"payloadType":%q,"payload":%q,"signatures":[%s]}`, kind, encoded, strings.ReplaceAll(entries, "SIG", signature))
}

// An envelope is checked as DSSE specifies: one signature by the key is enough, in either
// alphabet of base64 and among entries of other forms. Payload and signature each have one
// accepted text.
func TestEnvelopes(t *testing.T) {
	payload := []byte(`{"subject":"??>>"}`)
	plain := base64.StdEncoding.EncodeToString(payload)
	const good = `{"sig":"SIG"}`
	others := func(n int) string { return strings.Repeat(`{"sig":"AAAA"},`, n) }
	for name, c := range map[string]struct {
		envelope []byte
		want     string // in the error; "": the payload is returned
	}{
		"one signature":            {envelopeWith(payload, payloadType, plain, good), ""},
		"the other alphabet":       {envelopeWith(payload, payloadType, base64.URLEncoding.EncodeToString(payload), good), ""},
		"entries of other forms":   {envelopeWith(payload, payloadType, plain, `5,null,[],{"sig":7},{"sig":null},{"key":"SIG"},`+good), ""},
		"the last of a hundred":    {envelopeWith(payload, payloadType, plain, others(99)+good), ""},
		"one of a hundred and one": {envelopeWith(payload, payloadType, plain, others(100)+good), "more than 100 signatures"},
		"another type":             {envelopeWith(payload, "text/plain", plain, good), saysEnvelope},
		"payload cut off":          {envelopeWith(payload[:len(payload)-3], payloadType, strings.TrimRight(plain, "=")+"=", good), saysEnvelope},
		"payload with a line end":  {envelopeWith(payload, payloadType, plain+"\n", good), saysEnvelope},
		"payload of a line end":    {envelopeWith(nil, payloadType, "\n", good), saysEnvelope},
		"text behind a signature":  {envelopeWith(payload, payloadType, plain, `{"sig":"SIGA"}`), "no signature in it is by the key"},
		"a signature cut off":      {envelopeWith(payload, payloadType, plain, `{"sig":"AAAA"}`), "no signature in it is by the key"},
		"another payload":          {envelopeWith([]byte("{}"), payloadType, plain, good), "no signature in it is by the key"},
		"no signature":             {envelopeWith(payload, payloadType, plain, ""), "no signature in it is by the key"},
		"an entry of two":          {envelopeWith(payload, payloadType, plain, `{"sig":"SIG","sig":5}`), "duplicate"},
	} {
		got, _, err := readEnvelope(c.envelope, publicOf(testKey("k")))
		if c.want == "" && (err != nil || !bytes.Equal(got, payload)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
