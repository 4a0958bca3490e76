package aivs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"

	"github.com/plumbline/plumbline/aivs/redact"
)

// locate reads a bundle of our own dialect again when its log was changed after it was sealed or
// signed, and names the rows that differ from their traces. The seal and the signature show only
// that some row was changed, and only the traces that the open row lists show which. It names no row
// of a log that is too long to keep in memory.
func (v *verification) locate(r io.ReadSeeker, start int64) ([]Fault, error) {
	sealed := v.log.opening != nil && slices.ContainsFunc(v.log.opening.Members, func(m Listed) bool {
		return m.Name == TracesMember && v.files[m.Name] == fileDigest{m.Bytes, m.SHA256}
	})
	if !sealed {
		return nil, nil
	}
	var rows []Row
	var size int64
	unread := false
	err := v.linesOf(r, start, logFile, func(line []byte, _ bool) {
		if size += int64(len(line)); unread || size > keptLog {
			unread = true
			return
		}
		row, err := ParseRow(line)
		unread = err != nil
		rows = append(rows, row)
	})
	if err != nil || unread {
		return nil, err
	}
	p := newPairing(rows[min(1, len(rows)):]) // after the open row
	err = v.linesOf(r, start, TracesMember, func(line []byte, _ bool) { p.add(line) })
	return p.faults(), err
}

