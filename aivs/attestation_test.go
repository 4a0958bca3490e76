package aivs

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

func TestVectorsEnvelope(t *testing.T) {
	var vector struct {
		PAE      string          `json:"pae_sha256"`
		Length   int             `json:"pae_len"`
		Envelope json.RawMessage `json:"envelope"`
		Key      string          `json:"public_key_hex"`
	}
	if err := json.Unmarshal(readShared(t, "aivs", "dsse_example.json"), &vector); err != nil {
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
		t.Error("another key verifies it")
	}
}

// withFile returns the bundle's archive with one file exchanged, or without it
// where change returns nil.
func withFile(t *testing.T, bundle []byte, name string, change func([]byte) []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	a, found := newArchive(&b), false
	for _, file := range entries(t, gunzipped(t, bundle)) {
		if file.Name == name {
			found = true
			if file.Data = change(file.Data); file.Data == nil {
				continue
			}
		}
		if err := a.bytes(file.Name, file.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.close(); err != nil || !found {
		t.Fatalf("%s found: %v, error %v", name, found, err)
	}
	return b.Bytes()
}

func TestAttestationIsDemanded(t *testing.T) {
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

// TestAttestationCoversAPlainBundle: where the draft's own hash covers neither
// outputs nor generator nor verify.py.
func TestAttestationCoversAPlainBundle(t *testing.T) {
	bundle := readShared(t, "aivs", "bundle_with_dsse.tar.gz")
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
