package reconcile

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// openLog opens the transparency log if there is one.
func (c *check) openLog(context.Context) error {
	there, err := isDir(c.Log)
	if err != nil || !there {
		return err
	}
	if c.keys == nil {
		c.skip("transparency log: there is no key list to check it by")
		return nil
	}
	if c.logKeys, err = c.readLogKeys(); err != nil {
		return c.differ(Difference{Kind: LogBroken}, "%v", err)
	}
	if c.log, err = tlog.OpenView(c.Log, c.logKeys...); err != nil {
		c.log = nil
		return c.differ(Difference{Kind: LogBroken}, "%v", err)
	}
	return nil
}

// readLogKeys returns the keys of the list that may have signed the checkpoint. It takes the
// log's name from the checkpoint, whose signature covers the name.
func (c *check) readLogKeys() ([]note.Verifier, error) {
	signed, err := os.ReadFile(filepath.Join(c.Log, "checkpoint"))
	if err != nil {
		return nil, err
	}
	origin, _, _ := strings.Cut(string(signed), "\n")
	var keys []note.Verifier
	for _, key := range c.keys.Keys() {
		if key.Purpose != keyring.Log {
			continue
		}
		vkey, err := anchor.VerifierKey(origin, key.Public())
		if err != nil {
			return nil, err
		}
		verifier, err := anchor.ParseVerifier(vkey)
		if err != nil {
			return nil, err
		}
		keys = append(keys, verifier)
	}
	if keys == nil {
		return nil, errors.New("the key list names no log key")
	}
	return keys, nil
}

// checkLog compares the log with the bundles and the proofs next to them.
func (c *check) checkLog(ctx context.Context) error {
	if err := c.checkBucketHead(ctx); err != nil {
		return err
	}
	if c.log == nil {
		return c.checkNoLog()
	}
	var found []tlog.Found
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		found = append(found, tlog.Found{Path: path, SHA256: c.files[path].sha256})
	}
	r, err := c.log.Reconcile(c.Bundles, found)
	if err != nil {
		return err
	}
	c.count().Leaves, c.count().Proofs = uint64(r.Leaves), uint64(r.Proofs) // counts
	if r.Changed != nil {
		return c.differ(Difference{Kind: LogBroken}, "%v", r.Changed)
	}
	return errors.Join(c.tellLeaves(r), c.tellProofs(r), c.tellUnlogged(r))
}

// checkNoLog reports a proof although there is no log.
func (c *check) checkNoLog() error {
	if there, err := isDir(c.Log); there || err != nil {
		return err // the reason why it was not opened is reported already
	}
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		if _, err := os.Stat(filepath.Join(c.Bundles, path) + anchor.ProofSuffix); err == nil {
			return c.differ(Difference{Kind: LogMissing, File: path + anchor.ProofSuffix}, "there is a proof, and no log in %q", c.Log)
		}
	}
	return nil
}

func (c *check) tellLeaves(r *tlog.Reconciliation) error {
	for _, leaf := range r.Missing {
		d := Difference{Kind: LogBundleMissing, SessionID: leaf.SessionID}
		if err := c.differ(d, "leaf %d is of bundle %s, which is not in the directory", leaf.Index, leaf.SHA256); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) tellProofs(r *tlog.Reconciliation) error {
	for _, b := range r.Bad {
		if err := c.differ(c.beside(ProofBad, b.Path), "%v", b.Err); err != nil {
			return err
		}
	}
	for _, b := range r.Unproven {
		if err := c.differ(c.beside(ProofMissing, b.Path), "there is no proof beside the bundle"); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) beside(kind Kind, path string) Difference {
	f := c.files[path]
	return Difference{Kind: kind, AgentID: f.of().AgentID, SessionID: f.session, File: path}
}

// tellUnlogged reports bundles that are not in the log although they were sealed after the first
// logged bundle.
func (c *check) tellUnlogged(r *tlog.Reconciliation) error {
	unlogged := map[string]bool{}
	for _, b := range r.Unlogged {
		unlogged[b.Path] = true
	}
	began := c.logBegan(unlogged)
	for _, b := range r.Unlogged {
		f := c.files[b.Path]
		at, dated := exportedAt(f)
		switch {
		case !dated || began.IsZero() || at.Before(began): // an invalid bundle is reported elsewhere
		case f.opening.Part > c.sessions[f.of()].settled():
			c.count().UnderWay++
		default:
			if err := c.differ(c.beside(BundleUnlogged, b.Path), "the log holds no such bundle (%s)", f.sha256); err != nil {
				return err
			}
		}
	}
	return nil
}

// logBegan returns the export time of the earliest bundle in the log.
func (c *check) logBegan(unlogged map[string]bool) (began time.Time) {
	for path, f := range c.files {
		at, dated := exportedAt(f)
		if dated && !unlogged[path] && (began.IsZero() || at.Before(began)) {
			began = at
		}
	}
	return began
}

// exportedAt returns the export time that a verified bundle states.
func exportedAt(f *bundleFile) (at time.Time, dated bool) {
	if f.opening == nil {
		return at, false
	}
	at, err := time.Parse(time.RFC3339, f.opening.ExportedAt)
	return at, err == nil
}
