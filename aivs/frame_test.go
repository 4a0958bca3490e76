package aivs

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// allSay has the three verifiers judge an archive. want is the fault that each of them must report; "" requires an intact bundle.
func allSay(t *testing.T, name string, content []byte, want string) *Report {
	t.Helper()
	bundle := aivstest.Gzip(t, content)
	copy(bundle, gzipHeader)
	report := agree(t, name, bundle, Options{})
	place := t.TempDir()
	unpackInto(t, place, content)
	directory := filepath.Join(place, "session_proof")
	passed, output := python(t, directory)
	sayTheSame(t, directory, output, nil)
	if report.Intact != (want == "") || passed != (want == "") {
		t.Errorf("%s: Go says %+v, verify.py %v:\n%s", name, report.Faults, passed, output)
	}
	if want != "" && (!strings.Contains(output, "FAIL  "+want) || !slices.ContainsFunc(report.Faults, func(f Fault) bool { return strings.HasPrefix(f.Line(), want) })) {
		t.Errorf("%s: want %q. Go says %+v, verify.py\n%s", name, want, report.Faults, output)
	}
	return report
}

// signedLog returns the files of a bundle of another generator with these rows, signed.
func signedLog(rows ...Row) (files map[string]string) {
	chain, log := NewChain(), ""
	for _, r := range rows {
		if r.SessionID = "s"; r.ActionType == ActionSeal && r.ToolName == "" {
			r.ToolName = sealTool + chain.Content()
		}
		chain.Link(&r)
		log += string(r.AppendJSON(nil)) + "\n"
	}
	key := testKey("k")
	return map[string]string{logFile: log, keyFile: string(publicKeyFile(publicOf(key))), signatureName: string(signatureFile(key, chain.Hash())),
		manifestFile: fmt.Sprintf(`{"session_id":"s","chain_hash":"%s","action_count":%d}`, chain.Hash(), chain.Rows())}
}

// In our own dialect only row 1 opens the log. An open row in another place would be taken for no action.
func TestOpenRowsAfterTheFirst(t *testing.T) {
	for _, tool := range []string{openFamily + "0", openTool, openFamily + "wallet"} {
		n := 0
		content := reforged(t, "", "", func(r *Row) {
			if n++; n == 2 {
				r.ActionType, r.ToolName = ActionOpen, tool
			}
		})
		allSay(t, tool, content, "row 2: an open row, which only row 1 may be")
	}
	n := 0
	allSay(t, "an action called open", reforged(t, "", "", func(r *Row) {
		if n++; n == 2 {
			r.ActionType, r.ToolName = ActionOpen, "wallet.open"
		}
	}), "")
}

// The rows of a bundle that frame it are row 1 and the last one. Every other row is an action, in the page and in Go.
func TestActionsOfALog(t *testing.T) {
	action := Row{ActionType: ActionToolCall, ToolName: "a.b"}
	seal := Row{ActionType: ActionSeal, InputsJSON: "{}", OutputsJSON: "{}"}
	for name, c := range map[string]struct {
		content []byte
		want    []int64
	}{
		"own": {aivstest.Gunzip(t, build(t, sampleInput(2), testKey("k")).Bytes), []int64{2, 3}},
		"foreign with rows called open and seal": {tarOfFiles(t, membersOf(signedLog(Row{ActionType: ActionOpen, ToolName: "door.front"}, action,
			Row{ActionType: ActionOpen, ToolName: openFamily + "wallet"}, Row{ActionType: ActionSeal, ToolName: "deal.close"}))...), []int64{1, 2, 3, 4}},
		"foreign, sealed twice": {tarOfFiles(t, membersOf(signedLog(action, seal, action, seal))...), []int64{1, 2, 3}},
		"empty":                 {tarOfFiles(t, membersOf(signedLog())...), nil},
	} {
		allSay(t, name, c.content, "")
		var actions Actions
		var got []int64
		judge(t, aivstest.Gzip(t, c.content), Options{Row: func(r *Row) { actions.Row(r, func(r *Row) { got = append(got, r.ID) }) }})
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		writeFile(t, file, aivstest.Gzip(t, c.content))
		if shown := browse(t, file, "").Actions; !slices.Equal(got, c.want) || !slices.Equal(shown, c.want) {
			t.Errorf("%s: Go has the actions %v, the page shows %v, want %v", name, got, shown, c.want)
		}
	}
}

