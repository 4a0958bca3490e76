package aivs_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"log"

	"github.com/plumbline/plumbline/aivs"
)

// A session of one action becomes a signed bundle, which is then verified against the signer's
// public key.
func Example() {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)) // in practice, from a key file
	rows := []aivs.Row{{
		ActionType: aivs.ActionToolCall, ToolName: "tool.search",
		InputsJSON: `{"query": "green tea"}`, OutputsJSON: `{"hits": 3}`, Timestamp: 1773502200.5,
	}}
	bundle, err := aivs.Build(&aivs.Input{
		SessionID: "sess-1", AgentID: "did:web:shop.example", ExportedAt: 1773502245, Part: 1, LastPart: true,
		TraceCount: int64(len(rows)), Rows: aivs.SliceRows(rows), Generator: "example",
	}, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bundle.FileName, bundle.Rows, "rows")

	public := key.Public().(ed25519.PublicKey)
	report, err := aivs.Verify(bytes.NewReader(bundle.Bytes), aivs.Options{Keys: []ed25519.PublicKey{public}})
	if err != nil {
		log.Fatal(err) // the bundle could not be read
	}
	fmt.Println(report.Conclusion())
	fmt.Println("signature", report.Signature, "by a required key:", report.KeyPinned)

	// Output:
	// aivs_proof_sess-1_1773502245.tar.gz 3 rows
	// INTACT: this bundle is unchanged since it was signed. It says nothing about whether the agent behaved well.
	// signature valid by a required key: true
}
