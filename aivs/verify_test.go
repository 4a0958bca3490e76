package aivs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// Limits that are set apply, and the others have their defaults.
func TestLimits(t *testing.T) {
	mine := limits{bytes: 1, ratio: 2, members: 3, line: 4, smallKiB: 5}
	if got := mine.orDefault(); got != mine {
		t.Errorf("%+v became %+v", mine, got)
	}
	if got := (limits{}).orDefault(); got != defaultLimits {
		t.Errorf("unset limits became %+v", got)
	}
}

// The digest covers the whole file, wherever reading it as a bundle ended.
func TestDigestIsOfTheWholeFile(t *testing.T) {
	long := bytes.Repeat([]byte("no gzip "), 50_000)
	whole := build(t, sampleInput(1), testKey("k")).Bytes
	for name, file := range map[string][]byte{"whole": whole, "no bundle": long, "a bundle and more": append(bytes.Clone(whole), long...)} {
		report := judge(t, file, Options{})
		if report.SHA256 != hexSHA256(file) || report.Intact != (name == "whole") {
			t.Errorf("%s: %+v", name, report)
		}
		if name == "no bundle" && (len(report.Faults) != 1 || !strings.HasPrefix(report.Faults[0].Message, "not a gzip file")) {
			t.Errorf("%s: %+v", name, report.Faults)
		}
	}
}

// An error that the source returns only once is still returned.
func TestTransientReadErrorIsReturned(t *testing.T) {
	whole := build(t, sampleInput(1), testKey("k")).Bytes
	if report, err := Verify(iotest.TimeoutReader(bytes.NewReader(whole)), Options{}); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("%+v, %v", report, err)
	}
}

// The recorded verdict is reported for an intact bundle of our own dialect, and only what a
// signature covers is reported as covered.
func TestReportOfTheRecordedVerdict(t *testing.T) {
	key, session := testKey("k"), `{"verified":false,"recommended_action":"deny","traces":{"total":3,"violations":null,"findings":null},"finding_counts":null}`
	signed := build(t, judged(session), key).Bytes
	foreign := foreignFiles(key)
	foreign[SessionMember] = session
	for name, c := range map[string]struct {
		bundle           []byte
		verdict, covered bool
	}{
		"signed":              {signed, true, true},
		"unsigned":            {build(t, judged(session), nil).Bytes, true, false},
		"no verdict":          {build(t, sampleInput(1), key).Bytes, false, true},
		"not intact":          {withFile(t, signed, SessionMember, bytes.ToUpper), false, false},
		"another generator's": {aivstest.Gzip(t, tarOfFiles(t, membersOf(foreign)...)), false, true},
	} {
		if r := judge(t, c.bundle, Options{}); (r.Verdict != nil) != c.verdict || (len(r.Covered) > 0) != c.covered {
			t.Errorf("%s: verdict %+v, covered %q, faults %+v", name, r.Verdict, r.Covered, r.Faults)
		}
	}
	if r := judge(t, build(t, sampleInput(1), nil).Bytes, Options{RequireSignature: true}); r.Signature != SignatureAbsent || r.Intact {
		t.Errorf("required: %+v", r)
	}
}

// A log with rows hashed over seven fields and rows hashed over nine is covered less.
func TestMixedRowHashes(t *testing.T) {
	mixed := judge(t, aivstest.Gzip(t, generatorBundle(t, ofGenerator, generatorRow{1, "seven"}, generatorRow{2, "digests"})), Options{})
	nine := judge(t, aivstest.Gzip(t, generatorBundle(t, ofGenerator, generatorRow{1, "digests"}, generatorRow{2, "digests"})), Options{})
	const less = "inputs and outputs of the rows hashed over seven fields"
	if !strings.Contains(strings.Join(mixed.Skipped, "\n"), less) || strings.Contains(strings.Join(nine.Skipped, "\n"), less) {
		t.Errorf("mixed %q, nine %q", mixed.Skipped, nine.Skipped)
	}
}

