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

// rowMembers are the members of a row (draft section 3.2).
var rowMembers = [...]string{"id", "session_id", "action_type", "tool_name", "inputs_json", "outputs_json",
	"cost_cents", "error", "timestamp", "prev_hash", "row_hash"}

// rowParser parses rows strictly. It is reused for its buffers.
type rowParser struct {
	source  bytes.Reader
	decoder *jsontext.Decoder

	// The digests of the nine-field dialect; nil where absent or null.
	inputsDigest, outputsDigest *string
	versioned                   bool // the row has a schema_version

	own int // number of members of the draft read so far
}

// ParseRow reads one line of audit_log.jsonl: a JSON object with every member of
// draft section 3.2 once, in its type (a timestamp must be written as a float,
// a cost as an integer of 0 or more). Members that the draft does not define are
// ignored.
func ParseRow(line []byte) (Row, error) {
	return new(rowParser).parse(line)
}

func (p *rowParser) parse(line []byte) (Row, error) {
	p.source.Reset(line)
	if p.decoder == nil {
		p.decoder = jsontext.NewDecoder(&p.source)
	} else {
		p.decoder.Reset(&p.source)
	}
	p.inputsDigest, p.outputsDigest, p.versioned, p.own = nil, nil, false, 0
	var row Row
	if err := checkDepth(line); err != nil {
		return row, err
	}
	if kind := p.decoder.PeekKind(); kind != '{' {
		return row, errors.New("not a JSON object")
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return row, err
	}
	for p.decoder.PeekKind() != '}' {
		if err := p.member(&row); err != nil {
			return row, err
		}
	}
	return row, p.end(line)
}

// end reads the closing brace. It refuses text after it and missing members.
func (p *rowParser) end(line []byte) error {
	if _, err := p.decoder.ReadToken(); err != nil {
		return err
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value on the line")
	}
	if p.own == len(rowMembers) { // the decoder has refused duplicates
		return nil
	}
	for _, name := range rowMembers {
		if !bytes.Contains(line, []byte(`"`+name+`"`)) {
			return fmt.Errorf("member %s is missing", name)
		}
	}
	return errors.New("a member is missing")
}

// member reads one member. It stores the value in row if the draft defines the member.
func (p *rowParser) member(row *Row) error {
	token, err := p.decoder.ReadToken()
	if err != nil {
		return err
	}
	name := token.String()
	switch name {
	case "id":
		row.ID, err = p.integer()
	case "session_id":
		row.SessionID, err = p.text()
	case "action_type":
		row.ActionType, err = p.text()
	case "tool_name":
		row.ToolName, err = p.text()
	case "inputs_json":
		row.InputsJSON, err = p.text()
	case "outputs_json":
		row.OutputsJSON, err = p.text()
	case "cost_cents":
		row.CostCents, err = p.integer()
	case "error":
		row.Error, err = p.text()
	case "timestamp":
		row.Timestamp, err = p.float()
	case "prev_hash":
		row.PrevHash, err = p.text()
	case "row_hash":
		row.RowHash, err = p.text()
	default:
		return p.foreign(name)
	}
	if err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	p.own++
	return nil
}

// foreign reads a member that the draft does not define.
func (p *rowParser) foreign(name string) error {
	digest := &p.inputsDigest
	switch name {
	case "schema_version":
		p.versioned = true
		return p.decoder.SkipValue()
	case "inputs_digest":
	case "outputs_digest":
		digest = &p.outputsDigest
	default:
		return p.decoder.SkipValue()
	}
	if p.decoder.PeekKind() != '"' {
		return p.decoder.SkipValue()
	}
	text, err := p.text()
	*digest = &text
	return err
}

func (p *rowParser) text() (string, error) {
	if p.decoder.PeekKind() != '"' {
		return "", errors.New("not a string")
	}
	token, err := p.decoder.ReadToken()
	if err != nil {
		return "", err
	}
	return token.String(), nil
}

func (p *rowParser) number() ([]byte, error) {
	if p.decoder.PeekKind() != '0' {
		return nil, errors.New("not a number")
	}
	return p.decoder.ReadValue()
}

// integer reads what Python parses as an int, within 0..2^53-1.
func (p *rowParser) integer() (int64, error) {
	text, err := p.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 || n > maxCost {
		return 0, fmt.Errorf("%.40s is not an integer within 0..%d", text, int64(maxCost))
	}
	return n, nil
}

// float reads what Python parses as a float: a number with a point or an exponent.
func (p *rowParser) float() (float64, error) {
	text, err := p.number()
	if err != nil {
		return 0, err
	}
	if !bytes.ContainsAny(text, ".eE") {
		return 0, fmt.Errorf("%.40s is an integer, not a float", text)
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s is beyond a 64-bit float", text)
	}
	return f, nil
}

// maxDepth limits how deep objects and arrays of a bundle may be nested. Every reader has a limit
// of its own. A bundle that some reader cannot parse must not be reported as intact by another.
const maxDepth = 500

// readJSON decodes strict JSON text that is not nested deeper than maxDepth. It ignores members
// that into does not name.
func readJSON(text []byte, into any) error {
	if err := checkDepth(text); err != nil {
		return err
	}
	return inWords(json.Unmarshal(text, into))
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
				return fmt.Errorf("nested deeper than %d levels", maxDepth)
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
			return fmt.Errorf("a line is longer than %d bytes", limit)
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
