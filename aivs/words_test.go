package aivs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// judged returns a session whose verdict is recorded in its bundle.
func judged(verdict string) *Input {
	in := sampleInput(3)
	in.Members = append(in.Members, Member{Name: SessionMember, Data: []byte(verdict + "\n")})
	return in
}

// bothSay returns the conclusion of Go and verify.py about a bundle, which must be the same.
func bothSay(t *testing.T, bundle []byte, arguments ...string) string {
	t.Helper()
	var text strings.Builder
	if err := judge(t, bundle, Options{}).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	_, output := python(t, unpack(t, bundle), arguments...)
	inGo, inPython := conclusionOf(text.String()), conclusionOf(output)
	if inGo != inPython || inGo == "" {
		t.Errorf("Go reports\n%s\nPython reports\n%s\nof\n%s", inGo, inPython, output)
	}
	return inGo
}

// conclusionOf returns the two lines about the bundle and about the agent.
func conclusionOf(output string) string {
	at := strings.Index(output, "INTACT")
	if at < 0 {
		return ""
	}
	at = strings.LastIndex(output[:at], "\n") + 1
	lines := strings.SplitN(output[at:], "\n", 3)
	return lines[0] + "\n" + lines[1]
}

// The report states separately whether the bundle is intact and what was found about the agent.
func TestIntegrityAndVerdictAreSeparate(t *testing.T) {
	const about = " It says nothing about whether the agent behaved well.\nVerdict recorded inside: "
	key := testKey("k")
	verdict := func(action, violations string) string {
		return `{"verified":false,"recommended_action":"` + action + `","traces":{"total":3,"violations":` + violations +
			`,"findings":{"CATEGORY_EVASION":1}},"finding_counts":{"TRACE_GAP":1}}`
	}
	for name, c := range map[string]struct{ session, want string }{
		"denied":     {verdict("deny", `{"FORBIDDEN_ACTION":1}`), "DENY (1 violation, 2 findings)."},
		"review":     {verdict("review", `{"A":1,"B":1}`), "REVIEW (2 violations, 2 findings)."},
		"proceed":    {verdict("proceed", `null`), "PROCEED (0 violations, 2 findings)."},
		"hidden":     {verdict("deny", `{"A":"[REDACTED]","B":1.0,"C":-3}`), "DENY (0 violations, 2 findings)."},
		"no verdict": {verdict("dance", `{}`), "none."},
		"no counts":  {verdict("deny", `[]`), "none."},
		"no object":  {`[]`, "none."},
		"not JSON":   {`{`, "none."},
		"too long":   {verdict("deny", `{"`+strings.Repeat("x", 300<<10)+`":1}`), "not read, since session.json is larger than 262144 bytes."},
	} {
		said := bothSay(t, build(t, judged(c.session), key).Bytes)
		if want := "INTACT: this bundle is unchanged since it was signed." + about + c.want; said != want {
			t.Errorf("%s: %s", name, said)
		}
	}
	if said := bothSay(t, build(t, sampleInput(2), nil).Bytes); !strings.HasPrefix(said, "INTACT, NOT SIGNED: ") || !strings.HasSuffix(said, "none.") {
		t.Errorf("not signed: %s", said)
	}
	changed := withFile(t, build(t, judged(verdict("deny", "{}")), key).Bytes, SessionMember, bytes.ToUpper)
	const not = "NOT INTACT: do not rely on this bundle.\nVerdict recorded inside: not read, since the bundle is not intact."
	if said := bothSay(t, changed); said != not {
		t.Errorf("changed: %s", said)
	}
	report, err := json.Marshal(judge(t, build(t, judged(verdict("deny", "{}")), key).Bytes, Options{}))
	if err != nil || !bytes.Contains(report, []byte(`{"intact":true,`)) ||
		!bytes.Contains(report, []byte(`"verdict":{"recommended_action":"deny","verified":false,"traces":3,"violations":0,"findings":2}`)) {
		t.Errorf("%v\n%s", err, report)
	}
}

// For a bundle of another generator, the report states what the signature covers, and that
// nothing covers the rest.
func TestWhatASignatureCovers(t *testing.T) {
	const rows = "session, action, tool, cost, time and order of the rows"
	key := testKey("k")
	sealed := foreignFiles(key)
	sealRows(sealed, 3)
	for name, c := range map[string]struct {
		files   map[string]string
		want    string
		covered []string
	}{
		"plain": {foreignFiles(key), "INTACT IN PART: the signature covers " + rows + "; nothing else", []string{CoversRows}},
		"sealed": {sealed, "INTACT IN PART: the signature covers " + rows + ", their inputs, their outputs, their errors; nothing else",
			[]string{CoversRows, CoversInputs, CoversOutputs, CoversErrors}},
		"rows after the seal": {sealedAfter(key, 2), "INTACT IN PART: the signature covers " + rows + "; nothing else", []string{CoversRows}},
		"attested": {attestedForeign(key), "INTACT: this bundle is unchanged since it was signed.",
			[]string{CoversRows, CoversInputs, CoversOutputs, CoversErrors, CoversFiles}},
	} {
		bundle := aivstest.Gzip(t, tarOfFiles(t, membersOf(c.files)...))
		if said := bothSay(t, bundle); !strings.HasPrefix(said, c.want) {
			t.Errorf("%s: %s", name, said)
		}
		if report := judge(t, bundle, Options{}); !slices.Equal(report.Covered, c.covered) {
			t.Errorf("%s: covered %q", name, report.Covered)
		}
	}
}

