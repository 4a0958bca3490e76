package aivs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// logCheck reads audit_log.jsonl row by row and stops at its first fault.
type logCheck struct {
	take    func(*Row) // may be nil
	text    rowText    // of the row that is checked
	chain   *Chain
	fault   *Fault
	session string
	sealed  int64 // the number of the last content seal row

	unsealed bool // the contents differ from those that were sealed
	unlinked bool // a row is not linked to the row before: either that row was changed and hashed again, or this one was

	generator generatorLog

	opening  *Opening // of a bundle of our own dialect
	exported float64  // its export time
	newer    bool     // our dialect, in a later version
	blank    bool     // an empty line was seen; our dialect never has one
	again    []byte   // scratch buffer: the row as our builder writes it

	traced     bool     // the bundle carries its traces
	traces     []string // and the digest in each row
	traceLines int      // lines of traces.jsonl read so far
	badTrace   int      // the first line whose digest differs from its row's; 0: none
}

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

func newLogCheck(take func(*Row)) *logCheck { return &logCheck{chain: NewChain(), take: take} }

func (l *logCheck) fail(why error) {
	fault := faultOf(fmt.Sprintf("row %d", l.chain.Rows()+1), why)
	l.fault = &fault
}

// line reads one line of the log.
func (l *logCheck) line(line []byte, ended bool) {
	if l.fault != nil {
		return
	}
	if len(bytes.Trim(line, " \t\r")) == 0 {
		if l.blank = true; l.opening != nil {
			l.fail(said(saysEmptyLine))
		}
		return
	}
	row, text, err := parseRow(line)
	g := &l.generator
	g.nine = g.nine || text.InputsDigest.Kind() == '"' || text.SchemaVersion != nil
	l.text = text
	if err != nil {
		l.fail(err)
		return
	}
	problem := l.problem(&row)
	if problem == nil {
		problem = l.extend(&row, line, ended)
	}
	if problem != nil {
		l.fail(problem)
		if l.unsealed {
			l.fault.Where = "row 1"
			if l.chain.Rows() > 1 {
				l.fault.Where = fmt.Sprintf("rows 1-%d", l.chain.Rows())
			}
		}
		return
	}
	g.last = row.ID
	l.chain.append(&row)
	if l.take != nil {
		l.take(&row)
	}
}

// problem checks the rules of every dialect (draft sections 2 and 7.1).
func (l *logCheck) problem(row *Row) error {
	if l.chain.Rows() == 0 {
		l.session = row.SessionID
	}
	problem, g, number := l.linkProblem(row), &l.generator, l.chain.Rows()+1
	if row.ID == number && row.ID > g.last {
		return problem
	}
	gap := said(saysOutOfOrder, row.ID)
	if problem != nil || l.opening != nil || isOpening(row) || row.ID <= g.last {
		l.unlinked, l.unsealed = false, false
		return gap
	}
	if g.gap == nil { // the generator's numbering has gaps, so this may be none
		fault := faultOf(fmt.Sprintf("row %d", number), gap)
		g.gap = &fault
	}
	return nil
}

// linkProblem checks a row and its link to the row before. It does not check the row's id.
func (l *logCheck) linkProblem(row *Row) error {
	switch {
	case row.SessionID != l.session:
		return said(saysOtherOne)
	case strings.Contains(row.SessionID+row.ActionType+row.ToolName, ":"):
		return said(saysColon)
	case row.PrevHash != l.chain.prev:
		l.unlinked = true
		return said(saysUnlinked, l.chain.Rows())
	case row.RowHash == l.chain.hash(row):
		l.generator.seven = true
	case l.opening != nil, isOpening(row):
		return said(saysRehashed)
	default:
		if problem := l.hashProblem(row); problem != nil {
			return problem
		}
	}
	if !isSeal(row) {
		return nil
	}
	if row.ToolName != sealTool+l.chain.Content() {
		l.unsealed = true
		return said(saysUnsealed, l.chain.Rows()+1)
	}
	return nil
}

// isOpening reports whether a row opens a bundle of our own dialect.
func isOpening(row *Row) bool {
	return row.ActionType == ActionOpen && strings.HasPrefix(row.ToolName, openFamily)
}

func isSeal(row *Row) bool {
	return row.ActionType == ActionSeal && strings.HasPrefix(row.ToolName, sealTool)
}