// The contents of a seal row are covered by nothing, so a seal row of another generator has none.
func TestContentsOfAForeignSeal(t *testing.T) {
	action := Row{ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: `{"a": 1}`}
	for _, contents := range [][2]string{{"", ""}, {"{}", "{}"}, {"", "{}"}} {
		content := tarOfFiles(t, membersOf(signedLog(action, Row{ActionType: ActionSeal, InputsJSON: contents[0], OutputsJSON: contents[1]}))...)
		report := allSay(t, "without contents", content, "")
		if !slices.Equal(report.Covered, []string{CoversRows, CoversInputs, CoversOutputs, CoversErrors}) {
			t.Errorf("%q: covered are %v", contents, report.Covered)
		}
	}
	for _, seal := range []Row{{InputsJSON: `{"to": "me"}`}, {OutputsJSON: "[]"}, {Error: "caught"}, {InputsJSON: "null"}} {
		seal.ActionType = ActionSeal
		for name, rows := range map[string][]Row{"the last": {action, seal}, "not the last": {action, seal, action}} {
			allSay(t, name, tarOfFiles(t, membersOf(signedLog(rows...))...), "row 2: a seal row has no inputs, outputs or error")
		}
	}
}

// The session that verify.py and the page name is that of the rows. Nothing covers an original_session_id of another generator's manifest.
func TestSessionIsThatOfTheRows(t *testing.T) {
	foreign := signedLog(Row{ActionType: ActionToolCall, ToolName: "a.b"})
	foreign[manifestFile] = strings.Replace(foreign[manifestFile], "{", `{"original_session_id":"of somebody else",`, 1)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"foreign": {tarOfFiles(t, membersOf(foreign)...), "s"},
		"own":     {aivstest.Gunzip(t, build(t, sampleInput(1), testKey("k")).Bytes), sampleInput(1).SessionID},
	} {
		report := allSay(t, name, c.content, "")
		bundle := aivstest.Gzip(t, c.content)
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		writeFile(t, file, bundle)
		_, output := python(t, unpack(t, bundle))
		if shown := browse(t, file, "").Session; shown != c.want || report.SessionID != c.want || !strings.Contains(output, "\nSession:  "+quoted(c.want)+"\n") {
			t.Errorf("%s: the page says %q, Go %q, verify.py\n%s", name, shown, report.SessionID, output)
		}
	}
}

// A trace_sha256 that is no digest is not kept, whatever its length: a small bundle can state gigabytes of them.
func TestLongDigestsAreNotKept(t *testing.T) {
	for name, stated := range map[string]string{"long": `"` + strings.Repeat("a", 100_000) + `"`, "a list": `[` + strings.Repeat("1,", 1000) + `1]`, "65 digits": `"` + strings.Repeat("a", 65) + `"`} {
		n := 0
		content := reforged(t, "", "", func(r *Row) {
			if n++; n == 2 {
				r.InputsJSON = `{"trace_sha256": ` + stated + `}`
			}
		})
		want := []string{"", hexSHA256(bytes.Split(sampleInput(2).Members[0].Data, []byte("\n"))[1])}
		bundle := aivstest.Gzip(t, content)
		allSay(t, name, content, "row 2: its trace_sha256 is not that of line 1")
		v := newVerification(Options{})
		v.compressed = new(int64)
		if !v.untar(bytes.NewReader(content)) || !slices.Equal(v.log.traces, want) {
			t.Errorf("%s: Go keeps %.200q", name, v.log.traces)
		}
		if p := newPairing([]Row{{InputsJSON: `{"trace_sha256": ` + stated + `}`}}); p.digests[0] != "" {
			t.Errorf("%s: Go keeps %.200q for naming rows", name, p.digests)
		}
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		writeFile(t, file, bundle)
		if kept := browse(t, file, "").Kept; !slices.Equal(kept, want) {
			t.Errorf("%s: the page keeps %.200q", name, kept)
		}
		const script = `
import json, pathlib, sys
code = {"__name__": "verify"}
exec(pathlib.Path(sys.argv[1]).read_bytes(), code)
log = code["check_log"](pathlib.Path(sys.argv[2]))
digests, _ = code["stated_digests"](pathlib.Path(sys.argv[2]), log)
print(json.dumps([log.traces, digests]))
`
		out, err := exec.Command("python3", "-I", "-c", script, verifierFile, unpack(t, bundle)).CombinedOutput()
		if both := fmt.Sprintf(`[["", %q], ["", %q, null]]`, want[1], want[1]); err != nil || !strings.Contains(string(out), both) {
			t.Errorf("%s: Python keeps %.300s, want %s", name, out, both)
		}
	}
}
