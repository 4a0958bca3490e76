package aivs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// generatorRow is one row as the draft's own generator hashes it.
type generatorRow struct {
	id int64
	// "seven", "digests", "left off" (digests that are not in the row), "inputs" (no outputs),
	// "text", "seal"; with " and a digest", the row has only the digest of its inputs.
	formula string
}

// generatorLines returns the lines of a log as that generator writes them.
func generatorLines(rows []generatorRow) (log []string, chain *Chain) {
	chain = NewChain()
	for _, g := range rows {
		row := Row{ID: g.id, SessionID: "s", ActionType: ActionToolCall, ToolName: "browser.click", Timestamp: 1.5,
			InputsJSON: fmt.Sprintf(`{"n": %d}`, g.id), OutputsJSON: "plain text", PrevHash: chain.prev}
		in, out := hexSHA256([]byte(row.InputsJSON)), hexSHA256([]byte(row.OutputsJSON))
		extra := ""
		formula, oneDigest := strings.CutSuffix(g.formula, " and a digest")
		switch formula {
		case "seal":
			row.ActionType, row.ToolName, row.InputsJSON, row.OutputsJSON = ActionSeal, sealTool+chain.Content(), "", ""
			row.RowHash = chain.hash(&row)
		case "seven":
			row.RowHash = chain.hash(&row)
		case "text":
			row.RowHash = chain.hash(&row, row.InputsJSON, row.OutputsJSON)
		case "inputs":
			row.RowHash = chain.hash(&row, in, "")
		default:
			row.RowHash = chain.hash(&row, in, out)
		}
		if g.formula == "digests" {
			extra = fmt.Sprintf(`, "inputs_digest": "%s", "outputs_digest": "%s", "schema_version": 2}`, in, out)
		}
		if oneDigest {
			extra = fmt.Sprintf(`, "inputs_digest": "%s"}`, in)
		}
		line := string(row.AppendJSON(nil))
		if extra != "" {
			line = strings.TrimSuffix(line, "}") + extra
		}
		log = append(log, line)
		chain.append(&row)
	}
	return log, chain
}

// generatorBundle returns a bundle as that generator writes it.
func generatorBundle(t *testing.T, manifestMembers string, rows ...generatorRow) []byte {
	t.Helper()
	log, chain := generatorLines(rows)
	manifest := fmt.Sprintf(`{"session_id": "s", "action_count": %d, "chain_hash": "%s"%s}`, len(rows), chain.Hash(), manifestMembers)
	signature := fmt.Sprintf("chain_hash:%s\n# Ed25519 signing not available\n", chain.Hash())
	return tarOfFiles(t, Member{Name: logFile, Data: []byte(strings.Join(log, "\n"))}, Member{Name: manifestFile, Data: []byte(manifest)},
		Member{Name: signatureName, Data: []byte(signature)}, Member{Name: keyFile, Data: []byte("# No signing key configured\n")})
}