// A fault of the log names the changed row, where its trace shows which row it is. The seal,
// which detected the change, is not reported. A fault that the signature detected is also
// reported.
func TestChangedRowIsNamed(t *testing.T) {
	bundle := build(t, sampleInput(3), testKey("k")).Bytes
	const seal, named = "an input, output or error was changed after row 5 sealed them", "changed: its inputs_json is not that of its trace, line 2 of " + TracesMember
	for name, c := range map[string]struct {
		old, with string
		relink    bool
		want      []Fault // the first faults
	}{
		"a trace's id":  {`\"trace_id\":\"t1\"`, `\"trace_id\":\"t9\"`, false, []Fault{{"row 3", named, ""}}},
		"an output":     {`\"text\":\"`, `\"text\":\"x`, false, []Fault{{"rows 1-4", seal, ""}}}, // the traces do not contain outputs
		"a linked row":  {`\"trace_id\":\"t1\"`, `\"trace_id\":\"t9\"`, true, []Fault{{"row 3", named, ""}}},
		"another agent": {`agent%3A7%25.read`, `agent%3A8%25.read`, true, []Fault{{manifestFile, "chain_hash is ", ""}, {signatureName, "the log was changed after it was signed", ""}}},
	} {
		changed := withFile(t, bundle, logFile, func(log []byte) []byte {
			log = bytes.Replace(log, []byte(c.old), []byte(c.with), 1)
			if !c.relink {
				return log
			}
			files := []Member{{Data: log}}
			return withLog(t, files, true, func(*Row) {})[0].Data
		})
		report := judge(t, changed, Options{})
		if report.Intact || len(report.Faults) < len(c.want) || len(c.want) == 1 && !c.relink && len(report.Faults) != 1 {
			t.Errorf("%s: %+v", name, report.Faults)
			continue
		}
		for i, want := range c.want {
			if got := report.Faults[i]; got.Where != want.Where || !strings.HasPrefix(got.Message, want.Message) {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
	}
}

// Whichever file still has the old chain hash, the changed row is named.
func TestDisagreeingFileLeadsToTheRow(t *testing.T) {
	bundle := build(t, sampleInput(3), testKey("k")).Bytes
	var before, after string
	changed := withFile(t, bundle, logFile, func(log []byte) []byte {
		before = chainHashOf(t, log)
		log = bytes.Replace(log, []byte(`\"trace_id\":\"t1\"`), []byte(`\"trace_id\":\"t9\"`), 1)
		log = resealed(t, log)
		after = chainHashOf(t, log)
		return log
	})
	for _, file := range []string{manifestFile, signatureName} { // the file that the forger updates
		forged := withFile(t, changed, file, func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(before), []byte(after)) })
		if faults := judge(t, forged, Options{}).Faults; len(faults) == 0 || faults[0].Where != "row 3" {
			t.Errorf("%s with the current verify.py: %+v", file, faults)
		}
	}
}

