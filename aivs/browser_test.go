package aivs

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/viewer"
	"github.com/plumbline/plumbline/schema/published"
)

// theRuntime is a JavaScript process that runs the scripts of the viewer's page, once for each request.
var theRuntime = sync.OnceValues(func() (*interpreter, error) {
	const loop = `
const readline = require("node:readline"), fs = require("node:fs"), vm = require("node:vm");
vm.runInThisContext(fs.readFileSync(process.argv[1], "utf8") + "\nglobalThis.verifyBundle = verifyBundle; globalThis.hexBytes = hexBytes; globalThis.RunningHash = RunningHash; globalThis.actionsOf = actionsOf; globalThis.sessionOf = sessionOf; globalThis.entriesOf = entriesOf;");
let hashed = 0; // bytes
const digest = crypto.subtle.digest.bind(crypto.subtle);
crypto.subtle.digest = (name, bytes) => { hashed += bytes.byteLength; return digest(name, bytes); };
(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    let answer;
    hashed = 0;
    try {
      if (request.text !== undefined) { // its digest, after each of its pieces
        const hash = new RunningHash(), pieces = [];
        for (const piece of request.text) { hash.add(Buffer.from(piece)); pieces.push(hash.hex()); }
        process.stdout.write(JSON.stringify({ kept: pieces }) + "\n");
        continue;
      }
      const v = await verifyBundle(new Uint8Array(fs.readFileSync(request.file)), request.key ? hexBytes(request.key, 32) : null);
      answer = { faults: v.faults, passed: v.passed, skipped: v.skipped, conclusion: v.conclusion, verdict: v.verdict, session: sessionOf(v), kept: v.log.traces, hashed, actions: actionsOf(entriesOf(v)).map(({ number }) => number) };
    } catch (e) {
      answer = { error: String(e.stack) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
})();`
	script, err := viewer.Script(Verifiers())
	if err != nil {
		return nil, err
	}
	session, err := os.ReadFile("viewer/session.js")
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "viewer-*.js") // the process reads it once
	if err != nil {
		return nil, err
	}
	if _, err := file.WriteString(script + string(session)); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	return startInterpreter(exec.Command("node", "-e", loop, file.Name()))
})

// browsed is what the scripts of the viewer say about a bundle.
type browsed struct {
	Faults, Passed, Skipped    []string
	Conclusion, Verdict, Error string
	Session                    string
	Hashed                     int64    // how many bytes the browser's SHA-256 hashed
	Kept                       []string // the digests of traces that the page keeps
	Actions                    []int64  // the numbers of the rows that the page shows as decisions
}

func browse(t testing.TB, file, key string) browsed {
	t.Helper()
	runtime, err := theRuntime()
	if err != nil {
		t.Fatalf("node, which npm comes with, is a prerequisite: %v", err)
	}
	request := struct {
		File string `json:"file"`
		Key  string `json:"key,omitempty"`
	}{file, key}
	var answer browsed
	if err := errors.Join(runtime.requests.Encode(request), runtime.responses.Decode(&answer)); err != nil {
		t.Fatal(err)
	}
	if answer.Error != "" {
		t.Fatalf("%s: %s", file, answer.Error)
	}
	return answer
}

// agree compares the page with Go: the same answer, and what the page says is wrong is what Go says, but for the
// archive itself, whose readers have words of their own.
func agree(t testing.TB, name string, bundle []byte, options Options) *Report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	writeFile(t, file, bundle)
	key := ""
	if len(options.Keys) > 0 {
		key = hex.EncodeToString(options.Keys[0])
	}
	page, report := browse(t, file, key), judge(t, bundle, options)
	if (len(page.Faults) == 0) != report.Intact {
		t.Errorf("%s: the page says %q, Go %+v", name, page.Faults, report.Faults)
		return report
	}
	if report.Intact {
		if !slices.Equal(page.Passed, report.Passed) || !slices.Equal(page.Skipped, report.Skipped) || !strings.HasPrefix(page.Conclusion, strings.Split(report.Conclusion(), ":")[0]) {
			t.Errorf("%s: the page says %q, %q, %q; Go %q, %q, %q", name, page.Passed, page.Skipped, page.Conclusion, report.Passed, report.Skipped, report.Conclusion())
		}
		return report
	}
	var lines []string
	archive := false
	for _, f := range report.Faults {
		lines = append(lines, f.Line())
		archive = archive || f.Where == archivePlace
	}
	for _, said := range page.Faults {
		if !archive && !strings.HasPrefix(said, archivePlace+":") && !slices.Contains(lines, onOneLine(said)) {
			t.Errorf("%s: the page says %q, Go %q", name, said, lines)
		}
	}
	return report
}