func tarOfFiles(t testing.TB, files ...Member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(header(f.Name, int64(len(f.Data)))); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const ofGenerator = `, "conduit_version": "0.2.0"`

// Bundles of the draft's own generator are accepted, each with its dialect.
func TestGeneratorDialects(t *testing.T) {
	seven := []generatorRow{{3, "seven"}, {4, "seven"}, {9, "seven"}}
	cases := map[string]struct {
		manifest string
		rows     []generatorRow
		dialect  string
		skips    string
	}{
		"from 1":            {ofGenerator, []generatorRow{{1, "seven"}, {2, "seven"}}, DialectDraft, "inputs, outputs and errors"},
		"ids with gaps":     {ofGenerator, seven, DialectMonotonic, "so a gap shows nothing"},
		"nothing but ids":   {"", seven, DialectMonotonic, "so a gap shows nothing"},
		"version of draft":  {ofGenerator + `, "aivs_version": "1.0"`, seven, DialectMonotonic, "so a gap shows nothing"},
		"digests":           {ofGenerator, []generatorRow{{1, "digests"}, {2, "digests"}}, DialectConduit9, saysNoErrors},
		"digests, ids":      {ofGenerator, []generatorRow{{5, "digests"}, {7, "digests"}}, DialectConduit9, "so a gap shows nothing"},
		"digests left off":  {ofGenerator, []generatorRow{{1, "left off"}, {2, "left off"}}, DialectConduit9, saysNoErrors},
		"text":              {ofGenerator, []generatorRow{{1, "text"}, {2, "text"}}, DialectConduit9, "row 1, and of others like it, does not show"},
		"across a new form": {ofGenerator, []generatorRow{{1, "seven"}, {2, "digests"}}, DialectConduit9, "rows hashed over seven fields"},
	}
	place, names := t.TempDir(), slices.Sorted(maps.Keys(cases))
	for _, name := range names {
		c := cases[name]
		content := generatorBundle(t, c.manifest, c.rows...)
		unpackInto(t, filepath.Join(place, name), content)
		report := judge(t, aivstest.Gzip(t, content), Options{})
		if !report.Intact || report.Dialect != c.dialect || !strings.Contains(strings.Join(report.Skipped, "\n"), c.skips) {
			t.Errorf("%s: %+v", name, report)
		}
	}
	for i, line := range judgeAll(t, place, len(names)) {
		if !strings.HasPrefix(line, "0 ") {
			t.Errorf("%s: verify.py reports %s", names[i], line)
		}
	}
}

func TestGeneratorDialectsObeyTheirRules(t *testing.T) {
	nine := generatorBundle(t, ofGenerator, generatorRow{1, "digests"}, generatorRow{2, "digests"})
	cases := map[string]struct {
		content     []byte
		where, want string
	}{
		"gap in a bundle of the draft": {generatorBundle(t, `, "aivs_version": "1.0"`, generatorRow{1, "seven"}, generatorRow{3, "seven"}), "row 2", "found number 3"},
		"from 3, of the draft":         {generatorBundle(t, `, "aivs_version": "1.0"`, generatorRow{3, "seven"}), "row 1", "found number 3"},
		"id twice":                     {generatorBundle(t, ofGenerator, generatorRow{3, "seven"}, generatorRow{3, "seven"}), "row 2", "found number 3"},
		"id twice, the row's number":   {generatorBundle(t, ofGenerator, generatorRow{2, "seven"}, generatorRow{2, "seven"}), "row 2", "found number 2"},
		"id below":                     {generatorBundle(t, ofGenerator, generatorRow{3, "seven"}, generatorRow{2, "seven"}), "row 2", "found number 2"},
		"inputs changed":               {bytes.Replace(nine, []byte(`"{\"n\": 2}"`), []byte(`"{\"n\": 9}"`), 1), "row 2", "changed, or redacted, after"},
		"outputs changed":              {bytes.Replace(nine, []byte("plain text"), []byte("plain test"), 1), "row 1", "changed, or redacted, after"},
		"tool changed":                 {bytes.Replace(nine, []byte("browser.click"), []byte("browser.clack"), 1), "row 1", "its row_hash is not"},
		"digest changed":               {bytes.Replace(nine, []byte(`"inputs_digest": "`), []byte(`"inputs_digest":"0`), 1), "row 1", "its row_hash is not"},
		"inputs of a text hash changed": {bytes.Replace(generatorBundle(t, ofGenerator, generatorRow{1, "text"}), []byte(`\": 1`), []byte(`\": 2`), 1),
			"row 1", "its row_hash is not"},
		"digests, one of them left off":  {generatorBundle(t, ofGenerator, generatorRow{1, "left off and a digest"}), "row 1", "its row_hash is not"},
		"the digest of the inputs alone": {generatorBundle(t, ofGenerator, generatorRow{1, "inputs and a digest"}), "row 1", "its row_hash is not"},
		"text, and a digest":             {generatorBundle(t, ofGenerator, generatorRow{1, "text and a digest"}), "row 1", "its row_hash is not"},
	}
	place, names := t.TempDir(), slices.Sorted(maps.Keys(cases))
	for _, name := range names {
		c := cases[name]
		unpackInto(t, filepath.Join(place, name), c.content)
		report := judge(t, aivstest.Gzip(t, c.content), Options{})
		if report.Intact || len(report.Faults) != 1 || report.Faults[0].Where != c.where || !strings.Contains(report.Faults[0].Message, c.want) {
			t.Errorf("%s: %+v", name, report.Faults)
		}
	}
	for i, line := range judgeAll(t, place, len(names)) {
		if c := cases[names[i]]; !strings.HasPrefix(line, "1 ") || !strings.Contains(line, "FAIL  "+c.where+": ") || !strings.Contains(line, c.want) {
			t.Errorf("%s: verify.py reports %s", names[i], line)
		}
	}
}

// A signature over the chain covers the fields that the rows are hashed over, and the contents
// that a seal row after all of them covers.
func TestWhatTheRowsOfAGeneratorCover(t *testing.T) {
	const gap = saysNoNumbers
	rows, most := []string{CoversRows}, []string{CoversRows, CoversInputs, CoversOutputs}
	for name, c := range map[string]struct {
		rows             []generatorRow
		covered, skipped []string
	}{
		"no rows":    {nil, rows, []string{saysNoContents}},
		"seven":      {[]generatorRow{{1, "seven"}}, rows, []string{saysNoContents}},
		"seven, ids": {[]generatorRow{{2, "seven"}}, rows, []string{gap, saysNoContents}},
		"digests":    {[]generatorRow{{1, "digests"}, {2, "left off"}}, most, []string{saysNoErrors}},
		"mixed": {[]generatorRow{{1, "seven"}, {2, "digests"}}, rows,
			[]string{saysNoneMixed}},
		"text": {[]generatorRow{{1, "digests"}, {2, "text"}, {3, "text"}}, rows,
			[]string{fmt.Sprintf(saysNoBorder, 2), saysNoErrors}},
		"sealed":              {[]generatorRow{{1, "seven"}, {2, "seal"}}, append(most, CoversErrors), nil},
		"sealed, ids":         {[]generatorRow{{2, "seven"}, {4, "seal"}}, append(most, CoversErrors), []string{gap}},
		"rows after the seal": {[]generatorRow{{1, "seven"}, {2, "seal"}, {3, "seven"}}, rows, []string{fmt.Sprintf(saysNoneAfter, 2)}},
	} {
		check := newLogCheck(nil)
		lines, _ := generatorLines(c.rows)
		for _, line := range lines {
			check.line([]byte(line), true)
		}
		if covered, skipped := check.covered(), check.uncovered(); check.fault != nil || !slices.Equal(covered, c.covered) || !slices.Equal(skipped, c.skipped) {
			t.Errorf("%s: covered %q, skipped %q, fault %v", name, covered, skipped, check.fault)
		}
	}
}

// The open row of our own dialect must be hashed as the draft specifies, like those after it.
func TestOpenRowOfNineFieldsIsRefused(t *testing.T) {
	row, err := openingOf(t, sampleInput(0), nil).row()
	if err != nil {
		t.Fatal(err)
	}
	row.ID = 1
	row.RowHash = NewChain().hash(&row, contentDigest(row.InputsJSON), contentDigest(row.OutputsJSON))
	check := newLogCheck(nil)
	check.line(row.AppendJSON(nil), true)
	if check.fault == nil || check.fault.Message != "changed: its row_hash is not the hash of its fields" {
		t.Errorf("fault %v", check.fault)
	}
}
