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
	Verify logVerifyCommand `cmd:"" help:"Verify that a transparency log only grew since the checkpoints that you kept of it."`
}

type logVerifyCommand struct {
	URL     string   `arg:"" help:"Where the log is served as tiles (c2sp.org/tlog-tiles): http://HOST/v1/log of an exporter or up."`
	Key     []string `required:"" sep:"none" placeholder:"KEY|FILE" help:"Key of the log (name+hash+base64, or several lines of it); one of them where there are several."`
	Kept    []string `sep:"none" type:"path" placeholder:"FILE" help:"Checkpoint that you kept, or the proof beside a bundle (.tlog-proof), which holds one: the log must go on from it. Repeatable."`
	Witness []string `sep:"none" placeholder:"KEY|FILE" help:"Key of a witness who must have cosigned the log; each of them where there are several."`
	Save    string   `type:"path" placeholder:"FILE" help:"Write the log's checkpoint there where all is good: --kept of the next time."`
	JSON    bool     `help:"Print one JSON object."`
}

// logVerdict is the result for a log.
type logVerdict struct {
	Origin    string        `json:"origin"`
	Size      int64         `json:"size"`
	Root      string        `json:"root"`
	Verified  bool          `json:"verified"` // no faults
	Faults    []string      `json:"faults"`
	GoesOn    []keptFrom    `json:"goes_on_from"`
	Witnesses []witnessedAt `json:"witnesses"`
}

// keptFrom is a checkpoint that the log extends.
type keptFrom struct {
	File string `json:"file"`
	Size int64  `json:"size"`
}

// witnessedAt is a size that a witness has cosigned.
type witnessedAt struct {
	Name string    `json:"name"`
	Size int64     `json:"size"`
	At   time.Time `json:"at"`
}

// Run requests the log's head and tiles, and compares them with the kept checkpoints.
func (c *logVerifyCommand) Run(ctx context.Context, con *console) error {
	log := tlog.Remote{Client: new(http.Client), Prefix: c.URL}
	var err error
	if log.Keys, err = logKeys("--key", c.Key); err != nil {
		return err
	}
	witnesses, err := readWitnesses(c.Witness)
	if err != nil {
		return err
	}
	kept, err := c.readKept(log.Keys)
	if err != nil {
		return err
	}
	head, signed, err := log.Checkpoint(ctx)
	if err != nil {
		return err
	}
	v := &logVerdict{Origin: head.Origin, Size: head.Size, Root: head.Root.String(), Faults: []string{}, GoesOn: []keptFrom{}, Witnesses: []witnessedAt{}}
	for i, older := range kept {
		if err := log.GoesOnFrom(ctx, older, head); err != nil {
			v.Faults = append(v.Faults, fmt.Sprintf("%s: %v", c.Kept[i], err))
			continue
		}
		v.GoesOn = append(v.GoesOn, keptFrom{c.Kept[i], older.Size})
	}
	if len(witnesses) > 0 {
		if err := v.witnessed(ctx, &log, head, witnesses); err != nil {
			return err
		}
	}
	v.Verified = len(v.Faults) == 0
	if v.Verified && c.Save != "" {
		if err := durable.WriteFile(c.Save, signed, 0o644); err != nil {
			return fmt.Errorf("save the checkpoint: %w", err)
		}
	}
	return told(c.show(con.out, v), v.Verified)
}

// readKept reads checkpoints. The log must have signed them.
func (c *logVerifyCommand) readKept(keys []note.Verifier) (kept []*anchor.Checkpoint, err error) {
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
			return nil, usagef("--kept %s: %w", path, err)
		}
		kept = append(kept, checkpoint)
	}
	return kept, nil
}

// witnessed requires that every witness has cosigned the log: either its head, or the newest
// checkpoint that the log publishes with cosignatures. The head must extend that checkpoint.
func (v *logVerdict) witnessed(ctx context.Context, log *tlog.Remote, head *anchor.Checkpoint, witnesses []*anchor.Witness) error {
	seen, signed, err := log.Cosigned(ctx)
	if err != nil {
		return err
	}
	if err := log.GoesOnFrom(ctx, seen, head); err != nil {
		v.Faults = append(v.Faults, fmt.Sprintf("what witnesses have cosigned: %v", err))
		return nil
	}
	found, err := anchor.Cosignatures(signed, witnesses)
	if err != nil {
		v.Faults = append(v.Faults, err.Error())
		return nil
	}
	at := map[string]time.Time{}
	for _, cosignature := range found {
		at[cosignature.Name] = cosignature.At
	}
	for _, w := range witnesses {
		if when, ok := at[w.Name()]; ok {
			v.Witnesses = append(v.Witnesses, witnessedAt{w.Name(), seen.Size, when})
		} else {
			v.Faults = append(v.Faults, fmt.Sprintf("witness %q has not cosigned the log at %d leaves", w.Name(), seen.Size))
		}
	}
	return nil
}

const logNotProven = `
Not proven:
  That everybody is shown this log: compare checkpoints with others, or name witnesses (--witness).
  That every bundle is in the log, and that what bundles say is true.
`

func (c *logVerifyCommand) show(w io.Writer, v *logVerdict) error {
	if c.JSON {
		return writeJSON(w, v)
	}
	_, err := fmt.Fprintf(w, "log      %s\nsize     %d leaves\nroot     %s\n", printable(v.Origin), v.Size, v.Root)
	for _, fault := range v.Faults {
		_, more := fmt.Fprintf(w, "FAIL  %s\n", printable(fault))
		err = errors.Join(err, more)
	}
	for _, from := range v.GoesOn {
		_, more := fmt.Fprintf(w, "PASS  it goes on from %s, of %d leaves\n", printable(from.File), from.Size)
		err = errors.Join(err, more)
	}
	for _, seen := range v.Witnesses {
		_, more := fmt.Fprintf(w, "PASS  witness %s has cosigned %d leaves at %s\n", printable(seen.Name), seen.Size, seen.At.Format(time.RFC3339))
		err = errors.Join(err, more)
	}
	if len(c.Kept) == 0 {
		_, more := io.WriteString(w, "SKIP  that it only grew: no checkpoint of before is given (--kept); --save keeps this one\n")
		err = errors.Join(err, more)
	}
	_, more := io.WriteString(w, logNotProven)
	return errors.Join(err, more)
}

// readWitnesses reads the values of --witness.
func readWitnesses(given []string) (all []*anchor.Witness, err error) {
	for _, text := range given {
		if content, err := durable.ReadPlain(text, maxSmallFile); err == nil {
			text = string(content)
		}
		witness, err := anchor.ParseWitness(text)
		if err != nil {
			return nil, usagef("--witness: %w", err)
		}
		all = append(all, witness)
	}
	return all, nil
}
