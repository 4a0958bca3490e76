package aivs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/schema/published"
)

func TestVectorsRows(t *testing.T) {
	var v struct {
		Seed   string `json:"key_seed_hex"`
		Public string `json:"public_key_hex"`
		Rows   []struct {
			Preimage string
			Hash     string `json:"row_hash"`
		}
		ChainHash string `json:"chain_hash"`
		Signature string `json:"signature_b64"`
		Empty     string `json:"empty_chain_hash"`
	}
	if err := json.Unmarshal(published.Read(t, "conformance/aivs/aivs_rows_own.json"), &v); err != nil {
		t.Fatal(err)
	}
	chain := NewChain()
	for _, want := range v.Rows {
		row := rowOf(t, want.Preimage)
		chain.Link(&row)
		if got := string(row.appendPreimage(nil)); got != want.Preimage || row.RowHash != want.Hash {
			t.Errorf("preimage %s hash %s, want %s %s", got, row.RowHash, want.Preimage, want.Hash)
		}
	}
	if chain.Hash() != v.ChainHash || NewChain().Hash() != v.Empty {
		t.Errorf("chain hash %s, of no rows %s", chain.Hash(), NewChain().Hash())
	}
	seed, err := hex.DecodeString(v.Seed)
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	want := "chain_hash:" + v.ChainHash + "\nsignature:" + v.Signature + "\n"
	if got := string(signatureFile(key, v.ChainHash)); got != want || hex.EncodeToString(publicOf(key)) != v.Public {
		t.Errorf("signature file %q, want %q", got, want)
	}
	if _, err := base64.StdEncoding.DecodeString(v.Signature); err != nil {
		t.Fatal(err)
	}
}

// rowOf parses the hashed fields of a preimage.
func rowOf(t *testing.T, preimage string) Row {
	t.Helper()
	fields := strings.Split(preimage, ":")
	if len(fields) != 7 {
		t.Fatalf("preimage %q has %d fields", preimage, len(fields))
	}
	cost, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	timestamp, err := strconv.ParseFloat(fields[5], 64)
	if err != nil {
		t.Fatal(err)
	}
	return Row{SessionID: fields[1], ActionType: fields[2], ToolName: fields[3], CostCents: cost, Timestamp: timestamp}
}

// The published example log of five rows has the published chain hash.
func TestVectorsPublishedLog(t *testing.T) {
	var manifest struct {
		ChainHash string `json:"chain_hash"`
	}
	if err := json.Unmarshal(published.Read(t, "conformance/aivs/aivs-spec-examples/manifest.json"), &manifest); err != nil {
		t.Fatal(err)
	}
	check := newLogCheck(nil)
	err := eachLine(bytes.NewReader(published.Read(t, "conformance/aivs/aivs-spec-examples/audit-log.jsonl")), 1<<20, check.line)
	if err != nil || check.fault != nil {
		t.Fatal(err, check.fault)
	}
	if check.chain.Rows() != 5 || check.chain.Hash() != manifest.ChainHash || check.dialect() != DialectDraft {
		t.Errorf("%d rows, chain hash %s, dialect %s", check.chain.Rows(), check.chain.Hash(), check.dialect())
	}
}

// tableRow matches one line of the table of whole and tampered bundles: number, name, and the
// strict verifier's verdict without and with a pinned key.
var tableRow = regexp.MustCompile(`(?m)^\| (\d\d) ([^|]*)\|(?:[^|]*\|){4} ([^|]*) \| ([^|]*) \|$`)

func TestVectorsTampered(t *testing.T) {
	table := tableRow.FindAllStringSubmatch(string(published.Read(t, "conformance/aivs/tampered/tamper_table.md")), -1)
	if len(table) != 43 {
		t.Fatalf("the table has %d bundles, not 43", len(table))
	}
	clean, err := ParseKey("ef1b6dfc311fb11ea7f10dcc06ff3a8fc64a722ff337df246965979663771fb7")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, line := range table {
		number, name, strict, pinned := line[1], line[2], line[3] == "pass", line[4] == "pass"
		bundle := published.Read(t, "conformance/aivs/tampered/"+number+".tar.gz")
		if report := judge(t, bundle, Options{}); report.Intact != strict {
			t.Errorf("%s %s: %+v", number, name, report)
		}
		options := Options{Keys: []ed25519.PublicKey{clean}, RequireSignature: true}
		if report := judge(t, bundle, options); report.Intact != pinned {
			t.Errorf("%s %s, with key: %+v", number, name, report)
		}
		unpackInto(t, filepath.Join(root, number), aivstest.Gunzip(t, bundle))
	}
	strict := judgeAll(t, root, len(table))
	pinned := judgeAll(t, root, len(table), "--key", hex.EncodeToString(clean))
	for i, line := range table {
		if passed := strings.HasPrefix(strict[i], "0 "); passed != (line[3] == "pass") {
			t.Errorf("%s %s: verify.py reports %s", line[1], line[2], strict[i])
		}
		if passed := strings.HasPrefix(pinned[i], "0 "); passed != (line[4] == "pass") {
			t.Errorf("%s %s: verify.py --key reports %s", line[1], line[2], pinned[i])
		}
	}
}

func TestVectorsSidecarIsAccepted(t *testing.T) {
	bundle := published.Read(t, "conformance/aivs/bundle_with_dsse.tar.gz")
	if report := judge(t, bundle, Options{RequireSignature: true}); !report.Intact {
		t.Errorf("%+v", report)
	}
}

// The rebuilt rows equal those of the clean vector byte for byte.
func TestVectorsLogText(t *testing.T) {
	directory := unpack(t, published.Read(t, "conformance/aivs/tampered/00.tar.gz"))
	want, err := os.ReadFile(filepath.Join(directory, logFile))
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for line := range bytes.Lines(want) {
		row, err := ParseRow(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		got = append(row.AppendJSON(got), '\n')
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
