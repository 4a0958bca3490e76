package aivs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
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
	case "cost_cents":
		row.CostCents, err = p.integer()
	case "timestamp":
		row.Timestamp, err = p.float()
	default:
		text := row.text(name)
		if text == nil {
			return p.foreign(name)
		}
		*text, err = p.text()
	}
	if err != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	p.own++
	return nil
}

// foreign reads a member that the draft does not define.
func (p *rowParser) foreign(name string) error {
	isText := p.decoder.PeekKind() == '"'
	switch {
	case name == "schema_version":
		p.versioned = true
	case name == "inputs_digest" && isText:
		return p.digest(&p.inputsDigest)
	case name == "outputs_digest" && isText:
		return p.digest(&p.outputsDigest)
	}
	return p.decoder.SkipValue()
}

func (p *rowParser) digest(into **string) error {
	text, err := p.text()
	*into = &text
	return err
}

// text returns the string field of the named member, or nil.
func (r *Row) text(name string) *string {
	switch name {
	case "session_id":
		return &r.SessionID
	case "action_type":
		return &r.ActionType
	case "tool_name":
		return &r.ToolName
	case "inputs_json":
		return &r.InputsJSON
	case "outputs_json":
		return &r.OutputsJSON
	case "error":
		return &r.Error
	case "prev_hash":
		return &r.PrevHash
	case "row_hash":
		return &r.RowHash
	}
	return nil
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
