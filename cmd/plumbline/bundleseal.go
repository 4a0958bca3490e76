package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/aivs/pyjson"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/durable"
)

type bundleSealCommand struct {
	File        string    `arg:"" name:"file" help:"The rows: one JSON object per line with the draft's members (.jsonl, .gz); - is standard input."`
	Out         string    `type:"path" default:"." placeholder:"DIR" help:"Directory for the bundle."`
	Session     string    `placeholder:"ID" help:"Id of the session. Default: the one in the rows."`
	Agent       string    `placeholder:"ID" help:"Id of the agent."`
	Key         string    `type:"path" placeholder:"FILE" xor:"signed" required:"" help:"Key file to sign with."`
	Unsigned    bool      `xor:"signed" required:"" help:"Make an unsigned bundle. It proves the order of its rows, but not who made them."`
	Time        time.Time `placeholder:"TIME" help:"Time of the export (RFC 3339, seconds). Default: now. The same rows, time and key give the same bytes."`
	OutputLimit int       `default:"2000" help:"Maximum number of characters of a row's outputs; longer outputs are truncated. 0: no limit."`
	Redact      []string  `default:"all" placeholder:"RULE" help:"Redaction rules in addition to those of the draft; their redactions are counted separately: all, none, or some of authorization, header_list, name_value, url, assignment, yaml, xml, repr, unicode, base64."`
	JSON        bool      `help:"Print one JSON object."`
}

// Help returns the examples.
func (*bundleSealCommand) Help() string {
	return examples(
		"plumbline bundle seal rows.jsonl --agent did:web:buyer.example --key plumbline-data/keys/session.key",
		"plumbline bundle seal rows.jsonl.gz --unsigned --out bundles",
	)
}

// sealedFile describes the bundle that was written.
type sealedFile struct {
	Path      string `json:"path"`
	SHA256    string `json:"sha256"`
	ChainHash string `json:"chain_hash"`
	Rows      int64  `json:"rows"`
	Bytes     int64  `json:"bytes"`
	Redacted  int64  `json:"redactions"`
	Optional  int64  `json:"optional_redactions"`
	KeyID     string `json:"key_id,omitempty"`
}

