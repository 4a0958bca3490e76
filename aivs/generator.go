package aivs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// generatorLog is what sets the logs of the draft's own generator apart from the
// draft. It numbers the rows of all its sessions in one sequence, so that a session
// may begin at any id and have gaps; and later its row hash covers nine fields, the
// draft's seven and then inputs and outputs: their digests or, before those, their
// text.
type generatorLog struct {
	last   int64  // id of the row before
	gap    *Fault // the first row whose id is not its number
	seven  bool   // some rows are hashed as the draft says
	nine   bool   // some rows carry, or are hashed over, the members of nine fields
	joined int64  // the first row hashed over inputs and outputs as text; 0: none
}

// outOfStep says what an id means in a log of the draft that is not its row's
// number, or not above the id before.
func (g *generatorLog) outOfStep(id, number int64) string {
	if id == number && id > g.last {
		return ""
	}
	return fmt.Sprintf("missing or out of order (found number %d)", id)
}

// passes passes over an id that is above the one before, and remembers the first.
func (g *generatorLog) passes(id, number int64, problem string) bool {
	if id <= g.last {
		return false
	}
	if g.gap == nil {
		g.gap = &Fault{Where: fmt.Sprintf("row %d", number), Message: problem}
	}
	return true
}

// hashProblem checks a row hash that is not the draft's against those over nine
// fields.
func (l *logCheck) hashProblem(row *Row) string {
	g, in, out := &l.generator, l.parser.inputsDigest, l.parser.outputsDigest
	inputs, outputs := contentDigest(row.InputsJSON), contentDigest(row.OutputsJSON)
	switch {
	case in != nil && out != nil && row.RowHash == l.chain.hash(row, *in, *out):
		if *in != inputs || *out != outputs {
			return "its inputs or outputs were changed, or redacted, after their digests were made"
		}
	case in == nil && out == nil && row.RowHash == l.chain.hash(row, inputs, outputs): // the generator left them off for a time
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

// contentDigest is the digest of a text as the generator takes it: of no text, none.
func contentDigest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// covered returns what a signature over the chain hash covers of such a log.
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

// uncovered says what neither rows nor manifest of such a log give a means to check.
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