// The page agrees with Go on the recorded tampered bundles, with and without a pinned key.
func TestPageAgreesOnTamperedBundles(t *testing.T) {
	tampered, err := filepath.Glob(published.Path(t, "conformance/aivs/tampered") + "/*.tar.gz")
	if err != nil || len(tampered) == 0 {
		t.Fatalf("no tampered bundles: %v", err)
	}
	intact := 0
	for _, file := range tampered {
		bundle, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if agree(t, filepath.Base(file), bundle, Options{}).Intact {
			intact++
		}
		agree(t, filepath.Base(file)+", pinned", bundle, Options{Keys: []ed25519.PublicKey{publicOf(testKey("k"))}})
	}
	t.Logf("%d bundles, %d of them intact", len(tampered), intact)
}

// The page agrees with Go, and so with Python (TestGoAndPythonAgree), on random bundles with random damage.
func TestPageAgreesOnRandomBundles(t *testing.T) {
	bundles := rapid.Custom(func(r *rapid.T) []byte { return randomBundle(t, r) })
	whole := 0
	for seed := range *differential {
		if agree(t, fmt.Sprintf("seed %d", seed), aivstest.Gzip(t, bundles.Example(seed)), Options{}).Intact {
			whole++
		}
	}
	if whole == 0 || whole == *differential {
		t.Errorf("%d of %d bundles are intact: the damage does not vary", whole, *differential)
	}
}

// A bundle of our own that somebody compresses or packs again is not as it was made.
func TestPageDemandsTheArchive(t *testing.T) {
	bundle := build(t, sampleInput(3), testKey("k")).Bytes
	if report := agree(t, "as it is", bundle, Options{}); !report.Intact {
		t.Fatalf("%+v", report.Faults)
	}
	again := aivstest.Gzip(t, aivstest.Gunzip(t, bundle))
	agree(t, "compressed again", again, Options{})
	for name, spoiled := range map[string][]byte{
		"data follows": append(slices.Clone(bundle), "more"...),
		"cut":          bundle[:len(bundle)-9],
		"nothing":      {},
		"no gzip":      []byte("not a bundle at all, but long enough to be one"),
	} {
		if report := agree(t, name, spoiled, Options{}); report.Intact {
			t.Errorf("%s: intact", name)
		}
	}
	agree(t, "pinned", bundle, Options{Keys: []ed25519.PublicKey{publicOf(testKey("k"))}})
	if report := agree(t, "another key pinned", bundle, Options{Keys: []ed25519.PublicKey{publicOf(testKey("other"))}}); report.Intact {
		t.Error("intact under another key")
	}
}

// says.js has the sentences of says.go and verify.py under the same names.
func TestPageSaysTheSame(t *testing.T) {
	text, err := os.ReadFile("viewer/says.js")
	if err != nil {
		t.Fatal(err)
	}
	inPage := regexp.MustCompile(`(?m)^  ([A-Z0-9_]+): (".*"),$`).FindAllStringSubmatch(string(text), -1)
	inPython := pythonSentences(t)
	if len(inPage) != len(inPython) {
		t.Errorf("%d sentences in the page, %d in verify.py", len(inPage), len(inPython))
	}
	for _, m := range inPage {
		if inPython[m[1]] != unquoted(t, m[2]) {
			t.Errorf("%s: the page says %s, verify.py %q", m[1], m[2], inPython[m[1]])
		}
	}
}