// Run seals the rows. It reads the file three times, so its memory does not grow with the
// number of rows.
func (c *bundleSealCommand) Run(ctx context.Context, con *console) (err error) {
	if c.OutputLimit != 0 && c.OutputLimit < redact.LeastOutputLimit {
		return usagef("--output-limit %d: want 0 or at least %d", c.OutputLimit, redact.LeastOutputLimit)
	}
	rules, err := redact.ParseRules(c.Redact)
	if err != nil {
		return usagef("--redact: %w", err)
	}
	var key ed25519.PrivateKey // nil: the bundle is not signed
	if !c.Unsigned {
		if key, err = loadKey(c.Key, keyring.Session); err != nil {
			return err
		}
	}
	file, done, err := c.rereadable(con.in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	open := func() (io.ReadCloser, error) {
		plain, err := openPlain(ctx, file)
		if err != nil {
			return nil, err
		}
		return unpackFile(plain, c.File)
	}
	rows := &rowFile{open: open, name: nameOf(c.File), session: c.Session, limit: c.OutputLimit, rules: rules}
	if err := rows.survey(); err != nil {
		return err
	}
	in := &aivs.Input{
		SessionID: rows.session, AgentID: c.Agent, ExportedAt: cmp.Or(c.Time, time.Now()).Unix(), Part: 1, LastPart: true,
		TraceCount: rows.count, Redactions: int64(rows.redactions.Draft), OptionalRedactions: int64(rows.redactions.Optional), Rows: rows.all,
		Generator: "Plumbline", GeneratorURL: "https://github.com/plumbline/plumbline",
	}
	path := filepath.Join(c.Out, aivs.FileName(in.SessionID, in.ExportedAt))
	bundle, err := sealFile(path, in, key)
	if err != nil {
		return err
	}
	made := &sealedFile{Path: path, SHA256: bundle.SHA256, ChainHash: bundle.ChainHash, Rows: bundle.Rows, Bytes: bundle.Size, Redacted: in.Redactions, Optional: in.OptionalRedactions}
	if key != nil {
		made.KeyID = aivs.KeyID(key.Public().(ed25519.PublicKey))
	}
	if c.JSON {
		return writeJSON(con.out, made)
	}
	signed := "unsigned"
	if made.KeyID != "" {
		signed = "signed with key " + made.KeyID
	}
	_, err = fmt.Fprintf(con.out, "%s: %d rows, %s, sha256 %s\n", made.Path, made.Rows, signed, made.SHA256)
	return err
}

// rereadable returns the path of the rows. For standard input it is the path of a copy,
// which done removes.
func (c *bundleSealCommand) rereadable(stdin io.Reader) (path string, done func() error, err error) {
	if c.File != "-" {
		return c.File, func() error { return nil }, nil
	}
	copied, err := os.CreateTemp("", "plumbline-rows-*")
	if err != nil {
		return "", nil, fmt.Errorf("copy standard input: %w", err)
	}
	done = func() error { return os.Remove(copied.Name()) } // it has all that the rows have
	_, err = io.Copy(copied, stdin)
	if err = errors.Join(err, copied.Close()); err != nil {
		return "", nil, fmt.Errorf("copy standard input: %w", errors.Join(err, done()))
	}
	return copied.Name(), done, nil
}

// sealFile writes a bundle completely or not at all, and never over an existing file.
func sealFile(path string, in *aivs.Input, key ed25519.PrivateKey) (*aivs.Bundle, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%s exists already: choose another --time or --out", path), err)
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	staged, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	bundle, err := aivs.Write(staged, in, key)
	if err == nil {
		err = staged.Chmod(0o644)
	}
	if err == nil {
		err = staged.Sync()
	}
	if err = errors.Join(err, staged.Close()); err == nil {
		err = durable.Rename(staged.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("seal: %w", err), os.Remove(staged.Name()))
	}
	return bundle, nil
}

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
	for row, err := range f.rows {
		if err != nil {
			return err
		}
		f.count++
		f.redactions.Add(row.redactions)
	}
	switch {
	case f.count == 0:
		return fmt.Errorf("%w: no rows in %s", errNothing, f.name)
	case f.session == "":
		return usagef("no row names its session: give it with --session")
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
	for text, err := range lines.all {
		var row redactedRow
		if err != nil {
			err = fmt.Errorf("read %s: %w", f.name, err)
		} else if row, err = f.row(text); err != nil {
			err = fmt.Errorf("%s, line %d: %w", f.name, lines.number, err)
		}
		if !yield(row, err) || err != nil {
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
	if f.session == "" {
		f.session = recorded.SessionID
	}
	if recorded.SessionID != "" && recorded.SessionID != f.session {
		return r, fmt.Errorf("session_id %q differs from the bundle's session %q", recorded.SessionID, f.session)
	}
	failure, inError := f.rules.Text(recorded.Error)
	tool, inTool := f.rules.Text(recorded.ToolName)
	r.Row = aivs.Row{ActionType: recorded.ActionType, ToolName: tool, InputsJSON: "{}", OutputsJSON: "{}",
		CostCents: recorded.CostCents, Error: failure, Timestamp: recorded.Timestamp}
	var inInputs, inOutputs redact.Count
	if inputs := jsontext.Value(recorded.InputsJSON); len(inputs) > 0 {
		if !inputs.IsValid() {
			return r, errors.New("inputs_json: not JSON text")
		}
		hidden, count, err := f.rules.Inputs(inputs)
		if err != nil {
			return r, fmt.Errorf("inputs_json: %w", err)
		}
		r.InputsJSON, inInputs = string(pyjson.Line(hidden)), count
	}
	switch outputs := jsontext.Value(recorded.OutputsJSON); {
	case len(outputs) == 0:
	case redact.IsCut(recorded.OutputsJSON):
		r.OutputsJSON, inOutputs = f.rules.CutOutputs(recorded.OutputsJSON, f.limit)
	case !outputs.IsValid():
		return r, errors.New("outputs_json: not JSON text")
	default:
		if r.OutputsJSON, inOutputs, err = f.rules.Outputs(outputs, f.limit); err != nil {
			return r, fmt.Errorf("outputs_json: %w", err)
		}
	}
	for _, count := range []redact.Count{inError, inTool, inInputs, inOutputs} {
		r.redactions.Add(count)
	}
	return r, r.Check()
}
