package seal

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/schema"
)

// traceOf returns a trace of the session with its own time, action members and metadata.
func traceOf(id, at, action, metadata string) string {
	return `{"aap_version":"0.1.0","trace_id":"` + id + `","agent_id":"a","card_id":"c","timestamp":"` + at + `","action":{` + action + `,"category":"bounded"},` +
		`"decision":{"alternatives_considered":[{"option_id":"x","description":"d"}],"selected":"x","selection_reasoning":"r","values_applied":["v"]},` +
		`"context":{"session_id":"s","metadata":{` + metadata + `}}}`
}

// bundleOfTraces returns a bundle whose rows come from traces of every kind.
func bundleOfTraces(t *testing.T) []byte {
	t.Helper()
	part := &Part{AgentID: "a", SessionID: "s", Plan: Record{Part: 1, LastPart: true}, Verdict: &schema.SessionVerdict{AgentID: "a"}}
	for _, raw := range []string{
		secretive,
		traceOf("t2", "2026-01-02T03:04:05.25Z", `"type":"recommend","name":"a:b%"`, ``),
		traceOf("t3", "2026-01-02T05:04:06.123456789+02:00", `"type":"execute","name":"é","parameters":{ "n" : 1.50, "s":"\u00e9\/", "l":[1, 2] }`, `"x":1`),
		traceOf("t4", "2026-01-02T03:04:07Z", `"type":"execute","name":"n","parameters":{}`,
			`"execution":{"tool_name":"get","inputs":{"q":"é 😀"},"outputs":{"text":"`+strings.Repeat("long ", 900)+`"},"cost_cents":3}`),
		traceOf("t5", "2026-01-02T03:04:08Z", `"type":"execute","name":"n"`, `"execution":{"tool_name":"web.get","outputs":null,"error":"503","cost_cents":1.5}`),
		traceOf("t6", "2026-01-02T03:04:09Z", `"type":"execute","name":"n"`, `"execution":{"outputs":{"ok": true}}`),
	} {
		part.Traces = append(part.Traces, stored(t, raw, new(schema.Verdict)))
	}
	bundle, _, _ := built(t, part, redact.AllRules)
	return bundle.Bytes
}

// withRows returns a bundle whose rows were changed; relinked chains them again.
func withRows(t *testing.T, bundle []byte, relinked bool, change func(*aivs.Row)) []byte {
	t.Helper()
	return withFiles(t, bundle, func(name string, text []byte) []byte {
		if name != "audit_log.jsonl" {
			return text
		}
		chain, changed := aivs.NewChain(), []byte(nil)
		for _, row := range rowsOf(t, text) {
			change(&row)
			if relinked {
				chain.Link(&row)
			}
			changed = append(row.AppendJSON(changed), '\n')
		}
		return changed
	})
}

