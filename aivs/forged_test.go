package aivs

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// forgeries lists what somebody with a key can do to one row before chaining all following rows
// to it and signing everything again. Each breaks one rule.
var forgeries = []string{"session", "link", "link as written", "hash", "colon", "number below", "number above", "seal"}

// linkForged links a row that breaks one rule and keeps all others.
func linkForged(c *Chain, row *Row, forgery string) {
	row.ID, row.PrevHash = c.rows+1, c.prev
	switch forgery {
	case "session":
		row.SessionID += "x"
	case "link":
		row.PrevHash = hexSHA256([]byte("another row"))
	case "colon":
		row.ToolName += ":b"
	case "number below":
		row.ID--
	case "number above":
		row.ID++
	case "seal":
		row.ActionType, row.ToolName = ActionSeal, sealTool+hexSHA256([]byte("other contents"))
	}
	row.RowHash = c.hash(row)
	switch forgery {
	case "hash":
		row.RowHash = hexSHA256([]byte("other fields"))
	case "link as written": // the hash is over the true previous hash
		row.PrevHash = hexSHA256([]byte("another row"))
	}
	c.append(row)
}

// forged returns a bundle of three rows or more, completely signed, one row of which breaks one
// rule; "" for none. The row is counted from 1.
func forged(t testing.TB, own bool, forgery string, at int64) []byte {
	t.Helper()
	link := func(c *Chain, row *Row) {
		if c.Rows()+1 == at {
			linkForged(c, row, forgery)
			return
		}
		c.Link(row)
	}
	if own {
		return rechained(t, "", "", func(*Row) {}, link)
	}
	files, chain, log := foreignFiles(testKey("k")), NewChain(), ""
	for line := range strings.SplitSeq(files[logFile], "\n") {
		row, err := ParseRow([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		link(chain, &row)
		log += string(row.AppendJSON(nil)) + "\n"
	}
	files[logFile] = log
	files[manifestFile] = fmt.Sprintf(`{"aivs_version":"1.0","chain_hash":"%s","action_count":%d,"session_id":"sess-é"}`, chain.Hash(), chain.Rows())
	files[signatureName] = string(signatureFile(testKey("k"), chain.Hash()))
	files[attestationFile] = envelopeOf(testKey("k"), files, `{"_type": "`+statementType+`", "subject": [%s]}`, strings.TrimSpace)
	return tarOfFiles(t, membersOf(files)...)
}

// Chaining and signing a log again does not hide a broken rule: each rule is checked
// independently, and both verifiers name the row.
func TestForgedLogsAreRefused(t *testing.T) {
	place := t.TempDir()
	var names []string
	for _, own := range []bool{false, true} {
		rows := int64(3)
		if own {
			rows = 4
		}
		for at := range rows + 1 {
			for _, forgery := range append([]string{""}, forgeries...) {
				if (at == 0) != (forgery == "") || own && forgery == "seal" && at == rows {
					continue // the seal is the last row anyway: TestReforgedBundles
				}
				name := fmt.Sprintf("%t %d %s", own, at, forgery)
				names = append(names, name)
				content := forged(t, own, forgery, at)
				report := judge(t, aivstest.Gzip(t, content), Options{})
				if report.Intact != (at == 0) {
					t.Errorf("%s: %+v", name, report)
				} else if !report.Intact && !namesRow(report.Faults[0].Where, at) {
					t.Errorf("%s: the fault is at %q: %s", name, report.Faults[0].Where, report.Faults[0].Message)
				}
				unpackInto(t, filepath.Join(place, name), content)
			}
		}
	}
	slices.Sort(names)
	for i, line := range judgeAll(t, place, len(names)) {
		var own bool
		var at int64
		if _, err := fmt.Sscanf(names[i], "%t %d", &own, &at); err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(line, "FAIL  ")
		where, _, _ := strings.Cut(said, ":")
		if strings.HasPrefix(line, "0 ") != (at == 0) || at > 0 && !namesRow(where, at) {
			t.Errorf("%s: verify.py reports %s", names[i], line)
		}
	}
}

// namesRow reports whether a fault is at that row. It also accepts the row after it, which is the
// first to show that the two differ in session or sequence, and the range of all rows before it,
// since a seal does not show which of them was changed.
func namesRow(where string, row int64) bool {
	return where == fmt.Sprintf("row %d", row) || where == fmt.Sprintf("row %d", row+1) || where == manifestFile ||
		where == fmt.Sprintf("rows 1-%d", row-1) || row == 2 && where == "row 1"
}

// Both verifiers refuse a signed bundle of our own dialect whose text, where no row hash covers
// it, has a form that no builder writes. They report that reason.
func TestResignedLogsAreRefused(t *testing.T) {
	after := func(lines []string) []string {
		last, err := ParseRow([]byte(lines[3]))
		if err != nil {
			t.Fatal(err)
		}
		row := Row{ID: 5, SessionID: last.SessionID, ActionType: ActionToolCall, ToolName: "a.b", InputsJSON: "{}", OutputsJSON: "{}", PrevHash: last.RowHash}
		row.RowHash = NewChain().hash(&row)
		return append(lines, string(row.AppendJSON(nil)))
	}
	numbered := func(lines []string) []string {
		row, err := ParseRow([]byte(lines[3]))
		if err != nil {
			t.Fatal(err)
		}
		row.ID = 7
		row.RowHash = NewChain().hash(&row)
		return append(lines[:3], string(row.AppendJSON(nil)))
	}
	edit := func(line int, old, with string) func([]string) []string {
		return func(lines []string) []string {
			lines[line] = strings.Replace(lines[line], old, with, 1)
			return lines
		}
	}
	cases := map[string]struct {
		edit func([]string) []string
		end  string
		want string
	}{
		"as it is":         {func(l []string) []string { return l }, "\n", ""},
		"another space":    {edit(1, `{"id"`, `{ "id"`), "\n", "row 2: " + saysNotOurs},
		"a further member": {edit(2, `, "prev_hash"`, `, "x": 1, "prev_hash"`), "\n", "row 3: "},
		"an escape":        {edit(2, `"aap.`, `"\u0061ap.`), "\n", "row 3: " + saysNotOurs},
		"carriage return":  {func(l []string) []string { l[1] += "\r"; return l }, "\n", "row 2: "},
		"no last line end": {func(l []string) []string { return l }, "", "row 4: " + saysNotOurs},
		"empty line":       {edit(2, "{", "\n{"), "\n", "row 3: an empty line stands before it"},
		"empty line first": {edit(0, "{", "\n{"), "\n", "row 1: " + saysNotOurs},
		"after the seal":   {after, "\n", "row 5: comes after the seal"},
		"another number":   {numbered, "\n", "row 4: missing or out of order (found number 7)"},
	}
	place, names := t.TempDir(), slices.Sorted(maps.Keys(cases))
	for _, name := range names {
		c := cases[name]
		content := relogged(t, c.edit, c.end)
		check := newLogCheck(nil)
		for _, file := range entries(t, content) {
			if file.Name == logFile {
				if err := eachLine(bytes.NewReader(file.Data), 1<<20, check.line); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := fmt.Sprint(check.fault); (check.fault == nil) != (c.want == "") || c.want != "" && !strings.HasPrefix(check.fault.Where+": "+check.fault.Message, c.want) {
			t.Errorf("%s: the log check reports %s", name, got)
		}
		if report := judge(t, aivstest.Gzip(t, content), Options{}); report.Intact != (c.want == "") {
			t.Errorf("%s: %+v", name, report)
		}
		unpackInto(t, filepath.Join(place, name), content)
	}
	for i, line := range judgeAll(t, place, len(names)) {
		want := cases[names[i]].want
		if !strings.HasPrefix(line, "0 ") == (want == "") || !strings.Contains(line, want) {
			t.Errorf("%s: verify.py reports %s", names[i], line)
		}
	}
}

// relogged returns a bundle of our own dialect whose lines of the log were edited, and which was
// then signed again.
func relogged(t *testing.T, edit func([]string) []string, end string) []byte {
	t.Helper()
	in := sampleInput(2)
	open := openingOf(t, in, testKey("k"))
	var log bytes.Buffer
	if _, err := writeLog(&log, in, open); err != nil {
		t.Fatal(err)
	}
	lines := edit(strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n"))
	chain := NewChain()
	for _, line := range lines {
		row, err := ParseRow([]byte(strings.TrimSpace(line)))
		if err != nil {
			t.Fatal(err)
		}
		chain.append(&row)
	}
	return tarOfFiles(t, attestedFiles(t, in, open, chain, strings.Join(lines, "\n")+end)...)
}

// The last line of traces.jsonl must have a line feed, too.
func TestTracesEndWithALineEnd(t *testing.T) {
	in := sampleInput(2)
	in.Members[0].Data = bytes.TrimSuffix(in.Members[0].Data, []byte("\n"))
	bundle := build(t, in, testKey("k")).Bytes
	const want = "row 3: its trace_sha256 is not that of line 2 of traces.jsonl"
	report := judge(t, bundle, Options{})
	if report.Intact || report.Faults[0].Where+": "+report.Faults[0].Message != want {
		t.Errorf("%+v", report)
	}
	if passed, output := python(t, unpack(t, bundle)); passed || !strings.Contains(output, "FAIL  "+want) {
		t.Error(output)
	}
}

// A later version of our dialect is reported as such.
func TestNewerDialectIsNamed(t *testing.T) {
	content := reforged(t, "", "", func(r *Row) {
		if r.ActionType == ActionOpen {
			r.ToolName = openFamily + "2"
		}
	})
	if report := judge(t, aivstest.Gzip(t, content), Options{}); report.Intact || report.Dialect != DialectNewer {
		t.Errorf("%+v", report)
	}
}

// randomForgery draws a re-chained, re-signed log with one broken rule.
func randomForgery(t testing.TB, r *rapid.T) []byte {
	own := rapid.Bool().Draw(r, "own")
	forgery := rapid.SampledFrom(forgeries).Draw(r, "forgery")
	return forged(t, own, forgery, rapid.Int64Range(1, 3).Draw(r, "row"))
}
