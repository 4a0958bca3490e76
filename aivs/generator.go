package aivs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// generatorLog records how a log of the draft's own generator differs from the draft. The
// generator numbers the rows of all its sessions in one sequence, so a session may begin at any
// id and have gaps. Later versions hash nine fields: the draft's seven, then inputs and outputs.
// Those two are hashed as digests, or as text in the versions before.
type generatorLog struct {
	last   int64  // id of the row before
	gap    *Fault // the first row whose id differs from its number
	seven  bool   // some rows are hashed over the draft's seven fields
	nine   bool   // some rows carry, or are hashed over, nine fields
	joined int64  // the first row hashed over inputs and outputs as text; 0: none
}

// outOfStep returns the fault of an id that is not its row's number, or is not above the id
// before. It returns "" when there is none.
func (g *generatorLog) outOfStep(id, number int64) string {
	if id == number && id > g.last {
		return ""
	}
	return fmt.Sprintf("missing or out of order (found number %d)", id)
}

// passes reports whether an id is above the one before, which the generator's numbering allows.
// It records the first such gap.
func (g *generatorLog) passes(id, number int64, problem string) bool {
	if id <= g.last {
		return false
	}
	if g.gap == nil {
		g.gap = &Fault{Where: fmt.Sprintf("row %d", number), Message: problem}
	}
	return true
}

// hashProblem checks a row hash that differs from the draft's against the hashes over nine
// fields.
func (l *logCheck) hashProblem(row *Row) string {
	g, in, out := &l.generator, l.parser.inputsDigest, l.parser.outputsDigest
	inputs, outputs := contentDigest(row.InputsJSON), contentDigest(row.OutputsJSON)
	switch {
	case in != nil && out != nil && row.RowHash == l.chain.hash(row, *in, *out):
		if *in != inputs || *out != outputs {
			return "its inputs or outputs were changed, or redacted, after their digests were made"
		}
	case in == nil && out == nil && row.RowHash == l.chain.hash(row, inputs, outputs): // some versions of the generator omit the two digests
	case in == nil && out == nil && row.RowHash == l.chain.hash(row, row.InputsJSON, row.OutputsJSON):
		if g.joined == 0 {
			g.joined = l.chain.Rows() + 1
		}
	default:
		return "changed: its row_hash is not the hash of its fields"
	}
	g.nine = true
	return ""
}

// contentDigest returns the digest of a text as the generator computes it: "" for no text.
func contentDigest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// covered returns what a signature over the chain hash of such a log covers.
func (l *logCheck) covered() []string {
	g := &l.generator
	switch {
	case l.sealed == l.chain.Rows() && l.sealed > 0:
		return []string{CoversRows, CoversInputs, CoversOutputs, CoversErrors}
	case g.nine && !g.seven && g.joined == 0:
		return []string{CoversRows, CoversInputs, CoversOutputs}
	}
	return []string{CoversRows}
}

// uncovered returns what neither the rows nor the manifest of such a log can show.
func (l *logCheck) uncovered() (skips []string) {
	g := &l.generator
	if g.gap != nil {
		skips = append(skips, "ids: the generator counts the rows of all its sessions together, so a gap shows nothing")
	}
	if g.joined > 0 {
		skips = append(skips, fmt.Sprintf("contents: the hash of row %d, and of others like it, does not show where inputs end and outputs begin", g.joined))
	}
	switch {
	case l.sealed == l.chain.Rows() && l.sealed > 0:
	case l.sealed > 0:
		skips = append(skips, fmt.Sprintf("contents: inputs, outputs and errors after row %d, the last seal, are covered by nothing", l.sealed))
	case g.nine && g.seven:
		skips = append(skips, "contents: no seal row, so errors, and inputs and outputs of the rows hashed over seven fields, are covered by nothing")
	case g.nine:
		skips = append(skips, "contents: no seal row, so errors are covered by nothing")
	default:
		skips = append(skips, "contents: no seal row, so inputs, outputs and errors are covered by nothing")
	}
	return skips
}
