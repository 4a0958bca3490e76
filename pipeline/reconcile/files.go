package reconcile

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// bundleFile is a bundle in the directory with the result of verifying it.
type bundleFile struct {
	path     string // below the directory
	sha256   string
	opening  *aivs.Opening // of a verified bundle, without its members; otherwise nil
	session  string
	traces   int64
	traceIDs schema.Digest // digest of the list of their ids
	fault    string        // the first fault; empty when the bundle is verified
	recorded bool          // it has a bundle row
	stamp    stamp
}

// of returns the session that the bundle states.
func (f *bundleFile) of() store.SessionKey {
	if f.opening == nil {
		return store.SessionKey{}
	}
	return store.SessionKey{AgentID: f.opening.AgentID, SessionID: f.opening.SessionID}
}

// readFiles verifies every bundle of the directory, and checks the bundles against each other.
func (c *check) readFiles(ctx context.Context) error {
	c.files = map[string]*bundleFile{}
	there, err := isDir(c.Bundles)
	if err != nil || !there {
		c.skip("bundles: the directory is not here")
		return err
	}
	if c.keys == nil && len(c.Pinned) == 0 {
		c.skip("who signed the bundles: there is neither a key list nor a pinned key")
	}
	paths, err := bundlesBelow(c.Bundles)
	if err != nil {
		return err
	}
	files := make([]*bundleFile, len(paths))
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, path := range paths {
		group.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				files[i], err = c.readBundle(path)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, f := range files {
		c.files[f.path] = f
		if err := c.tellFile(f); err != nil {
			return err
		}
	}
	return c.checkCollection()
}

// bundlesBelow returns the bundles below a directory, sorted by name. It skips files whose name
// begins with a dot: they were never bundles.
func bundlesBelow(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), ".") || !strings.HasSuffix(path, ".tar.gz") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		paths = append(paths, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the bundles: %w", err)
	}
	return paths, nil
}

// readBundle verifies one bundle.
func (c *check) readBundle(path string) (f *bundleFile, err error) {
	file, err := os.Open(filepath.Join(c.Bundles, path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	ids := idList{digest: sha256.New()}
	report, err := aivs.Verify(file, aivs.Options{RequireSignature: true, Keys: c.Pinned, Signer: c.signer(), Row: ids.row})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f = &bundleFile{path: path, sha256: report.SHA256, session: report.SessionID, traces: ids.n, traceIDs: ids.sum()}
	switch {
	case !report.Intact:
		f.fault = fmt.Sprintf("%q: %s", report.Faults[0].Where, report.Faults[0].Message)
	case report.Opening == nil:
		f.fault = "a bundle of dialect " + report.Dialect + ", which the exporter does not write"
	default:
		o := *report.Opening
		o.Members = nil
		f.opening = &o
		f.stamp = c.readStamp(path, report)
	}
	return f, nil
}

// signer returns the check of which keys may have signed. With a key list these are the keys that
// a pinned key vouches for, or every session key where none is pinned.
func (c *check) signer() aivs.Signer {
	if c.keys == nil {
		return nil
	}
	pinned := c.Pinned
	if len(pinned) == 0 {
		for _, key := range c.keys.Keys() {
			if key.Purpose == keyring.Session {
				pinned = append(pinned, key.Public())
			}
		}
	}
	return func(key ed25519.PublicKey, exportedAt time.Time) error {
		return c.keys.Accept(pinned, key, keyring.Session, exportedAt)
	}
}

func (c *check) tellFile(f *bundleFile) error {
	c.count().Files++
	if f.fault != "" {
		return c.differ(Difference{Kind: BundleBad, SessionID: f.session, File: f.path}, "it does not verify: %s", f.fault)
	}
	c.count().Verified++
	return nil
}

// checkCollection checks the links between the bundles, and that no part is missing.
func (c *check) checkCollection() error {
	var all []aivs.Located
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		if f := c.files[path]; f.opening != nil {
			all = append(all, aivs.Located{Path: f.path, Report: &aivs.Report{SHA256: f.sha256, Opening: f.opening}})
		}
	}
	for _, fault := range aivs.CheckCollection(all).Faults {
		if err := c.differ(Difference{Kind: BundleLink}, "%s: %s", fault.Where, fault.Message); err != nil {
			return err
		}
	}
	return nil
}

// file returns a bundle of the directory, also one that appeared after the directory was read;
// nil where there is none.
func (c *check) file(path string) (*bundleFile, error) {
	if f := c.files[path]; f != nil || !filepath.IsLocal(path) {
		return f, nil
	}
	f, err := c.readBundle(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.files[path] = f
	return f, c.tellFile(f)
}

// idList is a list of trace ids of which only the digest is kept.
type idList struct {
	n      int64
	digest hash.Hash
}

func (l *idList) add(id string) {
	l.n++
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(id)))
	l.digest.Write(length[:])
	l.digest.Write([]byte(id))
}

// row adds the trace id of a row of an audit log.
func (l *idList) row(r *aivs.Row) {
	if r.ActionType != aivs.ActionOpen && r.ActionType != aivs.ActionSeal {
		l.add(traceOf(r))
	}
}

// traceOf returns the id of a row's trace, empty where the row has none.
func traceOf(r *aivs.Row) string {
	var inputs struct {
		TraceID string `json:"trace_id"`
	}
	if json.Unmarshal([]byte(r.InputsJSON), &inputs) != nil {
		return ""
	}
	return inputs.TraceID
}

func (l *idList) sum() (d schema.Digest) {
	copy(d[:], l.digest.Sum(nil))
	return d
}

// digestOfIDs returns the digest that idList computes for the ids.
func digestOfIDs(ids []string) schema.Digest {
	l := idList{digest: sha256.New()}
	for _, id := range ids {
		l.add(id)
	}
	return l.sum()
}
