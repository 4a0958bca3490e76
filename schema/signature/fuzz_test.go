package signature

import (
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// An object that can be signed verifies with the signature inside it and separate from it. Any
// signature block it contains is checked without a panic.
func FuzzSign(f *testing.F) {
	f.Add([]byte(known), knownValue)
	f.Add([]byte(`{"signature": {"algorithm": "Ed25519", "value": "AA==", "key_id": "k1"}, "a": {"signature": 1}}`), "AA==")
	f.Add([]byte(`{"\u0073ignature": null, "signature ": "\ud83d\ude00", "n": 9007199254740993}`), "")
	f.Add([]byte(`{}`), "\n")
	f.Fuzz(func(t *testing.T, object []byte, value string) {
		foreign := schema.Signature{Algorithm: schema.SignatureEd25519, Value: value, KeyID: "k1"}
		if Verify(object, foreign, keys(t)) == nil && value != knownValue {
			t.Fatalf("%q verifies %q", value, object)
		}
		s, err := Sign(object, "k1", secret(t))
		if err != nil {
			return
		}
		if err := Verify(object, s, keys(t)); err != nil {
			t.Fatalf("%q: %v", object, err)
		}
		attached, err := Attach(object, s)
		if err != nil {
			t.Fatalf("attach to %q: %v", object, err)
		}
		if err := Verify(attached, s, keys(t)); err != nil {
			t.Fatalf("%q as %q: %v", object, attached, err)
		}
	})
}
