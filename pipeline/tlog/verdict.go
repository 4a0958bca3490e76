package tlog

import (
	"context"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// Kept is a checkpoint of a log that its verifier kept.
type Kept struct {
	File       string
	Checkpoint *anchor.Checkpoint
}

// Verdict is the result of the verification of a log.
type Verdict struct {
	Origin    string        `json:"origin"`
	Size      int64         `json:"size"`
	Root      string        `json:"root"`
	Verified  bool          `json:"verified"` // no faults
	Faults    []string      `json:"faults"`
	GoesOn    []KeptSize    `json:"goes_on_from"` // the kept checkpoints that the log extends
	Witnesses []WitnessedAt `json:"witnesses"`
}

// KeptSize is the size of a log at a kept checkpoint.
type KeptSize struct {
	File string `json:"file"`
	Size int64  `json:"size"`
}

// WitnessedAt is a size that a witness has cosigned.
type WitnessedAt struct {
	Name string    `json:"name"`
	Size int64     `json:"size"`
	At   time.Time `json:"at"`
}

// Verify requests the log's head and tiles. The log must extend every kept checkpoint, and every
// witness must have cosigned it: either its head, or the newest checkpoint that the log publishes
// with cosignatures, which the head must extend. Verify also returns the signed head.
func (r *Remote) Verify(ctx context.Context, kept []Kept, witnesses []*anchor.Witness) (*Verdict, []byte, error) {
	head, signed, err := r.Checkpoint(ctx)
	if err != nil {
		return nil, nil, err
	}
	v := &Verdict{Origin: head.Origin, Size: head.Size, Root: head.Root.String(), Faults: []string{}, GoesOn: []KeptSize{}, Witnesses: []WitnessedAt{}}
	for _, k := range kept {
		if err := r.GoesOnFrom(ctx, k.Checkpoint, head); err != nil {
			v.Faults = append(v.Faults, fmt.Sprintf("%s: %v", k.File, err))
			continue
		}
		v.GoesOn = append(v.GoesOn, KeptSize{k.File, k.Checkpoint.Size})
	}
	if len(witnesses) > 0 {
		if err := r.witnessed(ctx, v, head, witnesses); err != nil {
			return nil, nil, err
		}
	}
	v.Verified = len(v.Faults) == 0
	return v, signed, nil
}

// witnessed adds to the verdict what the witnesses have cosigned.
func (r *Remote) witnessed(ctx context.Context, v *Verdict, head *anchor.Checkpoint, witnesses []*anchor.Witness) error {
	seen, signed, err := r.Cosigned(ctx)
	if err != nil {
		return err
	}
	if err := r.GoesOnFrom(ctx, seen, head); err != nil {
		v.Faults = append(v.Faults, fmt.Sprintf("the checkpoint that witnesses cosigned: %v", err))
		return nil
	}
	cosignatures, err := anchor.Cosignatures(signed, witnesses)
	if err != nil {
		v.Faults = append(v.Faults, err.Error())
		return nil
	}
	at := map[string]time.Time{}
	for _, c := range cosignatures {
		at[c.Name] = c.At
	}
	for _, w := range witnesses {
		if when, ok := at[w.Name()]; ok {
			v.Witnesses = append(v.Witnesses, WitnessedAt{w.Name(), seen.Size, when})
		} else {
			v.Faults = append(v.Faults, fmt.Sprintf("witness %q has not cosigned the log at %d leaves", w.Name(), seen.Size))
		}
	}
	return nil
}
