package signature

import (
	"testing"

	"github.com/plumbline/plumbline/schema/published"
)

// BenchmarkVerify checks the signature of a trace, and BenchmarkPayload makes only the bytes that are signed.
func BenchmarkVerify(b *testing.B) {
	signed := signedTrace(b)
	s, err := Sign(signed, "k1", secret(b))
	if err != nil {
		b.Fatal(err)
	}
	trusted := keys(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := Verify(signed, s, trusted); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPayload(b *testing.B) {
	signed := signedTrace(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Payload(signed); err != nil {
			b.Fatal(err)
		}
	}
}

// signedTrace returns a trace of the specification, signed.
func signedTrace(b *testing.B) []byte {
	b.Helper()
	signed, err := Signed(published.Read(b, "conformance/aap/spec_example_trace.json"), "k1", secret(b))
	if err != nil {
		b.Fatal(err)
	}
	return signed
}
