package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/pyjson"
	"github.com/plumbline/plumbline/aivs/redact"
)

// rowFile is a file of rows as they were recorded, before redaction, truncation and
// chaining.
type rowFile struct {
	open       func() (io.ReadCloser, error) // once for each pass over the rows
	name       string                        // in errors
	session    string                        // of all rows; empty until the first row is read
	limit      int                           // of outputs
	count      int64
	rules      redact.Rules // of redaction, in addition to the draft's
	redactions redact.Count
}

// recordedRow has the draft's members of a row (section 3). Its id and its hashes
// are ignored: they are computed again.
type recordedRow struct {
	ID          int64   `json:"id"`
	SessionID   string  `json:"session_id"`
	ActionType  string  `json:"action_type"`
	ToolName    string  `json:"tool_name"`
	InputsJSON  string  `json:"inputs_json"`
	OutputsJSON string  `json:"outputs_json"`
	CostCents   int64   `json:"cost_cents"`
	Error       string  `json:"error"`
	Timestamp   float64 `json:"timestamp"`
	PrevHash    string  `json:"prev_hash"`
	RowHash     string  `json:"row_hash"`
}

// survey reads the file once. It checks that every row can be read, and counts the rows.
func (f *rowFile) survey() error {
	count, redactions := int64(0), redact.Count{}
	for row, err := range f.rows {
		if err != nil {
			return err
		}
		count++
		redactions.Add(row.redactions)
	}
	f.count, f.redactions = count, redactions
	switch {
	case count == 0:
		return fmt.Errorf("%w: no rows in %s", errNothing, f.name)
	case f.session == "":
		return usagef("no row names its session: --session has to")
	}
	return nil
}

// all yields the rows of the bundle.
func (f *rowFile) all(yield func(*aivs.Row, error) bool) {
	for row, err := range f.rows {
		if !yield(&row.Row, err) {
			return
		}
	}
}

// redactedRow is a row with the number of values that were replaced in it.
type redactedRow struct {
	aivs.Row
	redactions redact.Count
}

// rows yields the decoded lines. It ends after the first error.
func (f *rowFile) rows(yield func(redactedRow, error) bool) {
	in, err := f.open()
	if err != nil {
		yield(redactedRow{}, err)
		return
	}
	defer func() { _ = in.Close() }()
	lines := newLineReader(in)
	for {
		text, err := lines.next()
		if err != nil && !errors.Is(err, io.EOF) {
			yield(redactedRow{}, fmt.Errorf("read %s: %w", f.name, err))
			return
		}
		if len(text) > 0 {
			row, fault := f.row(text)
			if fault != nil {
				fault = fmt.Errorf("%s, line %d: %w", f.name, lines.number, fault)
			}
			if !yield(row, fault) || fault != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (f *rowFile) row(text []byte) (r redactedRow, err error) {
	if len(text) >= maxLineBytes {
		return r, fmt.Errorf("longer than %d bytes", maxLineBytes)
	}
	recorded := recordedRow{ActionType: aivs.ActionToolCall, Timestamp: -1}
	if err := json.Unmarshal(text, &recorded, json.RejectUnknownMembers(true)); err != nil {
		return r, err
	}
	if recorded.Timestamp < 0 {
		return r, errors.New("timestamp: want Unix seconds")
	}
	if err := f.sameSession(recorded.SessionID); err != nil {
		return r, err
	}
	failure, inError := f.rules.Text(recorded.Error)
	tool, inTool := f.rules.Text(recorded.ToolName)
	r.Row = aivs.Row{ActionType: recorded.ActionType, ToolName: tool,
		CostCents: recorded.CostCents, Error: failure, Timestamp: recorded.Timestamp}
	inputs, inInputs, err := f.inputs(recorded.InputsJSON)
	if err != nil {
		return r, fmt.Errorf("inputs_json: %w", err)
	}
	outputs, inOutputs, err := f.outputs(recorded.OutputsJSON)
	if err != nil {
		return r, fmt.Errorf("outputs_json: %w", err)
	}
	r.InputsJSON, r.OutputsJSON = inputs, outputs
	for _, count := range []redact.Count{inError, inTool, inInputs, inOutputs} {
		r.redactions.Add(count)
	}
	return r, r.Check()
}

// sameSession returns an error unless all rows belong to one session.
func (f *rowFile) sameSession(id string) error {
	if f.session == "" {
		f.session = id
	}
	if id != "" && id != f.session {
		return fmt.Errorf("session_id %q: the bundle is of session %q", id, f.session)
	}
	return nil
}

func validJSON(text string) ([]byte, error) {
	raw := jsontext.Value(text)
	if !raw.IsValid() {
		return nil, errors.New("not JSON text")
	}
	return raw, nil
}

func (f *rowFile) inputs(text string) (string, redact.Count, error) {
	if text == "" {
		return "{}", redact.Count{}, nil
	}
	raw, err := validJSON(text)
	if err != nil {
		return "", redact.Count{}, err
	}
	hidden, n, err := f.rules.Inputs(raw)
	return string(pyjson.Line(hidden)), n, err
}

func (f *rowFile) outputs(text string) (string, redact.Count, error) {
	if text == "" {
		return "{}", redact.Count{}, nil
	}
	if redact.IsCut(text) {
		outputs, n := f.rules.CutOutputs(text, f.limit)
		return outputs, n, nil
	}
	raw, err := validJSON(text)
	if err != nil {
		return "", redact.Count{}, err
	}
	return f.rules.Outputs(raw, f.limit)
}
