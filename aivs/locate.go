package aivs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
)

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
	size := 0
	in := tar.NewReader(io.LimitReader(z, v.limits.Bytes))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
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
			if size > keptLog || len(rows) == 0 {
				return nil, nil
			}
			traced := rows[1:] // behind the open row
			if n := len(traced); n > 0 && isSeal(&traced[n-1]) {
				traced = traced[:n-1]
			}
			p := newPairing(traced)
			err := eachLine(in, v.limits.Line, func(line []byte, _ bool) { p.add(line) })
			return p.faults(), err
		}
		if err != nil {
			return nil, err
		}
	}
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

// difference names the first field of a row that is not what its trace, the line with
// the digest that the row states, says; "" where
// there is none, or where the trace says nothing of it. Redacted values and outputs
// that were cut off are not compared.
func difference(row *Row, line []byte) string {
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