// extend checks the additional rules of our own dialect.
func (l *logCheck) extend(row *Row, line []byte, ended bool) error {
	if row.ID == 1 && isOpening(row) {
		if problem := l.open(row); problem != nil {
			return problem
		}
	}
	if l.opening == nil {
		return l.sealForeign(row)
	}
	l.again = row.AppendJSON(l.again[:0])
	switch {
	case l.sealed != 0:
		return said(saysAfterSeal)
	case !ended || !bytes.Equal(line, l.again):
		return said(saysNotOurs)
	case row.ID > 1 && isOpening(row): // no builder writes it, and a reader would take it for no action
		return said(saysLateOpen)
	case isSeal(row):
		if row.InputsJSON != "{}" || row.OutputsJSON != "{}" || row.Error != "" || row.CostCents != 0 || row.Timestamp != l.exported {
			return said(saysSealContent)
		}
		l.sealed = row.ID
	case row.ID > 1 && l.traced:
		var inputs struct {
			Trace string `json:"trace_sha256"`
		}
		err := readJSON([]byte(row.InputsJSON), &inputs)
		if err != nil && !errors.Is(err, errType) { // a digest of another type is that of no trace
			return &saying{saysInputs, err}
		}
		l.traces = append(l.traces, digestOnly(inputs.Trace))
	}
	return nil
}

// sealForeign demands of the seal of another generator that it has no contents: a seal covers those of
// the rows before it.
func (l *logCheck) sealForeign(row *Row) error {
	if !isSeal(row) {
		return nil
	}
	nothing := func(text string) bool { return text == "" || text == "{}" }
	if !nothing(row.InputsJSON) || !nothing(row.OutputsJSON) || row.Error != "" {
		return said(saysSealEmpty)
	}
	l.sealed = l.chain.Rows() + 1
	return nil
}

// digestOnly returns a row's trace_sha256. What is no digest is that of no trace, and may be too long to
// keep: then it returns "".
func digestOnly(stated string) string {
	if !hexDigest.MatchString(stated) {
		return ""
	}
	return stated
}

// open reads the open row. Its text must be exactly what our builder writes.
func (l *logCheck) open(row *Row) error {
	if row.ToolName != openTool {
		l.newer = true
		return said(saysNewer, quoted(row.ToolName))
	}
	opening, err := parseOpening(row.InputsJSON)
	if err != nil {
		return &saying{saysNotOpening, fmt.Errorf("its inputs_json: %w", err)}
	}
	want, err := opening.row()
	want.ID, want.PrevHash, want.RowHash = row.ID, row.PrevHash, row.RowHash
	if err != nil || l.blank || want != *row {
		return &saying{saysNotOpening, err}
	}
	l.opening, l.exported = opening, row.Timestamp
	l.traced = slices.ContainsFunc(opening.Members, func(m Listed) bool { return m.Name == TracesMember })
	return nil
}

// traceLine compares a line of traces.jsonl, which follows the log in the archive, with the
// digest in its row. A line without a line feed matches no row.
func (l *logCheck) traceLine(line []byte, ended bool) {
	l.traceLines++
	if l.badTrace > 0 || l.traceLines > len(l.traces) {
		return
	}
	if !ended || hexSHA256(line) != l.traces[l.traceLines-1] {
		l.badTrace = l.traceLines
	}
}

// dialect returns the dialect of the log.
func (l *logCheck) dialect() string {
	switch {
	case l.opening != nil:
		return DialectPlumbline
	case l.newer:
		return DialectNewer
	case l.generator.nine:
		return DialectConduit9
	case l.generator.gap != nil:
		return DialectMonotonic
	case l.sealed != 0:
		return DialectSealed
	}
	return DialectDraft
}

// hashProblem checks a row hash that differs from the draft's against the hashes over nine
// fields.
func (l *logCheck) hashProblem(row *Row) error {
	g, in, out := &l.generator, textOf(l.text.InputsDigest), textOf(l.text.OutputsDigest)
	hasIn, hasOut := l.text.InputsDigest.Kind() == '"', l.text.OutputsDigest.Kind() == '"'
	inputs, outputs := contentDigest(row.InputsJSON), contentDigest(row.OutputsJSON)
	switch {
	case hasIn && hasOut && row.RowHash == l.chain.hash(row, in, out):
		if in != inputs || out != outputs {
			return said(saysRedigested)
		}
	case !hasIn && !hasOut && row.RowHash == l.chain.hash(row, inputs, outputs): // some versions of the generator omit the two digests
	case !hasIn && !hasOut && row.RowHash == l.chain.hash(row, row.InputsJSON, row.OutputsJSON):
		if g.joined == 0 {
			g.joined = l.chain.Rows() + 1
		}
	default:
		return said(saysRehashed)
	}
	g.nine = true
	return nil
}

// contentDigest returns the digest of a text as the generator computes it: "" for no text.
func contentDigest(text string) string {
	if text == "" {
		return ""
	}
	return hexSHA256([]byte(text))
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
		skips = append(skips, saysNoNumbers)
	}
	if g.joined > 0 {
		skips = append(skips, fmt.Sprintf(saysNoBorder, g.joined))
	}
	switch {
	case l.sealed == l.chain.Rows() && l.sealed > 0:
	case l.sealed > 0:
		skips = append(skips, fmt.Sprintf(saysNoneAfter, l.sealed))
	case g.nine && g.seven:
		skips = append(skips, saysNoneMixed)
	case g.nine:
		skips = append(skips, saysNoErrors)
	default:
		skips = append(skips, saysNoContents)
	}
	return skips
}