func attestedForeign(key ed25519.PrivateKey) map[string]string {
	files := foreignFiles(key)
	files[attestationFile] = envelopeOf(key, files, `{"_type":"`+statementType+`","subject":[%s]}`, strings.TrimSpace)
	return files
}

// sealedAfter returns a foreign bundle with a seal after some of its three rows.
func sealedAfter(key ed25519.PrivateKey, rows int) map[string]string {
	files := foreignFiles(key)
	sealRows(files, rows)
	return files
}

// sealRows writes the log of foreignFiles again, with a seal after some of its rows,
// and signs it.
func sealRows(files map[string]string, after int) {
	chain, log := NewChain(), ""
	add := func(row Row) {
		chain.Link(&row)
		log += string(row.AppendJSON(nil)) + "\n"
	}
	for line := range strings.SplitSeq(files[logFile], "\n") {
		row, err := ParseRow([]byte(line))
		if err != nil {
			panic(err)
		}
		add(row)
		if chain.Rows() == int64(after) {
			add(Row{SessionID: row.SessionID, ActionType: ActionSeal, ToolName: sealTool + chain.Content()})
		}
	}
	files[logFile] = log
	files[manifestFile] = fmt.Sprintf(`{"chain_hash":"%s","action_count":4,"session_id":"sess-é"}`, chain.Hash())
	files[signatureName] = string(signatureFile(testKey("k"), chain.Hash()))
}

// A signature that was not checked is not reported as absent.
func TestUncheckedSignatureIsNotCalledAbsent(t *testing.T) {
	signed, unsigned := build(t, sampleInput(2), testKey("k")).Bytes, build(t, sampleInput(2), nil).Bytes
	drop := func([]byte) []byte { return nil }
	for name, c := range map[string]struct {
		bundle []byte
		want   string
		text   string
	}{
		"signed":           {signed, SignatureValid, "valid"},
		"not signed":       {unsigned, SignatureAbsent, "absent"},
		"cut short":        {signed[:len(signed)-100], SignatureUnchecked, "not checked (stopped at the first fault)"},
		"a bad row":        {withFile(t, signed, logFile, bytes.ToUpper), SignatureUnchecked, "not checked (stopped at the first fault)"},
		"no log":           {withFile(t, signed, logFile, drop), SignatureUnchecked, "not checked (stopped at the first fault)"},
		"a changed member": {withFile(t, signed, VerdictsMember, drop), SignatureValid, "valid over the rows, but the bundle is not intact"},
		"another's": {withFile(t, signed, signatureName, func(b []byte) []byte {
			return bytes.Replace(b, []byte("signature:"), []byte("signature:A"), 1)
		}), SignatureInvalid, "invalid"},
		"nothing": {nil, SignatureUnchecked, "not checked (stopped at the first fault)"},
	} {
		if r := judge(t, c.bundle, Options{}); r.Signature != c.want || r.SignatureText() != c.text {
			t.Errorf("%s: signature %s, %s", name, r.Signature, r.SignatureText())
		}
	}
}

// --help is not a failure, and each failure ends with a line that says so.
func TestPythonHelpAndClosingLines(t *testing.T) {
	directory := unpack(t, build(t, sampleInput(1), testKey("k")).Bytes)
	for _, flag := range []string{"--help", "-h"} {
		if passed, output := python(t, flag); !passed || !strings.Contains(output, "verify.py [DIRECTORY] [--key PUBLIC_KEY_HEX]") || strings.Contains(output, "FAIL  ") {
			t.Errorf("%s: %s", flag, output)
		}
	}
	for want, arguments := range map[string][]string{
		"\nNOT JUDGED: nothing is known about this bundle.": {directory, "--what"},
		"\nNOT INTACT: do not rely on this bundle.":         {filepath.Join(directory, "gone")},
	} {
		if passed, output := python(t, arguments[0], arguments[1:]...); passed || strings.Count(output, want) != 1 {
			t.Errorf("%q: %s", arguments, output)
		}
	}
}

// Faults of a bundle's JSON are described in terms of JSON.
func TestJSONFaultsNameNoGoTypes(t *testing.T) {
	for text, want := range map[string]string{
		`[1]`:               "an array, want an object",
		`"x"`:               "a string, want an object",
		`{"part":"1"}`:      `a string at "/part", want another type`,
		`{"members":[1]}`:   `a number at "/members/0", want another type`,
		`{"part":1,"no":1}`: `unknown member at "/no"`,
	} {
		if _, err := parseOpening(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	var trace struct {
		Trace string `json:"trace_sha256"`
	}
	if err := readJSON([]byte(`[1]`), &trace); err == nil || err.Error() != saysNotObject {
		t.Error(err)
	}
}

// An attestation that does not match the files is not reported as absent.
func TestFailedAttestationIsReported(t *testing.T) {
	report := judge(t, read(t, vectorsAt, "draft-attested-file-changed.tar.gz"), Options{})
	if report.Intact || len(report.Faults) != 1 || report.Faults[0].Where != attestationFile {
		t.Fatalf("%+v", report)
	}
	for _, said := range report.Skipped {
		if strings.Contains(said, "no second signature") || strings.Contains(said, "nothing covers") {
			t.Error(said)
		}
	}
}
