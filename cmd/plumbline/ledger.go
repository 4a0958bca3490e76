package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/plumbline/plumbline/ledger"
)

type ledgerCommands struct {
	Verify ledgerVerifyCommand `cmd:"" help:"Verify ledger files, each as the continuation of the previous one."`
	Show   ledgerShowCommand   `cmd:"" help:"Verify and show the entries of a ledger file, one after the other."`
}

type ledgerVerifyCommand struct {
	Files []string `arg:"" name:"file" help:"Ledger files, in the order of their chain."`
	JSON  bool     `help:"Print one JSON object for each file."`
}

// Help returns the examples.
func (*ledgerVerifyCommand) Help() string {
	return examples("plumbline ledger verify plumbline-data/ledger/ledger-*.jsonl")
}

// ledgerVerdict is the result for a file.
type ledgerVerdict struct {
	File          string `json:"file"`
	Verified      bool   `json:"verified"`
	Entries       uint64 `json:"entries"`
	LastHash      string `json:"last_hash"`
	ContinuesFrom string `json:"continues_from,omitempty"`
	Predecessor   string `json:"predecessor,omitempty"` // "none", "verified" or "not_given": whether the previous file is known
	FirstBadSeq   *int64 `json:"first_bad_seq,omitempty"`
	Fault         string `json:"fault,omitempty"`
}

// Run verifies the files in order and stops at the first bad one: the files after
// it cannot be verified.
func (c *ledgerVerifyCommand) Run(ctx context.Context, con *console) error {
	var before *ledger.Summary
	for _, path := range c.Files {
		summary, err := validateLedger(ctx, path, before)
		var fault *ledger.Fault
		if err != nil && !errors.As(err, &fault) {
			return err
		}
		if err := c.show(verdictWriter{con.out}, path, summary, before, fault); err != nil {
			return err
		}
		if fault != nil {
			return errFoundBad
		}
		before = &summary
	}
	if c.JSON {
		return nil
	}
	_, err := io.WriteString(con.out, ledgerNotProven)
	return err
}

const ledgerNotProven = `
Not proven:
  That the whole file is genuine: anyone who can write all of it can write another one. Compare the last hash with one that you got by another way.
  That nothing is missing at the end: a file that was cut short verifies up to its end.
  That the content of the entries is true.
`

func validateLedger(ctx context.Context, path string, before *ledger.Summary) (ledger.Summary, error) {
	file, err := openPlain(ctx, path)
	if err != nil {
		return ledger.Summary{}, err
	}
	defer func() { _ = file.Close() }()
	return ledger.Validate(file, before)
}

func (c *ledgerVerifyCommand) show(w io.Writer, path string, s ledger.Summary, before *ledger.Summary, fault *ledger.Fault) error {
	verdict := ledgerVerdict{File: path, Verified: fault == nil, Entries: s.Entries, LastHash: s.Last.String()}
	if s.ContinuesFrom != nil {
		verdict.ContinuesFrom = s.ContinuesFrom.String()
	}
	switch {
	case fault != nil:
		seq := int64(fault.Seq) // no file has 2^63 entries
		verdict.FirstBadSeq, verdict.Fault = &seq, fault.Error()
	case s.ContinuesFrom == nil:
		verdict.Predecessor = "none"
	case before == nil:
		verdict.Predecessor = "not_given"
	default:
		verdict.Predecessor = "verified"
	}
	if c.JSON {
		return writeJSON(w, verdict)
	}
	if fault != nil {
		_, err := fmt.Fprintf(w, "FAIL  %s  %s\n", printable(path), printable(fault.Error()))
		return err
	}
	_, err := fmt.Fprintf(w, "PASS  %s  %d entries, last hash %s\n", printable(path), s.Entries, s.Last)
	if err == nil && verdict.Predecessor == "not_given" {
		_, err = fmt.Fprintf(w, "SKIP  %s  it continues from %s; this was not checked because the previous file was not given\n", printable(path), s.ContinuesFrom)
	}
	return err
}

type ledgerShowCommand struct {
	File string `arg:"" help:"A ledger file."`
	JSON bool   `help:"Print the entries as they are in the file."`
}

// Help returns the examples.
func (*ledgerShowCommand) Help() string {
	return examples("plumbline ledger show plumbline-data/ledger/ledger-000001.jsonl")
}

// Run shows the entries up to the first bad one.
func (c *ledgerShowCommand) Run(ctx context.Context, con *console) error {
	file, err := openPlain(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var validator ledger.Validator
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, ledger.MaxLineBytes)
	for lines.Scan() {
		entry, err := validator.Add(lines.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		if c.JSON {
			_, err = con.out.Write(entry.AppendLine(nil))
		} else {
			_, err = fmt.Fprintf(con.out, "%6d  %-7s  %s  %s\n", entry.Seq, entry.Type, entry.Hash.String()[:16], printable(string(entry.Data)))
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", c.File, err)
	}
	if chain := validator.Chain(); chain.Len() == 0 {
		return fmt.Errorf("%w: %s has no entries", errNothing, c.File)
	}
	return nil
}
