package aivs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// forgeries are what someone who holds a key can do to one row before all that follow
// are chained to it and everything is signed again. Each breaks one rule.
var forgeries = []string{"session", "link", "hash", "colon", "number below", "number above", "seal"}

// linkForged links a row that breaks one rule, and keeps all the others.
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
	if forgery == "hash" {
		row.RowHash = hexSHA256([]byte("other fields"))
	}
	c.append(row)
}

// forged is a bundle of three rows or more, signed throughout, one row of which breaks
// one rule; "" for none. The row is counted from 1.
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

// Whoever chains and signs a log again cannot break a rule of it: each is checked by
// itself, and both verifiers name the row.
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
				report := judge(t, gzipped(t, content), Options{})
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
			t.Errorf("%s: verify.py says %s", names[i], line)
		}
	}
}

// namesRow reports whether a fault is at that row; at the one after it, which is the
// first that shows that the two are not of one session or one sequence; or at all those
// before it, of which a seal does not show which was changed.
func namesRow(where string, row int64) bool {
	return where == fmt.Sprintf("row %d", row) || where == fmt.Sprintf("row %d", row+1) || where == manifestFile ||
		where == fmt.Sprintf("rows 1-%d", row-1)
}

// randomForgery draws a re-chained, re-signed log with one broken rule.
func randomForgery(t testing.TB, r *rapid.T) []byte {
	own := rapid.Bool().Draw(r, "own")
	forgery := rapid.SampledFrom(forgeries).Draw(r, "forgery")
	return forged(t, own, forgery, rapid.Int64Range(1, 3).Draw(r, "row"))
}
