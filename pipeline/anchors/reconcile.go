package anchors

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// Reconciliation is how a log and a directory of bundles differ. A log and its
// bundles that were left alone have nothing in Faults and Missing.
type Reconciliation struct {
	Leaves   int64    `json:"leaves"`
	Bundles  int64    `json:"bundles"`  // files
	Faults   []string `json:"faults"`   // the log was changed, or a proof is not of it
	Missing  []Bundle `json:"missing"`  // in the log, and no file: removed, or brought elsewhere
	Unlogged []string `json:"unlogged"` // files that are not in the log: of before there was one, or being sealed now
}

// Reconcile checks the log (Check), every bundle below a directory against it, and
// that the log goes on from the checkpoint of every proof beside one.
func (v *View) Reconcile(bundles string) (*Reconciliation, error) {
	r := &Reconciliation{Leaves: v.Size(), Faults: []string{}, Missing: []Bundle{}, Unlogged: []string{}}
	if err := v.Check(); errors.Is(err, ErrTampered) {
		r.Faults = append(r.Faults, err.Error())
		return r, nil // its leaves tell nothing more
	} else if err != nil {
		return nil, err
	}
	found := map[string]string{} // SHA-256 -> file
	err := filepath.WalkDir(bundles, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.HasSuffix(path, ".tar.gz") {
			return err
		}
		r.Bundles++
		digest, err := digestOf(path)
		if err != nil {
			return err
		}
		found[digest] = path
		return r.proof(v, path)
	})
	if err != nil {
		return nil, fmt.Errorf("compare the transparency log with %s: %w", bundles, err)
	}
	return r, r.leaves(v, found)
}

// proof checks the checkpoint of the proof beside a bundle; whether it proves the
// bundle follows from the file's being in the log or not.
func (r *Reconciliation) proof(v *View, bundle string) error {
	text, err := os.ReadFile(bundle + anchor.ProofSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	proof, err := anchor.ParseProof(text)
	if err == nil {
		err = v.CheckConsistency(proof.Checkpoint)
	}
	if err != nil {
		r.Faults = append(r.Faults, fmt.Sprintf("%s%s: %v", bundle, anchor.ProofSuffix, err))
	}
	return nil
}

// leaves compares the log's bundles with the files, both ways.
func (r *Reconciliation) leaves(v *View, found map[string]string) error {
	for b, err := range v.Bundles() {
		if err != nil {
			return err
		}
		if _, ok := found[b.SHA256]; !ok {
			r.Missing = append(r.Missing, b)
		}
		delete(found, b.SHA256)
	}
	r.Unlogged = slices.AppendSeq(r.Unlogged, maps.Values(found))
	slices.Sort(r.Unlogged)
	return nil
}

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