// linesOf calls take with each line of the named file, at any position in the archive.
func (v *verification) linesOf(r io.ReadSeeker, start int64, name string, take func(line []byte, ended bool)) error {
	if _, err := r.Seek(start, io.SeekStart); err != nil {
		return err
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	in := tar.NewReader(io.LimitReader(z, v.limits.bytes))
	for {
		h, err := in.Next()
		if err != nil {
			return err
		}
		if below, _ := safeName(h); below == name {
			return eachLine(in, v.limits.line, take)
		}
	}
}

// maxLocated is how many changed rows are named; one more fault reports that there are others.
const maxLocated = 100

// pairing finds the row of each line of traces.jsonl by the digest that the row states. It
// compares digests because a row that was removed or added moves all rows after it without
// changing them.
type pairing struct {
	rows    []Row          // after the open row
	digests []string       // the digests that the rows state
	first   map[string]int // the first row that states a digest
	place   []int          // the line of a row's trace, from 1; 0: not found
	what    []string       // the field in which a row differs from its trace
	stated  []bool         // by line: whether a row states its digest
}

func newPairing(rows []Row) *pairing {
	p := &pairing{rows: rows, digests: make([]string, len(rows)), first: map[string]int{},
		place: make([]int, len(rows)), what: make([]string, len(rows)), stated: []bool{true}}
	for i := range rows {
		var in struct {
			Digest jsontext.Value `json:"trace_sha256"`
		}
		if json.Unmarshal([]byte(rows[i].InputsJSON), &in) == nil {
			p.digests[i] = digestOnly(textOf(in.Digest))
		}
		if _, known := p.first[p.digests[i]]; !known {
			p.first[p.digests[i]] = i
		}
	}
	return p
}

// add reads the next line. It ignores lines after so many without a row that not all can be
// named.
func (p *pairing) add(trace []byte) {
	line := len(p.stated)
	if line > len(p.rows)+maxLocated {
		return
	}
	i, found := p.first[hexSHA256(trace)]
	found = found && p.place[i] == 0
	if found {
		p.place[i], p.what[i] = line, Difference(&p.rows[i], trace)
	}
	p.stated = append(p.stated, found)
}

// faults returns the rows that differ from their traces, in order, then the lines whose rows were
// removed.
func (p *pairing) faults() (faults []Fault) {
	next := 1 // the line after that of the previous row
	for i := range p.rows {
		what := ""
		switch line := p.place[i]; {
		case line >= next:
			next = line + 1
			what = p.changed(p.what[i], line)
		case line > 0:
			what = fmt.Sprintf(saysRowMoved, line)
		case p.digests[i] == "" && isSeal(&p.rows[i]): // a seal row has no trace
		case next < len(p.stated) && !p.stated[next]:
			p.stated[next] = true
			what = p.changed("inputs_json", next)
			next++
		default:
			what = saysRowAdded
			if first := p.first[p.digests[i]]; p.place[first] > 0 {
				what = fmt.Sprintf(saysRowRepeated, number(first))
			}
		}
		switch {
		case what == "":
		case len(faults) == maxLocated:
			return append(faults, Fault{Where: fmt.Sprintf("rows %d-%d", number(i), number(len(p.rows)-1)), Message: saysMoreRows})
		default:
			faults = append(faults, Fault{Where: fmt.Sprintf("row %d", number(i)), Message: what})
		}
	}
	for line, stated := range p.stated {
		if !stated && len(faults) < maxLocated {
			faults = append(faults, Fault{Where: TracesMember, Message: fmt.Sprintf(saysRowRemoved, line)})
		}
	}
	return faults
}

// number returns the number of a row in the log, where the open row is the first. It does not use
// the row's own id, which may have been changed.
func number(row int) int { return row + 2 }

func (p *pairing) changed(what string, line int) string {
	if what == "" {
		return ""
	}
	return fmt.Sprintf(saysRowChanged, what, line)
}

// tracedAction holds the fields of a trace that its row repeats.
type tracedAction struct {
	TraceID   jsontext.Value `json:"trace_id"`
	CardID    jsontext.Value `json:"card_id"`
	Timestamp jsontext.Value `json:"timestamp"`
	Action    struct {
		Type       jsontext.Value `json:"type"`
		Name       jsontext.Value `json:"name"`
		Parameters jsontext.Value `json:"parameters"`
	} `json:"action"`
	Context struct {
		Metadata struct {
			Execution jsontext.Value `json:"execution"`
		} `json:"metadata"`
	} `json:"context"`
}

type tracedExecution struct {
	ToolName jsontext.Value `json:"tool_name"`
	Inputs   jsontext.Value `json:"inputs"`
	Outputs  jsontext.Value `json:"outputs"`
	Error    jsontext.Value `json:"error"`
	Cost     jsontext.Value `json:"cost_cents"`
}

// Difference returns the name of the first field in which a row of an intact bundle differs from its
// trace, the line of traces.jsonl whose digest the row states, such as "inputs_json". It returns ""
// where they agree. A verifier does not check this: whoever seals a bundle can make both say anything.
// Difference does not compare redacted values and truncated outputs.
func Difference(row *Row, line []byte) string {
	var in struct {
		TraceID jsontext.Value `json:"trace_id"`
		CardID  jsontext.Value `json:"card_id"`
		Inputs  jsontext.Value `json:"inputs"`
	}
	if json.Unmarshal([]byte(row.InputsJSON), &in) != nil {
		return "inputs_json"
	}
	var t tracedAction
	if json.Unmarshal(line, &t) != nil {
		return ""
	}
	if differs(in.TraceID, t.TraceID) || differs(in.CardID, t.CardID) {
		return "inputs_json"
	}
	if t.Action.Type.Kind() != '"' {
		return ""
	}
	action, tool, inputs := "aap."+textOf(t.Action.Type), "aap."+textOf(t.Action.Name), t.Action.Parameters
	var x tracedExecution
	executed := t.Context.Metadata.Execution.Kind() == '{'
	if executed {
		if json.Unmarshal(t.Context.Metadata.Execution, &x) != nil {
			return ""
		}
		action, inputs = ActionToolCall, x.Inputs
		if name := textOf(x.ToolName); strings.Contains(name, ".") {
			tool = name
		} else if name != "" {
			tool = "tool." + name
		}
	}
	if !executed && inputs.Kind() == 'n' {
		inputs = nil
	}
	switch {
	case differs(in.Inputs, or(inputs, "{}")):
		return "inputs_json"
	case executed && !redact.IsTruncated(row.OutputsJSON) && differs(jsontext.Value(row.OutputsJSON), or(x.Outputs, "{}")):
		return "outputs_json"
	case executed && textDiffers(row.Error, textOf(x.Error)):
		return "error"
	case textDiffers(row.ActionType, Encode(action)):
		return "action_type"
	case textDiffers(row.ToolName, Encode(tool)):
		return "tool_name"
	}
	cost, err := strconv.ParseInt(string(or(x.Cost, "0")), 10, 64)
	if executed && err == nil && cost != row.CostCents {
		return "cost_cents"
	}
	at, err := time.Parse(time.RFC3339Nano, textOf(t.Timestamp))
	if err == nil && math.Abs(float64(at.UnixMicro())/1e6-row.Timestamp) > 1e-3 {
		return "timestamp"
	}
	return ""
}

// textOf returns the text of a JSON string, and "" for any other value.
func textOf(value jsontext.Value) (text string) {
	if value.Kind() == '"' && json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// or returns value, or absent where value is missing.
func or(value jsontext.Value, absent string) jsontext.Value {
	if value == nil {
		return jsontext.Value(absent)
	}
	return value
}

func textDiffers(a, b string) bool {
	return a != b && !strings.Contains(a+b, redact.Mark)
}

// differs reports whether two JSON values differ in more than white space and escapes.
func differs(a, b jsontext.Value) bool {
	if bytes.Contains(slices.Concat(a, b), []byte(redact.Mark)) {
		return false
	}
	x, y := a.Clone(), b.Clone()
	for _, v := range []*jsontext.Value{&x, &y} {
		if len(*v) > 0 && v.Format(jsontext.PreserveRawStrings(false)) != nil {
			return true
		}
	}
	return !bytes.Equal(x, y)
}
