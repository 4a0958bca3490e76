package aivs

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
)

// maxLocated is how many changed rows are named; of more it is said that there are.
const maxLocated = 100

// locate reads a bundle of ours a second time, whose log was changed after it was
// sealed or signed, and names the rows that differ from their traces. The seal and the
// signature show only that some row was changed. It names none of a log that is too
// long to keep.
func (v *verification) locate(r io.Reader) ([]Fault, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	var rows []Row
	var faults []Fault
	size, number := 0, 0
	in := tar.NewReader(io.LimitReader(z, v.limits.Bytes))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return faults, nil
		}
		if err != nil {
			return nil, err
		}
		switch h.Name {
		case root + logFile:
			err = eachLine(in, v.limits.Line, func(line []byte, _ bool) {
				if size += len(line); size > keptLog {
					return
				}
				if row, err := ParseRow(line); err == nil {
					rows = append(rows, row)
				}
			})
		case root + TracesMember:
			err = eachLine(in, v.limits.Line, func(line []byte, _ bool) {
				if number++; size > keptLog || number >= len(rows)-1 || len(faults) > maxLocated {
					return
				}
				faults = appendDifference(faults, &rows[number], line, number, int64(len(rows)-1))
			})
		}
		if err != nil {
			return nil, err
		}
	}
}

func appendDifference(faults []Fault, row *Row, line []byte, number int, last int64) []Fault {
	what := difference(row, line)
	switch {
	case what == "":
		return faults
	case len(faults) == maxLocated:
		return append(faults, Fault{fmt.Sprintf("rows %d-%d", row.ID, last), "more of them differ from their traces"})
	}
	return append(faults, Fault{fmt.Sprintf("row %d", row.ID),
		fmt.Sprintf("changed: its %s is not that of its trace, line %d of %s", what, number, TracesMember)})
}

// tracedAction is what a row repeats of its trace.
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

// difference names the first field of a row that is not what its trace says; "" where
// there is none, or where the trace says nothing of it. Redacted values and outputs
// that were cut off are not compared.
func difference(row *Row, line []byte) string {
	var in struct {
		TraceID jsontext.Value `json:"trace_id"`
		CardID  jsontext.Value `json:"card_id"`
		Digest  jsontext.Value `json:"trace_sha256"`
		Inputs  jsontext.Value `json:"inputs"`
	}
	sum := sha256.Sum256(line)
	if json.Unmarshal([]byte(row.InputsJSON), &in) != nil || textOf(in.Digest) != hex.EncodeToString(sum[:]) {
		return "inputs_json"
	}
	var t tracedAction
	if json.Unmarshal(line, &t) != nil {
		return ""
	}
	if differs(in.TraceID, t.TraceID) || differs(in.CardID, t.CardID) {
		return "inputs_json"
	}
	if textOf(t.Action.Type) == "" {
		return ""
	}
	action, tool, inputs := "aap."+textOf(t.Action.Type), "aap."+textOf(t.Action.Name), t.Action.Parameters
	var x tracedExecution
	executed := t.Context.Metadata.Execution.Kind() == '{' && json.Unmarshal(t.Context.Metadata.Execution, &x) == nil
	if executed {
		action, inputs = ActionToolCall, x.Inputs
		if name := textOf(x.ToolName); strings.Contains(name, ".") {
			tool = name
		} else if name != "" {
			tool = "tool." + name
		}
	}
	if inputs == nil || !executed && inputs.Kind() == 'n' {
		inputs = jsontext.Value("{}")
	}
	switch {
	case differs(in.Inputs, inputs):
		return "inputs_json"
	case executed && !isTruncated(row.OutputsJSON) && differs(jsontext.Value(row.OutputsJSON), orEmpty(x.Outputs)):
		return "outputs_json"
	case executed && textDiffers(row.Error, textOf(x.Error)):
		return "error"
	case textDiffers(row.ActionType, Encode(action)):
		return "action_type"
	case textDiffers(row.ToolName, Encode(tool)):
		return "tool_name"
	case executed && costDiffers(row.CostCents, x.Cost):
		return "cost_cents"
	}
	at, err := time.Parse(time.RFC3339Nano, textOf(t.Timestamp))
	if err == nil && math.Abs(float64(at.UnixMicro())/1e6-row.Timestamp) > 1e-3 {
		return "timestamp"
	}
	return ""
}

// textOf is the text that a JSON value is; "" for anything else.
func textOf(value jsontext.Value) (text string) {
	if value.Kind() == '"' && json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

func costDiffers(cents int64, traced jsontext.Value) bool {
	n, err := strconv.ParseInt(string(traced), 10, 64)
	return err == nil && n != cents || traced == nil && cents != 0
}

func orEmpty(value jsontext.Value) jsontext.Value {
	if value == nil {
		return jsontext.Value("{}")
	}
	return value
}

func isTruncated(outputs string) bool {
	return strings.HasPrefix(outputs, onlyTruncated[:len(onlyTruncated)-1])
}

func textDiffers(a, b string) bool {
	return a != b && !strings.Contains(a+b, redacted[1:len(redacted)-1])
}

// differs reports whether two JSON values are written differently, white space and
// escapes apart.
func differs(a, b jsontext.Value) bool {
	if bytes.Contains(a, []byte(redacted)) || bytes.Contains(b, []byte(redacted)) {
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
