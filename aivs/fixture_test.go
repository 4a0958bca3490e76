package aivs

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/aivs/pyjson"
)

// testKey returns a signing key derived from a phrase.
func testKey(phrase string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(phrase))
	return ed25519.NewKeyFromSeed(seed[:])
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// sampleInput returns a session of n traces with an example of every feature.
func sampleInput(n int) *Input {
	rows := make([]Row, n)
	var traces bytes.Buffer
	for i := range rows {
		trace := pyjson.Line(fmt.Appendf(nil, `{"trace_id":"t%d","note":"caf\u00e9 \u2028 %s"}`, i, "é\u0085😀"))
		sum := sha256.Sum256(trace)
		traces.Write(trace)
		traces.WriteByte('\n')
		rows[i] = Row{ActionType: "aap.execute", ToolName: "agent:7%.read", CostCents: int64(i % 3), Timestamp: 1710252645.5 + float64(i)/8,
			InputsJSON:  `{"trace_id":"t` + fmt.Sprint(i) + `","trace_sha256":"` + hex.EncodeToString(sum[:]) + `","inputs":{"path":"/tmp"}}`,
			OutputsJSON: `{"text":"é 😀"}`, Error: ""}
	}
	return &Input{
		SessionID: "sess:a/ü%1", AgentID: "agent:7", ExportedAt: 1773502245, Part: 2, LastPart: true,
		TraceCount: int64(n), Redactions: 3, OptionalRedactions: 2, Generator: "Plumbline", GeneratorURL: "https://example.org/plumbline",
		PreviousBundleSHA256: hexSHA256([]byte("before")), Rows: SliceRows(rows),
		Members: []Member{
			{Name: TracesMember, Data: traces.Bytes()},
			{Name: VerdictsMember, Data: []byte("{}\n")},
			{Name: "cards/c1.json", Data: []byte(`{"card_id":"c1"}`)},
		},
	}
}

// build builds a bundle or ends the test.
func build(t testing.TB, in *Input, key ed25519.PrivateKey) *Bundle {
	t.Helper()
	bundle, err := Build(in, key)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// judge verifies a bundle's bytes in Go.
func judge(t testing.TB, bundle []byte, options Options) *Report {
	t.Helper()
	report, err := Verify(bytes.NewReader(bundle), options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}
