package reconcile

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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
	exported time.Time     // as a verified bundle states it; otherwise zero
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
		c.skip(fmt.Sprintf("bundles: there is no directory %s", c.Bundles))
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
	var intact []aivs.Located
	for _, f := range files {
		c.files[f.path] = f
		c.countFile(f)
		if f.opening != nil {
			intact = append(intact, aivs.Located{Path: f.path, Report: &aivs.Report{SHA256: f.sha256, Opening: f.opening}})
		}
	}
	for _, fault := range aivs.CheckCollection(intact).Faults { // links between the bundles, missing parts
		c.differ(Difference{Kind: BundleLink}, "%s: %s", fault.Where, fault.Message)
	}
	return nil
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

func (c *check) readBundle(path string) (f *bundleFile, err error) {
	file, err := os.Open(filepath.Join(c.Bundles, path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var ids []string // of the traces; empty for a row that names none
	row := func(r *aivs.Row) {
		if r.ActionType == aivs.ActionOpen || r.ActionType == aivs.ActionSeal {
			return
		}
		var inputs struct {
			TraceID string `json:"trace_id"`
		}
		if json.Unmarshal([]byte(r.InputsJSON), &inputs) != nil {
			inputs.TraceID = ""
		}
		ids = append(ids, inputs.TraceID)
	}
	report, err := aivs.Verify(file, aivs.Options{RequireSignature: true, Keys: c.Pinned, Signer: c.signer(), Row: row})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f = &bundleFile{path: path, sha256: report.SHA256, session: report.SessionID, traces: int64(len(ids)), traceIDs: digestOfIDs(ids)}
	switch {
	case !report.Intact:
		f.fault = fmt.Sprintf("%q: %s", report.Faults[0].Where, report.Faults[0].Message)
	case report.Opening == nil:
		f.fault = "a bundle of dialect " + report.Dialect + ", which the exporter does not write"
	default:
		o := *report.Opening
		o.Members = nil
		f.opening = &o
		f.exported, _ = time.Parse(time.RFC3339, o.ExportedAt) // zero if it is not a time
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

func (c *check) countFile(f *bundleFile) {
	c.count().Files++
	if f.fault == "" {
		c.count().Verified++
		return
	}
	c.differ(Difference{Kind: BundleBad, SessionID: f.session, File: f.path}, "it does not verify: %s", f.fault)
}

// ofFile returns a difference about a bundle of the directory.
func (c *check) ofFile(kind Kind, path string) Difference {
	f := c.files[path]
	return Difference{Kind: kind, AgentID: f.of().AgentID, SessionID: f.session, File: path}
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
	c.countFile(f)
	return f, nil
}

// digestOfIDs returns a digest of a list of trace ids, so the lists of all bundles need not be kept.
func digestOfIDs(ids []string) schema.Digest {
	var list []byte
	for _, id := range ids {
		list = append(binary.AppendUvarint(list, uint64(len(id))), id...)
	}
	return schema.DigestOf(list)
}
