package tlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// Found is a bundle in a directory.
type Found struct {
	Path   string // below the directory
	SHA256 string // of the .tar.gz
}

// Reconciliation lists how a log and a directory of bundles differ. Where nothing was changed,
// only the counts are set.
type Reconciliation struct {
	Leaves   int64
	Proofs   int64   // number of proof files next to bundles
	Changed  error   // the log was changed, so nothing else was compared
	Missing  []Leaf  // in the log, without a file: removed, or moved elsewhere
	Unlogged []Found // files that are not in the log: older than the log, or being sealed now
	Unproven []Found // in the log, without a proof next to the file
	Bad      []Bad   // proofs that are not from the log, or not of the bundle

	newest *View // the view against which proofs are checked
	opened bool  // this reconciliation opened newest
}

// Leaf is a leaf of the log.
type Leaf struct {
	Index int64
	Bundle
}

// Bad is an invalid proof and the reason.
type Bad struct {
	Found
	Err error
}

// Reconcile checks the log (Check), compares it with the bundles of a directory, and checks the
// proof next to each bundle: the proof must be of this bundle, and the log must be a continuation
// of the proof's checkpoint. The log may grow meanwhile: a proof that is newer than the view is
// checked against the log as it is then.
func (v *View) Reconcile(dir string, bundles []Found) (found *Reconciliation, err error) {
	r := &Reconciliation{Leaves: v.Size(), newest: v}
	defer func() {
		if r.opened {
			err = errors.Join(err, r.newest.Close())
		}
	}()
	if err := v.Check(); errors.Is(err, ErrTampered) {
		r.Changed = err
		return r, nil
	} else if err != nil {
		return nil, err
	}
	sessions, err := r.leaves(v, bundles)
	if err != nil {
		return nil, err
	}
	for _, b := range bundles {
		session, logged := sessions[b.SHA256]
		if !logged {
			r.Unlogged = append(r.Unlogged, b)
		}
		if err := r.proof(dir, b, session, logged); err != nil {
			return nil, fmt.Errorf("compare the transparency log with %s: %w", dir, err)
		}
	}
	return r, nil
}

// leaves finds the leaves without a file. For each file that has a leaf it returns the session in
// the leaf.
func (r *Reconciliation) leaves(v *View, bundles []Found) (sessions map[string]string, err error) {
	there := make(map[string]bool, len(bundles))
	for _, b := range bundles {
		there[b.SHA256] = true
	}
	sessions = make(map[string]string, len(bundles))
	n := int64(0)
	for b, err := range v.Bundles() {
		if err != nil {
			return nil, err
		}
		if there[b.SHA256] {
			sessions[b.SHA256] = b.SessionID
		} else {
			r.Missing = append(r.Missing, Leaf{n, b})
		}
		n++
	}
	return sessions, nil
}

func (r *Reconciliation) proof(dir string, b Found, session string, logged bool) error {
	text, err := os.ReadFile(filepath.Join(dir, b.Path) + anchor.ProofSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		if logged {
			r.Unproven = append(r.Unproven, b)
		}
		return nil
	}
	if err != nil {
		return err
	}
	r.Proofs++
	if err := r.checkProof(text, b.SHA256, session, logged); err != nil {
		r.Bad = append(r.Bad, Bad{b, err})
	}
	return nil
}

// checkProof checks a proof. The proof of a bundle that is not in the log can show only an
// earlier state of the log.
func (r *Reconciliation) checkProof(text []byte, sha256, session string, logged bool) error {
	proof, err := anchor.ParseProof(text)
	if err != nil {
		return err
	}
	older, err := anchor.OpenCheckpointBy(proof.Checkpoint, r.newest.keys)
	if err != nil {
		return err
	}
	if err := r.reach(older.Size); err != nil {
		return err
	}
	if err := r.newest.GoesOnFrom(older); err != nil || !logged {
		return err
	}
	leaf, err := anchor.Leaf(session, sha256)
	if err != nil {
		return err
	}
	for _, key := range r.newest.keys {
		if _, err = proof.Verify(leaf, key); err == nil {
			return nil
		}
	}
	return err
}

// reach opens the log again where the view is smaller than a proof's checkpoint: the log may have
// grown.
func (r *Reconciliation) reach(size int64) error {
	if size <= r.newest.Size() {
		return nil
	}
	grown, err := OpenView(r.newest.dir, r.newest.keys...)
	if err != nil {
		return err
	}
	if grown.Size() < size { // it was rolled back: the first view serves as well
		return grown.Close()
	}
	if r.opened {
		err = r.newest.Close()
	}
	r.newest, r.opened = grown, true
	return err
}
