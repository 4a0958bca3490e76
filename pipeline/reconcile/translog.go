package reconcile

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
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
	if c.logKeys, err = c.readLogKeys(); err == nil {
		c.log, err = tlog.OpenView(c.Log, c.logKeys...)
	}
	if err != nil {
		c.log = nil
		c.differ(Difference{Kind: LogBroken}, "%v", err)
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
	var public []ed25519.PublicKey
	for _, key := range c.keys.Keys() {
		if key.Purpose == keyring.Log {
			public = append(public, key.Public())
		}
	}
	if public == nil {
		return nil, errors.New("the key list names no log key")
	}
	keys, _, err := tlog.Verifiers(origin, public)
	return keys, err
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
	c.count().Leaves, c.count().Proofs = uint64(r.Leaves), uint64(r.Proofs)
	if r.Changed != nil {
		c.differ(Difference{Kind: LogBroken}, "%v", r.Changed)
		return nil
	}
	for _, leaf := range r.Missing {
		c.differ(Difference{Kind: LogBundleMissing, SessionID: leaf.SessionID}, "leaf %d is of bundle %s, which is not in the directory", leaf.Index, leaf.SHA256)
	}
	for _, b := range r.Bad {
		c.differ(c.ofFile(ProofBad, b.Path), "%v", b.Err)
	}
	for _, b := range r.Unproven {
		c.differ(c.ofFile(ProofMissing, b.Path), "there is no proof next to the bundle")
	}
	c.checkUnlogged(r.Unlogged)
	return nil
}

// checkNoLog reports a proof although there is no log.
func (c *check) checkNoLog() error {
	if there, err := isDir(c.Log); there || err != nil {
		return err // the reason why it was not opened is reported already
	}
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		if _, err := os.Stat(filepath.Join(c.Bundles, path) + anchor.ProofSuffix); err == nil {
			c.differ(Difference{Kind: LogMissing, File: path + anchor.ProofSuffix}, "there is a proof, and no log in %q", c.Log)
			break
		}
	}
	return nil
}

// checkUnlogged reports bundles that are not in the log although they were sealed after the first
// logged bundle.
func (c *check) checkUnlogged(unlogged []tlog.Found) {
	missing := map[string]bool{}
	for _, b := range unlogged {
		missing[b.Path] = true
	}
	var began time.Time // export time of the first logged bundle
	for path, f := range c.files {
		if !missing[path] {
			began = earliest(began, f.exported)
		}
	}
	for _, b := range unlogged {
		f := c.files[b.Path]
		switch {
		case began.IsZero() || f.exported.Before(began): // an invalid bundle is reported elsewhere
		case f.opening.Part > c.sessions[f.of()].settled():
			c.count().UnderWay++
		default:
			c.differ(c.ofFile(BundleUnlogged, b.Path), "the log does not contain this bundle (%s)", f.sha256)
		}
	}
}

// checkBucketHead compares the log with its head in bucket seals.
func (c *check) checkBucketHead(ctx context.Context) error {
	value, _, err := c.seals.GetNewest(ctx, seal.LogKey)
	if errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.checkHead("bucket seals", value)
}

// announcedHead compares the log with a head that an entry of the ledger states.
func (l *ledgerCheck) announcedHead(event *opledger.Event) error {
	var said events.LogHead
	if json.Unmarshal(event.Data, &said) != nil || said.Kind != events.KindLogHead {
		return nil
	}
	return l.checkHead("the ledger", event.Data)
}

// checkHead compares the log with a head that is kept elsewhere.
func (c *check) checkHead(where string, value []byte) error {
	head := new(events.LogHead)
	if err := json.Unmarshal(value, head); err != nil {
		c.differHead(where, LogRolledBack, err)
		return nil
	}
	kept, err := head.Checkpoint()
	switch {
	case err != nil:
		c.differHead(where, LogRolledBack, err)
		return nil
	case c.log == nil:
		there, err := isDir(c.Log)
		if !there && err == nil && kept.Size > 0 {
			c.differHead(where, LogMissing, fmt.Errorf("it had %d leaves, and there is no log in %q", kept.Size, c.Log))
		}
		return err // if the directory exists, the reason why the log was not opened is reported already
	case kept.Origin != c.log.Head().Origin: // a head of an earlier log
		return nil
	}
	c.count().Heads++
	log := c.log
	if kept.Size > log.Size() { // it may have grown since it was opened
		if log, err = tlog.OpenView(c.Log, c.logKeys...); err != nil {
			return err
		}
		defer func() { _ = log.Close() }()
	}
	if err := log.GoesOnFrom(kept); err != nil {
		c.differHead(where, LogRolledBack, err)
	}
	return nil
}

// differHead reports only the first difference for each place: all later heads differ as well.
func (c *check) differHead(where string, kind Kind, err error) {
	if !c.heads[where] {
		c.heads[where] = true
		c.differ(Difference{Kind: kind}, "by the head that %s keeps of it: %v", where, err)
	}
}

// earliest returns the earlier of two times, of which a zero one does not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
