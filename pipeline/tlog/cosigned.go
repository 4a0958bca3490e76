package tlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// Reasons why Cosign refuses a checkpoint. Its errors wrap one of these or ErrNotKept, or are
// errors of the disk.
var (
	ErrNotCheckpoint = errors.New("this log did not sign the checkpoint")
	ErrNoWitness     = errors.New("no cosignature by a witness of this log")
)

// cosigned is the newest checkpoint that witnesses have cosigned. The zero value means that there
// is none.
type cosigned struct {
	head  anchor.Checkpoint
	note  []byte           // signed by the log and by the witnesses
	lines []note.Signature // the witnesses' signatures
}

// Cosign accepts a checkpoint of this log that witnesses have cosigned. It keeps and publishes
// the newest such checkpoint with the cosignatures of all witnesses on it. A checkpoint that is
// older than the kept one changes nothing.
func (l *Log) Cosign(signed []byte, witnesses []*anchor.Witness, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	head, err := anchor.OpenCheckpointBy(signed, l.view.keys)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotCheckpoint, err)
	}
	if err := l.view.GoesOnFrom(head); err != nil {
		return fmt.Errorf("%w: compared with a checkpoint that it signed: %w", ErrNotKept, err)
	}
	found, err := anchor.Cosignatures(signed, witnesses)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoWitness, err)
	case len(found) == 0:
		return ErrNoWitness
	case head.Size < l.cosigned.head.Size:
		return nil
	}
	next := cosigned{head: *head}
	if next.head == l.cosigned.head {
		next.lines = slices.Clone(l.cosigned.lines)
	}
	for _, c := range found {
		if c.At.After(now.Add(anchor.ClockSkew)) {
			return fmt.Errorf("%w: the cosignature of %q is dated %s, in the future", ErrNoWitness, c.Name, c.At.Format(time.RFC3339))
		}
		next.lines = slices.DeleteFunc(next.lines, func(s note.Signature) bool { return s.Name == c.Name && s.Hash == c.Hash })
		next.lines = append(next.lines, c.Signature)
	}
	text, err := next.head.Sign(l.keys.signer) // with the key in use
	if err != nil {
		return err
	}
	next.note = append(text, anchor.Lines(next.lines)...)
	if err := durable.WriteFile(filepath.Join(l.dir, cosignedName), next.note, 0o644); err != nil {
		return fmt.Errorf("transparency log: %w", err)
	}
	l.cosigned = next
	return nil
}

// loadCosigned reads the cosigned checkpoint. A log that is not a continuation of it is not the
// log that the witnesses have seen.
func (l *Log) loadCosigned() error {
	signed, err := os.ReadFile(filepath.Join(l.dir, cosignedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	head, err := anchor.OpenCheckpointBy(signed, l.view.keys)
	if err != nil {
		return fmt.Errorf("%w: the cosigned checkpoint: %w", ErrTampered, err)
	}
	if err := l.view.GoesOnFrom(head); err != nil {
		return fmt.Errorf("%w: compared with the cosigned checkpoint: %w", ErrNotKept, err)
	}
	opened, err := note.Open(signed, note.VerifierList(l.view.keys...))
	if err != nil {
		return fmt.Errorf("%w: the cosigned checkpoint: %w", ErrTampered, err)
	}
	l.cosigned = cosigned{head: *head, note: signed, lines: opened.UnverifiedSigs}
	return nil
}

// Cosigned returns the newest checkpoint that witnesses have cosigned, nil where there
// is none.
func (l *Log) Cosigned() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cosigned.note
}
