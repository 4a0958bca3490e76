package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/plumbline/plumbline/aivs"
)

type bundleShowCommand struct {
	File string `arg:"" help:"The bundle (.tar.gz)."`
	JSON bool   `help:"Print the manifest as one JSON object, then one object for each row."`
}

// Help returns the examples.
func (*bundleShowCommand) Help() string {
	return examples(
		"plumbline bundle show aivs_proof_s-1.tar.gz",
		"plumbline bundle show aivs_proof_s-1.tar.gz --json | head -n 1",
	)
}

// Run shows the contents of a bundle and verifies it at the same time. If the bundle is not
// intact, Run shows the rows before the first bad one.
func (c *bundleShowCommand) Run(ctx context.Context, con *console) error {
	var rows []aivs.Row
	report, err := verifyFile(ctx, c.File, aivs.Options{Row: func(r *aivs.Row) { rows = append(rows, *r) }})
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(con.out, report)
		for i := 0; i < len(rows) && err == nil; i++ {
			err = writeJSON(con.out, json.RawMessage(rows[i].AppendJSON(nil)))
		}
	} else {
		err = writeBundle(con.out, report, rows)
	}
	if err != nil {
		return err
	}
	if !report.Intact {
		fmt.Fprintf(con.errs, "plumbline: this bundle is not intact; to see why, run: plumbline bundle verify %s\n", c.File)
		return errFoundBad
	}
	return nil
}

// writeBundle writes the contents of the open row, which only our bundles have, and the rows.
func writeBundle(w io.Writer, report *aivs.Report, rows []aivs.Row) error {
	lines := [][]any{{"integrity", report.Conclusion()}}
	for _, f := range report.Faults {
		lines = append(lines, []any{"fault", f.Where + ": " + f.Message})
	}
	lines = append(lines, []any{"verdict", strings.TrimPrefix(report.VerdictText(), "Verdict ")},
		[]any{"dialect", report.Dialect}, []any{"session", report.SessionID}, []any{"rows", report.Rows},
		[]any{"chain hash", report.ChainHash}, []any{"sha256", report.SHA256},
		[]any{"signature", report.SignatureText()}, []any{"public key", report.PublicKey})
	if o := report.Opening; o != nil {
		lines = append(lines, []any{"agent", o.AgentID}, []any{"exported at", o.ExportedAt},
			[]any{"part", fmt.Sprintf("%d, last: %t", o.Part, o.LastPart)}, []any{"traces", o.TraceCount},
			[]any{"redactions", fmt.Sprintf("%d, by optional rules: %d", o.Redactions, o.OptionalRedactions)}, []any{"generator", o.Generator}, []any{"previous bundle", o.PreviousBundleHash})
		for _, m := range o.Members {
			lines = append(lines, []any{"member", fmt.Sprintf("%s, %d bytes, sha256 %s", m.Name, m.Bytes, m.SHA256)})
		}
	}
	if err := writeRows(w, append(lines, nil)); err != nil {
		return err
	}
	t := newTable(w)
	t.row("row", "time", "action", "tool", "cents", "error", "inputs")
	for i := range rows {
		r := &rows[i]
		t.row(r.ID, r.Time(), r.ActionType, r.ToolName, r.CostCents, r.Error, r.InputsJSON)
	}
	return t.Flush()
}
