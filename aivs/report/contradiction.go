package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs"
)

// difference returns the field of a row that says something else than the record. A record without an
// execution has neither outputs nor an error nor a cost.
func difference(row *aivs.Row, line []byte) string {
	if field := aivs.Difference(row, line); field != "" {
		return field
	}
	var in struct {
		Context struct {
			Metadata struct {
				Execution jsontext.Value `json:"execution"`
			} `json:"metadata"`
		} `json:"context"`
	}
	if json.Unmarshal(line, &in) != nil || in.Context.Metadata.Execution.Kind() == '{' {
		return ""
	}
	switch {
	case value([]byte(row.OutputsJSON)) != "":
		return "outputs_json"
	case row.Error != "":
		return "error"
	case row.CostCents != 0:
		return "cost_cents"
	}
	return ""
}

// contradicted names the rows that say something else than their records.
func contradicted(decided []decision) []string {
	const most = 20
	var rows []string
	n := int64(0)
	for i := range decided {
		if d := &decided[i]; d.differs != "" {
			if n++; n <= most {
				rows = append(rows, fmt.Sprintf("row %d (%s)", d.row.ID, d.differs))
			}
		}
	}
	if n == 0 {
		return nil
	}
	text := strings.Join(rows, ", ")
	if n > most {
		text += fmt.Sprintf(" and %d more", n-most)
	}
	return []string{fmt.Sprintf("CONTRADICTION: %s not what the agent's records say: %s. The signature shows only that rows and records were sealed like this.", are(n), text)}
}

func are(n int64) string {
	if n == 1 {
		return "1 row of the log is"
	}
	return counted(n, "row") + " of the log are"
}

// contradictions says where the verdict on the session does not agree with what it is about.
func (p *Page) contradictions(decided []decision) (all []string) {
	v := p.Report.Verdict
	if v.Traces != p.total() {
		all = append(all, fmt.Sprintf("CONTRADICTION: the verdict on the session is about %s, and the log has %s.", counted(v.Traces, "decision"), counted(p.total(), "decision")))
	}
	violations := int64(0)
	for i := range decided {
		if d := &decided[i]; d.verdict != nil {
			violations += int64(len(d.verdict.Violations))
		}
	}
	if violations != v.Violations && !p.Contents.cut() {
		all = append(all, fmt.Sprintf("CONTRADICTION: the verdict on the session counts %s, and the verdicts on its decisions have %s.", counted(v.Violations, "violation"), counted(violations, "violation")))
	}
	return all
}

// leftOut names the numbers between the least and the greatest that are not among these; "" if all are.
func leftOut(numbers []uint64) string {
	const most = 10
	var gaps []string
	n := int64(0)
	numbers = slices.Sorted(slices.Values(numbers))
	for i := 1; i < len(numbers); i++ {
		if numbers[i]-numbers[i-1] < 2 { // the same number, or the next one
			continue
		}
		from, to := numbers[i-1]+1, numbers[i]-1
		switch n++; {
		case n > most:
		case from == to:
			gaps = append(gaps, fmt.Sprintf("number %d", from))
		default:
			gaps = append(gaps, fmt.Sprintf("a number from %d to %d", from, to))
		}
	}
	text := strings.Join(gaps, ", ")
	if n > most {
		text += ", and " + counted(n-most, "more gap")
	}
	return text
}
