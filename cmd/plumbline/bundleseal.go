package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/keyfile"
	"github.com/plumbline/plumbline/pipeline/keystore"
)

type bundleSealCommand struct {
	File        string    `arg:"" name:"file" help:"The rows: one JSON object a line with the draft's members (.jsonl, .gz); - is standard input."`
	Out         string    `type:"path" default:"." placeholder:"DIR" help:"Where the bundle goes."`
	Session     string    `placeholder:"ID" help:"Id of the session; that in the rows by default."`
	Agent       string    `placeholder:"ID" help:"Id of the agent."`
	Key         string    `type:"path" placeholder:"FILE" xor:"signed" required:"" help:"Key file to sign with."`
	Unsigned    bool      `xor:"signed" required:"" help:"Make an unsigned bundle: it proves the order of its rows and nobody's word."`
	Time        time.Time `placeholder:"TIME" help:"When it is exported (RFC 3339, seconds); now by default. The same rows, time and key give the same bytes."`
	OutputLimit int       `default:"2000" help:"Most characters of the outputs in a row; longer ones are truncated. 0 for no limit."`
	Redact      []string  `default:"all" placeholder:"RULE" help:"Rules by which secrets are hidden beyond those of the draft, counted apart: all, none, or some of authorization, header_list, name_value, url, assignment, yaml, xml, repr, unicode, base64."`
	JSON        bool      `help:"Print one JSON object."`
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
func (c *bundleSealCommand) Run(ctx context.Context, con *console) error {
	if c.OutputLimit != 0 && c.OutputLimit < redact.LeastOutputLimit {
		return usagef("--output-limit %d: want 0 or at least %d", c.OutputLimit, redact.LeastOutputLimit)
	}
	rules, err := redact.ParseRules(c.Redact)
	if err != nil {
		return usagef("--redact: %w", err)
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	file, done, err := c.rereadable(con.in)
	if err != nil {
		return err
	}
	defer done()
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
		SessionID: rows.session, AgentID: c.Agent, ExportedAt: c.exportedAt().Unix(), Part: 1, LastPart: true,
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
	return c.show(con.out, made)
}

// key returns the signing key; nil for an unsigned bundle.
func (c *bundleSealCommand) key() (ed25519.PrivateKey, error) {
	if c.Unsigned {
		return nil, nil
	}
	key, err := keyfile.Load(c.Key)
	if err == nil {
		err = keystore.Slot{Path: c.Key, Purpose: keyring.Session}.Permit(key)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return key, nil
}

func (c *bundleSealCommand) exportedAt() time.Time {
	if c.Time.IsZero() {
		return time.Now()
	}
	return c.Time
}

// rereadable returns the path of the rows. For standard input it is the path of a copy,
// which done removes.
func (c *bundleSealCommand) rereadable(stdin io.Reader) (path string, done func(), err error) {
	if c.File != "-" {
		return c.File, func() {}, nil
	}
	copied, err := os.CreateTemp("", "plumbline-rows-*")
	if err != nil {
		return "", nil, fmt.Errorf("keep standard input: %w", err)
	}
	done = func() { _ = os.Remove(copied.Name()) }
	_, err = io.Copy(copied, stdin)
	if err = errors.Join(err, copied.Close()); err != nil {
		done()
		return "", nil, fmt.Errorf("keep standard input: %w", err)
	}
	return copied.Name(), done, nil
}

func (c *bundleSealCommand) show(w io.Writer, made *sealedFile) error {
	if c.JSON {
		return writeJSON(w, made)
	}
	signed := "unsigned"
	if made.KeyID != "" {
		signed = "signed with key " + made.KeyID
	}
	_, err := fmt.Fprintf(w, "%s: %d rows, %s, sha256 %s\n", made.Path, made.Rows, signed, made.SHA256)
	return err
}

// sealFile writes a bundle completely or not at all, and never over an existing file.
func sealFile(path string, in *aivs.Input, key ed25519.PrivateKey) (*aivs.Bundle, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%s exists already: another second, or another directory, is needed", path), err)
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	staged, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	bundle, err := fillBundle(staged, in, key)
	if err == nil {
		err = durable.Rename(staged.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("seal: %w", err), os.Remove(staged.Name()))
	}
	return bundle, nil
}

// fillBundle writes, syncs and closes the staged file.
func fillBundle(staged *os.File, in *aivs.Input, key ed25519.PrivateKey) (*aivs.Bundle, error) {
	bundle, err := aivs.Write(staged, in, key)
	if err == nil {
		err = staged.Chmod(0o644)
	}
	if err == nil {
		err = staged.Sync()
	}
	return bundle, errors.Join(err, staged.Close())
}
