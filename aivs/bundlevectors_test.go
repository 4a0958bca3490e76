package aivs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// vectorsAt is the directory of the bundles that we publish for other implementations. Its
// README.md explains the members of expected.jsonl.
var vectorsAt = filepath.Join("..", "docs", "vectors", "bundles")

// bundleVector is one line of expected.jsonl.
type bundleVector struct {
	File      string           `json:"file"`
	Why       string           `json:"why"`
	Intact    bool             `json:"intact"`
	Pinned    bool             `json:"intact_by_key"`
	Where     string           `json:"where,omitempty"`
	Archive   bool             `json:"archive_only,omitempty"`
	Dialect   string           `json:"dialect"`
	Signature string           `json:"signature"`
	Covered   []string         `json:"covered"`
	Verdict   *RecordedVerdict `json:"verdict"`
}

func readBundleVectors(t *testing.T) (vectors []bundleVector) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(vectorsAt, "expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var v bundleVector
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

// Go and Python report for every published bundle what its line says, without a key and with the
// operator's.
func TestBundleVectors(t *testing.T) {
	vectors := readBundleVectors(t)
	files, err := filepath.Glob(filepath.Join(vectorsAt, "*.tar.gz"))
	if err != nil || len(files) != len(vectors) || len(files) < 20 {
		t.Fatalf("%d bundles, %d lines, %v", len(files), len(vectors), err)
	}
	key := publicOf(testKey("k"))
	place := t.TempDir()
	for i, v := range vectors {
		bundle, err := os.ReadFile(filepath.Join(vectorsAt, v.File))
		if err != nil {
			t.Fatal(err)
		}
		r := judge(t, bundle, Options{})
		got := bundleVector{v.File, v.Why, r.Intact, judge(t, bundle, Options{Keys: []ed25519.PublicKey{key}}).Intact, "", v.Archive, r.Dialect, r.Signature, r.Covered, r.Verdict}
		if !r.Intact {
			got.Where = r.Faults[0].Where
		}
		want, isWant := asJSON(t, v), asJSON(t, got)
		if want != isWant {
			t.Errorf("got  %s\nwant %s\n%+v", isWant, want, r.Faults)
		}
		unpackInto(t, filepath.Join(place, fmt.Sprintf("%03d", i)), aivstest.Gunzip(t, bundle))
	}
	without, with := judgeAll(t, place, len(vectors)), judgeAll(t, place, len(vectors), "--key", hex.EncodeToString(key))
	for i, v := range vectors {
		if v.Archive { // verify.py only sees the unpacked files
			continue
		}
		if strings.HasPrefix(without[i], "0 ") != v.Intact || !v.Intact && !strings.Contains(without[i], "FAIL  "+v.Where+":") {
			t.Errorf("%s: verify.py reports %s", v.File, without[i])
		}
		if strings.HasPrefix(with[i], "0 ") != v.Pinned {
			t.Errorf("%s: verify.py --key reports %s", v.File, with[i])
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The verify.py inside a bundle that an earlier version sealed still reports the bundle as
// intact, in its own words. So do both verifiers of this version, which know that version.
func TestFormerVerifierInItsBundle(t *testing.T) {
	bundle, err := os.ReadFile(filepath.Join(vectorsAt, "ours-signed.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(bundle, []byte(formerGzipHeader)) {
		t.Error("the bundle was compressed again: it must stay as commit c659c41 sealed it")
	}
	directory := unpack(t, bundle)
	if _, known := formerVerifiers[hexSHA256(read(t, directory, verifierFile))]; !known {
		t.Error("its verify.py is not known")
	}
	passed, output := runScript(t, filepath.Join(directory, verifierFile), directory)
	if !passed || !strings.Contains(output, "VERIFIED") {
		t.Error(output)
	}
	bundle = read(t, vectorsAt, "ours-signed-0.1.0.tar.gz")
	directory = unpack(t, bundle)
	if former := formerVerifiers[hexSHA256(read(t, directory, verifierFile))]; !former.known || former.formerGzip || !bytes.HasPrefix(bundle, []byte(gzipHeader)) {
		t.Errorf("the verify.py of 0.1.0: %+v", former)
	}
	if passed, output := runScript(t, filepath.Join(directory, verifierFile), directory); !passed || !strings.Contains(output, "SKIP  who signed") {
		t.Error(output)
	}
	if passed, output := python(t, directory); !passed || !judge(t, bundle, Options{}).Intact {
		t.Error(output)
	}
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var writeVectors = flag.Bool("write-vectors", false, "make the published bundles again, but for those that earlier versions sealed")

// TestWriteBundleVectors writes the published bundles to the given directory. It never writes
// those that an earlier version sealed.
func TestWriteBundleVectors(t *testing.T) {
	if !*writeVectors {
		made := map[string]bool{"ours-signed.tar.gz": true, "ours-unsigned.tar.gz": true, "ours-signed-0.1.0.tar.gz": true}
		for name := range vectorBundles(t) {
			made[name+".tar.gz"] = true
		}
		for _, v := range readBundleVectors(t) {
			if !made[v.File] {
				t.Errorf("no case makes %s", v.File)
			}
		}
		return
	}
	for name, bundle := range vectorBundles(t) {
		if err := os.WriteFile(filepath.Join(vectorsAt, name+".tar.gz"), bundle, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// vectorBundles returns the published bundles that this version makes.
func vectorBundles(t *testing.T) map[string][]byte {
	key := testKey("k")
	made := foreignVectors(t, key)
	good := read(t, vectorsAt, "ours-signed.tar.gz")
	rows := func(relink bool, change func(*Row)) func([]Member) []Member {
		return func(files []Member) []Member {
			return slices.Clone(withLog(t, files, relink, change))
		}
	}
	third := func(change func(*Row)) func(*Row) {
		return func(r *Row) {
			if r.ID == 4 {
				change(r)
			}
		}
	}
	for name, edit := range map[string]func([]Member) []Member{
		"ours-outputs-changed":  rows(false, third(func(r *Row) { r.OutputsJSON = strings.Replace(r.OutputsJSON, "true", "false", 1) })),
		"ours-tool-changed":     rows(true, third(func(r *Row) { r.ToolName = "bank.show" })),
		"ours-row-removed":      rows(false, func(r *Row) { *r = keepUnless(*r, r.ID == 3) }),
		"ours-traces-changed":   inFile(TracesMember, `"cents":125`, `"cents":999`),
		"ours-verdict-changed":  inFile(SessionMember, `"deny"`, `"proceed"`),
		"ours-signature-gone":   inFile(signatureName, "signature:", "# "),
		"ours-attestation-gone": without(attestationFile),
		"ours-stray-file":       func(f []Member) []Member { return append(f, Member{Name: "notes.txt", Data: []byte("x\n")}) },
	} {
		made[name] = former(t, tarOfFiles(t, edit(entries(t, aivstest.Gunzip(t, good)))...))
	}
	again := former(t, aivstest.Gunzip(t, good))
	again[4] = 1 // the time in the gzip header
	made["ours-compressed-again"] = again
	return made
}

// keepUnless marks a row to be left out if out is true.
func keepUnless(r Row, out bool) Row {
	if out {
		r.ID = 0
	}
	return r
}

// withLog changes the rows of a log; relink chains them again. It signs nothing.
func withLog(t *testing.T, files []Member, relink bool, change func(*Row)) []Member {
	t.Helper()
	chain, log := NewChain(), []byte(nil)
	for line := range bytes.Lines(files[0].Data) {
		row, err := ParseRow(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		if change(&row); row.ID == 0 {
			continue
		}
		if relink {
			chain.Link(&row)
		}
		log = append(row.AppendJSON(log), '\n')
	}
	files[0].Data = log
	return files
}

// former compresses an archive as earlier versions did.
func former(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	a := newArchive(&b)
	_, err := a.gzip.Write(content)
	if err = errors.Join(err, a.gzip.Close()); err != nil {
		t.Fatal(err)
	}
	return append([]byte(formerGzipHeader), b.Bytes()[len(gzipHeader):]...)
}

// foreignVectors returns bundles of the draft and of its own generator.
func foreignVectors(t *testing.T, key ed25519.PrivateKey) map[string][]byte {
	t.Helper()
	const statement = `{"_type":"` + statementType + `","subject":[%s]}`
	made := map[string][]byte{}
	add := func(name string, edit func(map[string]string)) {
		files := foreignFiles(key)
		edit(files)
		made[name] = compressed(t, tarOfFiles(t, membersOf(files)...))
	}
	add("draft-signed", func(map[string]string) {})
	add("draft-by-a-stranger", func(f map[string]string) {
		stranger := foreignFiles(testKey("stranger"))
		f[signatureName], f[keyFile] = stranger[signatureName], stranger[keyFile]
	})
	add("draft-unsigned", func(f map[string]string) { f[signatureName] = "# Ed25519 signing not available\n" })
	add("draft-sealed", func(f map[string]string) { sealRows(f, 3) })
	add("draft-sealed-contents-changed", func(f map[string]string) {
		sealRows(f, 3)
		f[logFile] = strings.Replace(f[logFile], `{\"n\":1}`, `{\"n\":2}`, 1)
	})
	add("draft-attested", func(f map[string]string) { f[attestationFile] = envelopeOf(key, f, statement, strings.TrimSpace) })
	add("draft-attested-file-changed", func(f map[string]string) {
		f[attestationFile] = envelopeOf(key, f, statement, strings.TrimSpace)
		f[manifestFile] += "\n"
	})
	add("draft-inputs-changed", func(f map[string]string) { f[logFile] = strings.Replace(f[logFile], `{\"n\":1}`, `{\"n\":2}`, 1) })
	add("draft-key-of-small-order", func(f map[string]string) {
		f[keyFile] = keyComment + " 01" + strings.Repeat("00", 31) + "\n"
		lines := strings.SplitAfter(f[signatureName], "\n")
		f[signatureName] = lines[0] + "signature:" + base64.StdEncoding.EncodeToString(append([]byte{1}, make([]byte, 63)...)) + "\n"
	})
	add("draft-member-twice", func(f map[string]string) {
		f[logFile] = strings.Replace(f[logFile], `"error":""`, `"error":"","error":""`, 1)
	})
	for _, forgery := range forgeries {
		made["draft-resigned-"+strings.ReplaceAll(forgery, " ", "-")] = compressed(t, forged(t, false, forgery, 2))
	}
	made["generator-ids"] = compressed(t, generatorBundle(t, ofGenerator, generatorRow{3, "seven"}, generatorRow{7, "seven"}))
	made["generator-nine-fields"] = compressed(t, generatorBundle(t, ofGenerator, generatorRow{1, "digests"}, generatorRow{2, "digests"}))
	return made
}

// compressed is gzipped with a smaller result.
func compressed(t *testing.T, content []byte) []byte {
	t.Helper()
	b := former(t, content)
	return append([]byte(gzipHeader), b[len(gzipHeader):]...)
}
