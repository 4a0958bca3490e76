package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

type logCommands struct {
	Verify logVerifyCommand `cmd:"" help:"Verify that a transparency log only grew since the checkpoints that you kept."`
}

type logVerifyCommand struct {
	URL     string   `arg:"" help:"Address of the log's tiles (c2sp.org/tlog-tiles): http://HOST/v1/log of an exporter or up."`
	Key     []string `required:"" sep:"none" placeholder:"KEY|FILE" help:"Key of the log (name+hash+base64, or several such lines). If there are several, one of them must have signed."`
	Kept    []string `sep:"none" type:"path" placeholder:"FILE" help:"Checkpoint that you kept, or the proof next to a bundle (.tlog-proof), which contains one: the log must extend it. Repeatable."`
	Witness []string `sep:"none" placeholder:"KEY|FILE" help:"Key of a witness that must have cosigned the log. If there are several, each must have."`
	Save    string   `type:"path" placeholder:"FILE" help:"Write the log's checkpoint to this file if nothing is wrong, for --kept next time."`
	JSON    bool     `help:"Print one JSON object."`
}

// Help returns the examples.
func (*logVerifyCommand) Help() string {
	return examples(
		"plumbline log verify http://127.0.0.1:8080/v1/log --key log.pub --save kept",
		"plumbline log verify http://127.0.0.1:8080/v1/log --key log.pub --kept kept --save kept",
	)
}

// Run requests the log's head and tiles, and compares them with the kept checkpoints.
func (c *logVerifyCommand) Run(ctx context.Context, con *console) error {
	log := tlog.Remote{Client: new(http.Client), Prefix: c.URL}
	var err error
	if log.Keys, err = logKeys("--key", c.Key); err != nil {
		return err
	}
	var witnesses []*anchor.Witness
	for _, text := range c.Witness {
		witness, err := anchor.ParseWitness(contentOf(text))
		if err != nil {
			return usagef("--witness: %w", err)
		}
		witnesses = append(witnesses, witness)
	}
	kept, err := c.readKept(log.Keys)
	if err != nil {
		return err
	}
	v, signed, err := log.Verify(ctx, kept, witnesses)
	if err != nil {
		return logKeyHint(err)
	}
	if v.Verified && c.Save != "" {
		if err := durable.WriteFile(c.Save, signed, 0o644); err != nil {
			return fmt.Errorf("save the checkpoint: %w", err)
		}
	}
	return found(c.show(verdictWriter{con.out}, v), v.Verified)
}

// readKept reads checkpoints. The log must have signed them.
func (c *logVerifyCommand) readKept(keys []note.Verifier) (kept []tlog.Kept, err error) {
	for _, path := range c.Kept {
		text, err := durable.ReadPlain(path, anchor.MaxProof)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNothing, err)
		}
		if proof, err := anchor.ParseProof(text); err == nil {
			text = proof.Checkpoint
		}
		checkpoint, err := anchor.OpenCheckpointBy(text, keys)
		if err != nil {
			return nil, usagef("--kept %s: %w", path, logKeyHint(err))
		}
		kept = append(kept, tlog.Kept{File: path, Checkpoint: checkpoint})
	}
	return kept, nil
}

// logKeyHint adds to the error about a checkpoint which none of the given keys signed why that can be, and what to do.
func logKeyHint(err error) error {
	if _, unsigned := errors.AsType[*note.UnverifiedNoteError](err); unsigned {
		return fmt.Errorf("%w by a key of --key: after a rotation of the log's key give all lines of /v1/log/key, the earlier keys, too", err)
	}
	return err
}

const logNotProven = `
Not proven:
  That everybody sees the same log: compare checkpoints with others, or name witnesses (--witness).
  That every bundle is in the log, and that the content of bundles is true.
`

func (c *logVerifyCommand) show(w io.Writer, v *tlog.Verdict) error {
	if c.JSON {
		return writeJSON(w, v)
	}
	out := lineWriter{w: w}
	out.printf("log      %s\nsize     %d leaves\nroot     %s\n", printable(v.Origin), v.Size, v.Root)
	for _, fault := range v.Faults {
		out.printf("FAIL  %s\n", printable(fault))
	}
	for _, from := range v.GoesOn {
		out.printf("PASS  it extends %s, of %d leaves\n", printable(from.File), from.Size)
	}
	for _, seen := range v.Witnesses {
		out.printf("PASS  witness %s has cosigned %d leaves at %s\n", printable(seen.Name), seen.Size, seen.At.Format(time.RFC3339))
	}
	if len(c.Kept) == 0 {
		out.printf("SKIP  that it only grew: no earlier checkpoint is given (--kept); --save keeps this one\n")
	}
	out.printf("%s", logNotProven)
	return out.err
}