// withFiles returns a bundle whose files were edited, in their order.
func withFiles(t *testing.T, bundle []byte, edit func(name string, text []byte) []byte) []byte {
	t.Helper()
	in := tar.NewReader(bytes.NewReader(aivstest.Gunzip(t, bundle)))
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	out := tar.NewWriter(zip)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		text = edit(strings.TrimPrefix(h.Name, "session_proof/"), text)
		h.Size = int64(len(text))
		if err := errors.Join(out.WriteHeader(h), write(out, text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func write(w io.Writer, text []byte) error {
	_, err := w.Write(text)
	return err
}

func rowsOf(t *testing.T, log []byte) (rows []aivs.Row) {
	t.Helper()
	for line := range bytes.Lines(log) {
		row, err := aivs.ParseRow(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// Go and Python name the row that was changed after sealing, and no other row.
func TestChangedRowsAreNamed(t *testing.T) {
	bundle := bundleOfTraces(t)
	swap := func(old, with string) func(string) string {
		return func(text string) string { return strings.Replace(text, old, with, 1) }
	}
	inputs := func(edit func(string) string) func(*aivs.Row) {
		return func(r *aivs.Row) { r.InputsJSON = edit(r.InputsJSON) }
	}
	outputs := func(edit func(string) string) func(*aivs.Row) {
		return func(r *aivs.Row) { r.OutputsJSON = edit(r.OutputsJSON) }
	}
	cases := []struct {
		row      int64 // 0: unknown
		field    string
		relinked bool
		change   func(*aivs.Row)
	}{
		{2, "inputs_json", false, inputs(swap(`"trace_sha256":"`, `"trace_sha256":"0`))},
		{2, "action_type", true, func(r *aivs.Row) { r.ActionType = "aap.recommend" }},
		{3, "inputs_json", false, inputs(swap(`"t2"`, `"t9"`))},
		{3, "inputs_json", false, inputs(swap(`"inputs":{}`, `"inputs":{"n":1}`))},
		{3, "tool_name", true, func(r *aivs.Row) { r.ToolName = "aap.b" }},
		{4, "inputs_json", false, inputs(swap(`1.50`, `2.50`))},
		{4, "timestamp", true, func(r *aivs.Row) { r.Timestamp += 3600 }},
		{5, "inputs_json", false, inputs(swap(`"q"`, `"p"`))},
		{5, "cost_cents", true, func(r *aivs.Row) { r.CostCents = 0 }},
		{6, "error", false, func(r *aivs.Row) { r.Error = "" }},
		{6, "outputs_json", false, outputs(swap(`null`, `{}`))},
		{7, "outputs_json", false, outputs(swap(`true`, `false`))},
		{7, "outputs_json", false, outputs(swap(`true`, `no JSON`))},
		{0, "", false, func(r *aivs.Row) { // truncated outputs cannot be compared
			if r.ID == 5 {
				r.OutputsJSON = strings.Replace(r.OutputsJSON, "long", "lung", 1)
			}
		}},
	}
	for _, c := range cases {
		changed := withRows(t, bundle, c.relinked, func(r *aivs.Row) {
			if r.ID == c.row || c.row == 0 {
				c.change(r)
			}
		})
		report, err := aivs.Verify(bytes.NewReader(changed), aivs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("row %d: changed: its %s is not that of its trace, line %d of traces.jsonl", c.row, c.field, c.row-1)
		if c.row == 0 {
			want = "rows 1-7: an input, output or error was changed after row 8 sealed them"
		}
		if got := report.Faults[0].Where + ": " + report.Faults[0].Message; report.Intact || got != want || rowsNamed(report) > 1 {
			t.Errorf("%+v\n%d %s: %+v", want, c.row, c.field, report.Faults)
		}
		if said := verifyPy(t, changed); !strings.Contains(said, "FAIL  "+want+"\n") || strings.Count(said, "FAIL  row") != 1 {
			t.Errorf("%d %s: verify.py reports %s", c.row, c.field, said)
		}
	}
	if report, err := aivs.Verify(bytes.NewReader(withRows(t, bundle, true, func(*aivs.Row) {})), aivs.Options{}); err != nil || !report.Intact {
		t.Errorf("with no row changed: %+v, %v", report, err)
	}
}

// forgedLog returns a bundle whose rows were edited, numbered, sealed and chained again, in all
// places but the signature itself.
func forgedLog(t *testing.T, bundle []byte, edit func([]aivs.Row) []aivs.Row) []byte {
	t.Helper()
	report, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	chain := aivs.NewChain()
	return withFiles(t, bundle, func(name string, text []byte) []byte {
		switch name {
		case "audit_log.jsonl":
			rows := edit(rowsOf(t, text))
			text = nil
			for i := range rows {
				row := &rows[i]
				row.ID = int64(i + 1)
				if i == len(rows)-1 {
					row.ToolName = "aivs.content.sha256." + chain.Content()
				}
				chain.Link(row)
				text = append(row.AppendJSON(text), '\n')
			}
		case "manifest.json", "session_sig.txt":
			text = bytes.Replace(text, []byte(report.ChainHash), []byte(chain.Hash()), 1)
			text = bytes.Replace(text, fmt.Appendf(nil, `"action_count": %d`, report.Rows), fmt.Appendf(nil, `"action_count": %d`, chain.Rows()), 1)
		}
		return text
	})
}

// When a forger updates everything but the signature, both verifiers name the rows that were
// changed, removed, added and moved, and none of the rows after them.
func TestRowsOfAForgedLogAreNamed(t *testing.T) {
	bundle := bundleOfTraces(t)
	const wrong = "session_sig.txt: the signature is wrong: it is not by the key in public_key.pem over this log"
	for name, c := range map[string]struct {
		edit func([]aivs.Row) []aivs.Row
		want []string
	}{
		"nothing":          {func(r []aivs.Row) []aivs.Row { r[0].OutputsJSON = `{}`; return r }, nil},
		"changed":          {func(r []aivs.Row) []aivs.Row { r[2].ToolName = "aap.b"; return r }, []string{"row 3: changed: its tool_name is not that of its trace, line 2 of traces.jsonl"}},
		"removed":          {func(r []aivs.Row) []aivs.Row { return slices.Delete(r, 2, 3) }, []string{"traces.jsonl: the row of line 2 was removed"}},
		"the last removed": {func(r []aivs.Row) []aivs.Row { return slices.Delete(r, 6, 7) }, []string{"traces.jsonl: the row of line 6 was removed"}},
		"removed, and one changed behind it": {func(r []aivs.Row) []aivs.Row { r[5].Error = ""; return slices.Delete(r, 2, 3) },
			[]string{"row 5: changed: its error is not that of its trace, line 5 of traces.jsonl", "traces.jsonl: the row of line 2 was removed"}},
		"repeated": {func(r []aivs.Row) []aivs.Row { return slices.Insert(r, 4, r[2]) }, []string{"row 5: added: it has the trace of row 3"}},
		"added": {func(r []aivs.Row) []aivs.Row {
			x := r[2]
			x.InputsJSON = `{"inputs":{}}`
			return slices.Insert(r, 4, x)
		},
			[]string{"row 5: added: no line of traces.jsonl is its trace"}},
		"moved": {func(r []aivs.Row) []aivs.Row { r[2], r[3] = r[3], r[2]; return r },
			[]string{"row 4: moved: its trace is line 2 of traces.jsonl, before those of rows before it"}},
	} {
		t.Run(name, func(t *testing.T) {
			forged := forgedLog(t, bundle, c.edit)
			report, err := aivs.Verify(bytes.NewReader(forged), aivs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if name != "nothing" {
				want = append(want, wrong)
			}
			for i, w := range want {
				if i >= len(report.Faults) || report.Faults[i].Where+": "+report.Faults[i].Message != w {
					t.Errorf("%+v, want %q", report.Faults, want)
					break
				}
			}
			said := ""
			for _, w := range want {
				said += "FAIL  " + w + "\n"
			}
			if py := verifyPy(t, forged); !strings.Contains(py, said+"\n") && name != "nothing" || strings.Count(py, "FAIL  ") != len(want) {
				t.Errorf("verify.py reports %s\nwant %s", py, said)
			}
		})
	}
}

// They also name the changed row of a log that somebody else signed, with and without a pinned
// key.
func TestChangedRowIsNamedWhereAnotherKeySigned(t *testing.T) {
	bundle := forgedLog(t, bundleOfTraces(t), func(r []aivs.Row) []aivs.Row { r[2].ToolName = "aap.b"; return r })
	report, err := aivs.Verify(bytes.NewReader(bundle), aivs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	thief := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	der, err := x509.MarshalPKIXPublicKey(thief.Public())
	if err != nil {
		t.Fatal(err)
	}
	resigned := withFiles(t, bundle, func(name string, text []byte) []byte {
		switch name {
		case "session_sig.txt":
			return fmt.Appendf(nil, "chain_hash:%s\nsignature:%s\n", report.ChainHash, base64.StdEncoding.EncodeToString(ed25519.Sign(thief, []byte(report.ChainHash))))
		case "public_key.pem":
			return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		}
		return text
	})
	const want = "changed: its tool_name is not that of its trace, line 2 of traces.jsonl"
	for _, keys := range [][]ed25519.PublicKey{nil, {make(ed25519.PublicKey, ed25519.PublicKeySize)}} {
		report, err := aivs.Verify(bytes.NewReader(resigned), aivs.Options{Keys: keys})
		if err != nil || report.Signature != aivs.SignatureValid || report.Faults[0] != (aivs.Fault{Where: "row 3", Message: want}) {
			t.Errorf("%d keys: %+v, %v", len(keys), report, err)
		}
	}
	if py := verifyPy(t, resigned); !strings.Contains(py, "FAIL  row 3: "+want+"\nFAIL  row 1: its key_id is not that of public_key.pem\n") {
		t.Errorf("verify.py reports %s", py)
	}
}

// A row that was changed and hashed again is named together with the next one, whose link it
// broke.
func TestChangedRowIsNamedWhereALinkIsBroken(t *testing.T) {
	changed := withFiles(t, bundleOfTraces(t), func(name string, text []byte) []byte {
		if name != "audit_log.jsonl" {
			return text
		}
		chain, rows := aivs.NewChain(), rowsOf(t, text)
		text = nil
		for i := range rows {
			row := rows[i]
			if i == 2 {
				row.ToolName = "aap.b"
			}
			if i < 3 {
				chain.Link(&row)
			}
			text = append(row.AppendJSON(text), '\n')
		}
		return text
	})
	want := []aivs.Fault{
		{Where: "row 3", Message: "changed: its tool_name is not that of its trace, line 2 of traces.jsonl"},
		{Where: "row 4", Message: "does not follow row 3: its prev_hash is not the hash of that row"},
	}
	report, err := aivs.Verify(bytes.NewReader(changed), aivs.Options{})
	if err != nil || !slices.Equal(report.Faults, want) {
		t.Errorf("%+v, %v", report, err)
	}
	said := "FAIL  " + want[0].Where + ": " + want[0].Message + "\nFAIL  " + want[1].Where + ": " + want[1].Message + "\n\n"
	if py := verifyPy(t, changed); !strings.Contains(py, said) {
		t.Errorf("verify.py reports %s", py)
	}
}

func rowsNamed(r *aivs.Report) (n int) {
	for _, f := range r.Faults {
		if strings.HasPrefix(f.Where, "row") {
			n++
		}
	}
	return n
}

// verifyPy unpacks a bundle and returns the output of this version's verify.py.
func verifyPy(t *testing.T, bundle []byte) string {
	t.Helper()
	dir := t.TempDir()
	in := tar.NewReader(bytes.NewReader(aivstest.Gunzip(t, bundle)))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		text, err := io.ReadAll(in)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, h.Name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, h.Name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.Command("python3", "-I", filepath.Join(dir, "session_proof", "verify.py")).Output()
	if code := new(exec.ExitError); err != nil && !errors.As(err, &code) {
		t.Fatal(err)
	}
	return string(said)
}
