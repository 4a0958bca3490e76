package aivs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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
			p.digests[i] = textOf(in.Digest)
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
	sum := sha256.Sum256(trace)
	i, found := p.first[hex.EncodeToString(sum[:])]
	found = found && p.place[i] == 0
	if found {
		p.place[i], p.what[i] = line, difference(&p.rows[i], trace)
	}
	p.stated = append(p.stated, found)
}

// faults returns the rows that differ from their traces, in order, then the lines whose rows were
// removed.
func (p *pairing) faults() (faults []Fault) {
	next := 1 // the line after that of the previous row
	for i := range p.rows {
		said := ""
		switch line := p.place[i]; {
		case line >= next:
			next = line + 1
			said = p.changed(p.what[i], line)
		case line > 0:
			said = fmt.Sprintf("moved: its trace is line %d of %s, before those of rows before it", line, TracesMember)
		case p.digests[i] == "" && isSeal(&p.rows[i]): // a seal row has no trace
		case next < len(p.stated) && !p.stated[next]:
			p.stated[next] = true
			said = p.changed("inputs_json", next)
			next++
		default:
			said = "added: no line of " + TracesMember + " is its trace"
			if first := p.first[p.digests[i]]; p.place[first] > 0 {
				said = fmt.Sprintf("added: it has the trace of row %d", number(first))
			}
		}
		switch {
		case said == "":
		case len(faults) == maxLocated:
			return append(faults, Fault{fmt.Sprintf("rows %d-%d", number(i), number(len(p.rows)-1)), "more of them differ from their traces"})
		default:
			faults = append(faults, Fault{fmt.Sprintf("row %d", number(i)), said})
		}
	}
	for line, stated := range p.stated {
		if !stated && len(faults) < maxLocated {
			faults = append(faults, Fault{TracesMember, fmt.Sprintf("the row of line %d was removed", line)})
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
	return fmt.Sprintf("changed: its %s is not that of its trace, line %d of %s", what, line, TracesMember)
}
