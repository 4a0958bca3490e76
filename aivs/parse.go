package aivs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// rowText is a row as it is written: JSON values, nil where the row does not have the member.
type rowText struct {
	ID          jsontext.Value `json:"id"` // the members of draft section 3.2
	SessionID   jsontext.Value `json:"session_id"`
	ActionType  jsontext.Value `json:"action_type"`
	ToolName    jsontext.Value `json:"tool_name"`
	InputsJSON  jsontext.Value `json:"inputs_json"`
	OutputsJSON jsontext.Value `json:"outputs_json"`
	CostCents   jsontext.Value `json:"cost_cents"`
	Error       jsontext.Value `json:"error"`
	Timestamp   jsontext.Value `json:"timestamp"`
	PrevHash    jsontext.Value `json:"prev_hash"`
	RowHash     jsontext.Value `json:"row_hash"`

	InputsDigest  jsontext.Value `json:"inputs_digest"` // the members of the nine-field dialect
	OutputsDigest jsontext.Value `json:"outputs_digest"`
	SchemaVersion jsontext.Value `json:"schema_version"`
}

// ParseRow reads one line of audit_log.jsonl: a JSON object with every member of
// draft section 3.2 once, in its type (a timestamp must be written as a float,
// a cost as an integer of 0 or more). Members that the draft does not define are
// ignored.
func ParseRow(line []byte) (Row, error) {
	row, _, err := parseRow(line)
	return row, err
}

// parseRow is ParseRow. It also returns the row's text, which is incomplete after an error.
func parseRow(line []byte) (row Row, text rowText, err error) {
	if err := checkDepth(line); err != nil {
		return row, text, err
	}
	if jsontext.Value(line).Kind() != '{' {
		return row, text, notObject(line)
	}
	if err := json.Unmarshal(line, &text); err != nil { // duplicate members, and text after the object, too
		return row, text, &saying{saysNotJSON, err}
	}
	for _, m := range [...]struct {
		name  string
		value jsontext.Value
		into  any
	}{
		{"id", text.ID, &row.ID}, {"session_id", text.SessionID, &row.SessionID}, {"action_type", text.ActionType, &row.ActionType},
		{"tool_name", text.ToolName, &row.ToolName}, {"inputs_json", text.InputsJSON, &row.InputsJSON},
		{"outputs_json", text.OutputsJSON, &row.OutputsJSON}, {"cost_cents", text.CostCents, &row.CostCents}, {"error", text.Error, &row.Error},
		{"timestamp", text.Timestamp, &row.Timestamp}, {"prev_hash", text.PrevHash, &row.PrevHash}, {"row_hash", text.RowHash, &row.RowHash},
	} {
		if m.value == nil {
			return row, text, said(saysMember, m.name)
		}
		switch into := m.into.(type) {
		case *string:
			*into, err = stringOf(m.value)
		case *int64:
			*into, err = integerOf(m.value)
		case *float64:
			*into, err = floatOf(m.value)
		}
		if err != nil {
			return row, text, &saying{fmt.Sprintf(saysMember, m.name), err}
		}
	}
	return row, text, nil
}

func stringOf(value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", errors.New("not a string")
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err
}

// integerOf reads what Python parses as an int, within 0..2^53-1.
func integerOf(value jsontext.Value) (int64, error) {
	if value.Kind() != '0' {
		return 0, errors.New("not a number")
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > maxCost {
		return 0, fmt.Errorf("%.40s is not an integer within 0..%d", value, int64(maxCost))
	}
	return n, nil
}

// floatOf reads what Python parses as a float: a number with a point or an exponent.
func floatOf(value jsontext.Value) (float64, error) {
	switch f, err := strconv.ParseFloat(string(value), 64); {
	case value.Kind() != '0':
		return 0, errors.New("not a number")
	case !bytes.ContainsAny(value, ".eE"):
		return 0, fmt.Errorf("%.40s is an integer, not a float", value)
	case err != nil:
		return 0, fmt.Errorf("%.40s is beyond a 64-bit float", value)
	default:
		return f, nil
	}
}

// maxDepth limits how deep objects and arrays of a bundle may be nested. Every reader has a limit
// of its own. A bundle that some reader cannot parse must not be reported as intact by another.
const maxDepth = 500

// readJSON decodes an object of strict JSON text that is not nested deeper than maxDepth. It
// ignores members that into does not name. For a member of another type the error wraps errType.
func readJSON(text []byte, into any) error {
	if err := checkDepth(text); err != nil {
		return err
	}
	err := json.Unmarshal(text, into)
	switch {
	case jsontext.Value(text).Kind() != '{':
		return notObject(text)
	case err == nil:
		return nil
	case !jsontext.Value(text).IsValid():
		return &saying{saysNotJSON, err}
	}
	return fmt.Errorf("%w: %w", errType, inWords(err))
}

// errType is the error of JSON text with a member of another type than the one wanted.
var errType = errors.New("a member has another type")

// notObject returns the error of a text that is not a JSON object.
func notObject(text []byte) error {
	if err := json.Unmarshal(text, new(jsontext.Value)); err != nil {
		return &saying{saysNotJSON, err}
	}
	return said(saysNotObject)
}

// inWords returns an error about JSON text of the wrong form without the names of Go types.
func inWords(err error) error {
	at, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("unknown member at %q", at.JSONPointer)
	case at.JSONPointer == "":
		return fmt.Errorf("%s, want an object", schema.KindName(at.JSONKind))
	}
	return fmt.Errorf("%s at %q, want another type", schema.KindName(at.JSONKind), at.JSONPointer)
}

// checkDepth refuses JSON text that is nested deeper than maxDepth. It leaves text that is not
// JSON to the decoder.
func checkDepth(text []byte) error {
	if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) <= maxDepth {
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return said(saysTooDeep, maxDepth)
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return nil
}

// eachLine calls take with every line of r, without its line feed. ended is false for a last line
// without a line feed. Only a line feed ends a line. The slice is valid only during the call.
func eachLine(r io.Reader, limit int, take func(line []byte, ended bool)) error {
	buffered := bufio.NewReaderSize(r, 16<<10)
	var line []byte
	for {
		part, err := buffered.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return said(saysLongLine, limit)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if content, ended := bytes.CutSuffix(line, []byte("\n")); len(line) > 0 {
			take(content, ended)
		}
		line = line[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