// resealed links the rows of a log again and seals them again.
func resealed(t *testing.T, log []byte) (text []byte) {
	t.Helper()
	chain := NewChain()
	for line := range bytes.Lines(log) {
		row, err := ParseRow(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		if row.ActionType == ActionSeal {
			row.ToolName = sealTool + chain.Content()
		}
		chain.Link(&row)
		text = append(row.AppendJSON(text), '\n')
	}
	return text
}

func chainHashOf(t *testing.T, log []byte) string {
	t.Helper()
	check := newLogCheck(nil)
	if err := eachLine(bytes.NewReader(log), 1<<20, check.line); err != nil || check.fault != nil {
		t.Fatal(err, check.fault)
	}
	return check.chain.Hash()
}

// If only the first row precedes the seal, that row is named as the changed one.
func TestOnlyChangedRowIsNamed(t *testing.T) {
	foreign, chain := foreignFiles(testKey("k")), NewChain()
	row := Row{SessionID: "s", ActionType: ActionToolCall, ToolName: "a.b"}
	chain.Link(&row)
	seal := Row{SessionID: "s", ActionType: ActionSeal, ToolName: sealTool + chain.Content()}
	chain.Link(&seal)
	row.Error = "changed"
	foreign[logFile] = string(row.AppendJSON(nil)) + "\n" + string(seal.AppendJSON(nil)) + "\n"
	report := judge(t, aivstest.Gzip(t, tarOfFiles(t, membersOf(foreign)...)), Options{})
	if want := (Fault{"row 1", "an input, output or error was changed after row 2 sealed them", ""}); len(report.Faults) != 1 || report.Faults[0] != want {
		t.Errorf("%+v", report.Faults)
	}
}

// An action called open, or a tool with the name of ours, does not make a log of the draft one of
// our own dialect.
func TestOpeningNeedsActionAndTool(t *testing.T) {
	for _, first := range []Row{
		{ActionType: ActionOpen, ToolName: "door.open"}, {ActionType: ActionToolCall, ToolName: openTool}, {ActionType: ActionToolCall, ToolName: openFamily + "9"},
	} {
		files, chain := foreignFiles(testKey("k")), NewChain()
		first.SessionID = "sess-é"
		chain.Link(&first)
		files[logFile] = string(first.AppendJSON(nil))
		files[manifestFile] = `{"session_id":"sess-é","action_count":1,"chain_hash":"` + chain.Hash() + `"}`
		files[signatureName] = string(signatureFile(testKey("k"), chain.Hash()))
		bundle := aivstest.Gzip(t, tarOfFiles(t, membersOf(files)...))
		if report := judge(t, bundle, Options{}); !report.Intact || report.Dialect != DialectDraft {
			t.Errorf("%s %s: %+v", first.ActionType, first.ToolName, report)
		}
		if passed, output := python(t, unpack(t, bundle)); !passed {
			t.Errorf("%s %s: %s", first.ActionType, first.ToolName, output)
		}
	}
}

// The report lists what the bundle gives no means to check, and the previous bundle.
func TestReportSaysWhatIsNotChecked(t *testing.T) {
	own := judge(t, build(t, sampleInput(1), nil).Bytes, Options{})
	if !slices.Contains(own.Skipped, saysNoSignature) || own.PreviousBundleHash != hexSHA256([]byte("before")) {
		t.Errorf("%+v", own)
	}
	foreign := judge(t, aivstest.Gzip(t, tarOfFiles(t, membersOf(foreignFiles(testKey("k")))...)), Options{})
	for _, want := range []string{
		saysNoContents,
		saysNoFiles,
	} {
		if !slices.Contains(foreign.Skipped, want) {
			t.Errorf("%q does not have %q", foreign.Skipped, want)
		}
	}
}

// Each fault of session_sig.txt has a message of its own (draft 4.3, 7.2).
func TestFaultsOfTheSignature(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(text string) string
		want string
	}{
		"two of them":         {func(s string) string { return s + "signature:AAAA\n" }, `two lines "signature"`},
		"of another log":      {func(s string) string { return strings.Replace(s, "chain_hash:", "chain_hash:0", 1) }, "the log was changed after it was signed"},
		"63 bytes":            {func(s string) string { return cutSignature(s) + base64.StdEncoding.EncodeToString(make([]byte, 63)) }, "the signature is not the base64 of 64 bytes"},
		"66 bytes, one short": {func(s string) string { return cutSignature(s) + strings.Repeat("A", 87) }, "the signature is not the base64 of 64 bytes"},
		"another's":           {func(s string) string { return cutSignature(s) + base64.StdEncoding.EncodeToString(make([]byte, 64)) }, "the signature is wrong"},
	} {
		files := foreignFiles(testKey("k"))
		files[signatureName] = c.edit(files[signatureName])
		report := judge(t, aivstest.Gzip(t, tarOfFiles(t, membersOf(files)...)), Options{})
		if len(report.Faults) != 1 || report.Faults[0].Where != signatureName || !strings.HasPrefix(report.Faults[0].Message, c.want) {
			t.Errorf("%s: %+v", name, report.Faults)
		}
	}
}

// cutSignature returns session_sig.txt up to its signature.
func cutSignature(text string) string {
	before, _, _ := strings.Cut(text, "signature:")
	return before + "signature:"
}

// The Signer is called with the key and the bundle's time, and its refusal is a fault.
func TestSignerDecides(t *testing.T) {
	in, key := sampleInput(1), testKey("k")
	bundle := build(t, in, key).Bytes
	ended := errors.New("the key ended")
	for _, refusal := range []error{nil, ended} {
		signer := func(asked ed25519.PublicKey, at time.Time) error {
			if !asked.Equal(publicOf(key)) || at.Unix() != in.ExportedAt {
				t.Errorf("Signer was called with %x and %s", asked, at)
			}
			return refusal
		}
		report := judge(t, bundle, Options{Signer: signer})
		if report.Intact != (refusal == nil) || report.KeyPinned != (refusal == nil) {
			t.Errorf("%v: %+v", refusal, report)
		}
		if refusal != nil && (len(report.Faults) != 1 || report.Faults[0] != Fault{keyFile, ended.Error(), ""}) {
			t.Errorf("%+v", report.Faults)
		}
	}
	undated := aivstest.Gzip(t, tarOfFiles(t, membersOf(foreignFiles(key))...))
	report := judge(t, undated, Options{Signer: func(ed25519.PublicKey, time.Time) error { return nil }})
	if report.Intact || report.Faults[0].Where != manifestFile {
		t.Errorf("a bundle without a time: %+v", report.Faults)
	}
}
