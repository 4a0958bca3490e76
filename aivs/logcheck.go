package aivs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// logCheck reads audit_log.jsonl row by row and stops at its first fault.
type logCheck struct {
	take    func(*Row) // may be nil
	parser  rowParser
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
	traces     []string // and the trace_sha256 of each row
	traceLines int      // lines of traces.jsonl read so far
	badTrace   int      // the first line whose digest differs from its row's; 0: none
}

func newLogCheck(take func(*Row)) *logCheck { return &logCheck{chain: NewChain(), take: take} }

func (l *logCheck) fail(format string, args ...any) {
	l.fault = &Fault{Where: fmt.Sprintf("row %d", l.chain.Rows()+1), Message: fmt.Sprintf(format, args...)}
}

// line reads one line of the log.
func (l *logCheck) line(line []byte, ended bool) {
	if l.fault != nil {
		return
	}
	if len(bytes.Trim(line, " \t\r")) == 0 {
		if l.blank = true; l.opening != nil {
			l.fail("an empty line stands before it")
		}
		return
	}
	row, err := l.parser.parse(line)
	g := &l.generator
	g.nine = g.nine || l.parser.inputsDigest != nil || l.parser.versioned
	if err != nil {
		l.fail("%v", err)
		return
	}
	if problem := l.problem(&row); problem != "" {
		if l.fail("%s", problem); problem == unsealed {
			l.unsealed = true
			if l.chain.Rows() > 1 {
				l.fault.Where = fmt.Sprintf("rows 1-%d", l.chain.Rows())
			} else {
				l.fault.Where = "row 1"
			}
			l.fault.Message = fmt.Sprintf("an input, output or error was changed after row %d sealed them", l.chain.Rows()+1)
		}
		l.unlinked = strings.HasPrefix(problem, unlinked)
		return
	}
	if problem := l.extend(&row, line, ended); problem != "" {
		l.fail("%s", problem)
		return
	}
	g.last = row.ID
	l.chain.append(&row)
	if l.take != nil {
		l.take(&row)
	}
}

// problem checks the rules of every dialect (draft sections 2 and 7.1).
func (l *logCheck) problem(row *Row) string {
	if l.chain.Rows() == 0 {
		l.session = row.SessionID
	}
	number := l.chain.Rows() + 1
	problem, gap := l.linkProblem(row), l.generator.outOfStep(row.ID, number)
	switch {
	case gap == "":
		return problem
	case problem != "", l.opening != nil, isOpening(row), !l.generator.passes(row.ID, number, gap):
		return gap
	}
	return ""
}

// linkProblem checks a row and its link to the row before. It does not check the row's id.
func (l *logCheck) linkProblem(row *Row) string {
	switch {
	case row.SessionID != l.session:
		return "its session_id is not that of row 1"
	case strings.Contains(row.SessionID+row.ActionType+row.ToolName, ":"):
		return "a ':' in session_id, action_type or tool_name makes its hash ambiguous"
	case row.PrevHash != l.chain.prev:
		return fmt.Sprintf(unlinked+" %d: its prev_hash is not the hash of that row", l.chain.Rows())
	case row.RowHash == l.chain.hash(row):
		l.generator.seven = true
	case l.opening != nil, isOpening(row):
		return "changed: its row_hash is not the hash of its fields"
	default:
		if problem := l.hashProblem(row); problem != "" {
			return problem
		}
	}
	if isSeal(row) {
		return l.seal(row)
	}
	return ""
}

// isOpening reports whether a row opens a bundle of our own dialect.
func isOpening(row *Row) bool {
	return row.ActionType == ActionOpen && strings.HasPrefix(row.ToolName, openFamily)
}

func (l *logCheck) seal(row *Row) string {
	if row.ToolName != sealTool+l.chain.Content() {
		return unsealed
	}
	if l.opening == nil {
		l.sealed = l.chain.Rows() + 1
	}
	return ""
}

func isSeal(row *Row) bool {
	return row.ActionType == ActionSeal && strings.HasPrefix(row.ToolName, sealTool)
}

// unsealed is the fault of a seal row whose contents differ.
const unsealed = "an input, output or error was changed after it sealed them"

// unlinked is the beginning of the fault of a row that is not linked to the row before.
const unlinked = "does not follow row"

// extend checks the additional rules of our own dialect.
func (l *logCheck) extend(row *Row, line []byte, ended bool) string {
	if row.ID == 1 && isOpening(row) {
		if problem := l.open(row); problem != "" {
			return problem
		}
	}
	if l.opening == nil {
		return ""
	}
	l.again = row.AppendJSON(l.again[:0])
	switch {
	case l.sealed != 0:
		return "comes after the seal, which must be the last row"
	case !ended || !bytes.Equal(line, l.again):
		return notOurs
	case isSeal(row):
		if row.InputsJSON != "{}" || row.OutputsJSON != "{}" || row.Error != "" || row.CostCents != 0 || row.Timestamp != l.exported {
			return "a seal row has no contents, and the time of row 1"
		}
		l.sealed = row.ID
	case row.ID > 1 && l.traced:
		return l.trace(row)
	}
	return ""
}

// open reads the open row. Its text must be exactly what our builder writes.
func (l *logCheck) open(row *Row) string {
	if row.ToolName != openTool {
		l.newer = true
		return fmt.Sprintf("%s was made by a newer version than this verifier knows", row.ToolName)
	}
	opening, err := parseOpening(row.InputsJSON)
	if err != nil {
		return fmt.Sprintf("its inputs_json: %v", err)
	}
	want, err := opening.row()
	want.ID, want.PrevHash, want.RowHash = row.ID, row.PrevHash, row.RowHash
	if err != nil || l.blank || want != *row {
		return notOurs + ", or of another session"
	}
	l.opening, l.exported = opening, row.Timestamp
	l.traced = slices.ContainsFunc(opening.Members, func(m Listed) bool { return m.Name == TracesMember })
	return ""
}

// trace records the digest of the trace that a row states.
func (l *logCheck) trace(row *Row) string {
	var inputs struct {
		Trace string `json:"trace_sha256"`
	}
	if err := readJSON([]byte(row.InputsJSON), &inputs); err != nil {
		return fmt.Sprintf("its inputs_json: %v", err)
	}
	l.traces = append(l.traces, inputs.Trace)
	return ""
}

// traceLine compares a line of traces.jsonl, which follows the log in the archive, with the
// digest in its row. A line without a line feed matches no row.
func (l *logCheck) traceLine(line []byte, ended bool) {
	l.traceLines++
	if l.badTrace > 0 || l.traceLines > len(l.traces) {
		return
	}
	if sum := sha256.Sum256(line); !ended || hex.EncodeToString(sum[:]) != l.traces[l.traceLines-1] {
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
