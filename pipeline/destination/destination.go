// Package destination copies sealed bundles, and the files next to them, to places outside the
// bundle directory.
//
// It owns the list of copies that are not made yet (package outbox), and the requirements on a
// destination. It does not own the destinations: stream.Objects is the broker's object store,
// package s3 a store that speaks S3.
//
// Invariants: the bundle directory is the evidence, and sealing never waits for a copy.
// Everything that is sealed while a destination is configured gets there, after crashes and
// outages, too; a new destination receives everything that was sealed before. Bytes that differ
// from those sealed are not copied, and nothing at a destination is overwritten.
package destination

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/outbox"
)

// Destination is a place that receives a copy of each bundle.
type Destination interface {
	// Location returns the address without credentials: nats:bundles, https://host/bucket.
	Location() string
	// Ready returns nil when the destination accepts copies.
	Ready(ctx context.Context) error
	// Deliver stores content under a name with slashes; sha256 is its digest in hexadecimal. It
	// changes nothing where the name already has that content; where the name has another
	// content, the error wraps fs.ErrExist. The name appears only once all of the content is
	// stored.
	// content may be read several times. It can be read at an offset (io.ReaderAt) where it is a
	// file.
	Deliver(ctx context.Context, name, sha256 string, content io.ReadSeeker) error
}

// ErrTaken says that the name has another content, which is left unchanged.
var ErrTaken = fmt.Errorf("another content has this name: %w", fs.ErrExist)

// Taken returns an error that wraps ErrTaken and states both contents.
func Taken(there, wanted string) error {
	return fmt.Errorf("%w: it has SHA-256 %s, not %s, and is left unchanged", ErrTaken, there, wanted)
}

// Copy is one file to be copied to one destination.
type Copy struct {
	File   string `json:"file"`             // below the bundle directory
	SHA256 string `json:"sha256,omitempty"` // hexadecimal, as sealed; empty where not recorded

	Size      int64     `json:"-"` // set once delivered
	Delivered time.Time `json:"-"` // set once delivered
}

// Copier copies the files that are added to one destination.
type Copier struct {
	To      Destination
	Name    string // kind of the destination: "s3"
	Dir     string // directory of the list of waiting copies; used by this copier alone
	Bundles string // the bundle directory
	Log     *slog.Logger
	Record  func(ctx context.Context, location string, copies []Copy) error // records delivered copies
	Done    func(copies int)                                                // called with the number of delivered copies
	Failed  func()                                                          // called after each failed attempt
	Waiting func(copies int)                                                // called with the number of copies that wait

	list outbox.List[Copy]
}

const (
	// atOnce is how many copies are made to a destination at a time.
	atOnce = 8
	// together is how many earlier files one list file has.
	together = 500
	// locationName is the file that names the destination for which all earlier files were added.
	locationName = "location"
)

// Open opens the list. Where the destination is new or changed, Open adds the files in earlier.
// Call it before any other method.
func (c *Copier) Open(earlier iter.Seq2[string, error]) error {
	c.list = outbox.List[Copy]{
		Name: c.Name + " (" + c.To.Location() + ")", Dir: c.Dir, Ready: c.To.Ready, Process: c.deliver, Done: c.delivered,
		Parallel: atOnce, Log: c.Log, Failed: c.Failed, Waiting: c.Waiting,
	}
	if err := c.list.Open(); err != nil {
		return err
	}
	path := filepath.Join(c.Dir, locationName)
	known, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(known) == c.To.Location() {
		return nil
	}
	var copies []Copy
	for file, err := range earlier {
		if err == nil {
			if copies = append(copies, Copy{File: file}); len(copies) == together {
				err, copies = c.Add(copies...), nil
			}
		}
		if err != nil {
			return fmt.Errorf("list the earlier bundles for %s: %w", c.Name, err)
		}
	}
	if err := c.Add(copies...); err != nil {
		return fmt.Errorf("list the earlier bundles for %s: %w", c.Name, err)
	}
	return durable.WriteFile(path, []byte(c.To.Location()), 0o600)
}

// Forget makes the next Open treat the destination as new. Files that are sealed until then are
// not added to its list one by one.
func Forget(dir string) error {
	path := filepath.Join(dir, locationName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return durable.Remove(path)
}

// Add stores files durably in the list. A file may be added twice.
func (c *Copier) Add(copies ...Copy) error { return c.list.Add(copies...) }

// Run delivers waiting copies until ctx ends.
func (c *Copier) Run(ctx context.Context) error { return c.list.Run(ctx) }

// deliver copies one file if its content is what was sealed.
func (c *Copier) deliver(ctx context.Context, wanted *Copy) error {
	name := filepath.ToSlash(wanted.File)
	file, err := os.Open(filepath.Join(c.Bundles, wanted.File))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", outbox.ErrStuck, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if wanted.Size, err = io.Copy(hash, file); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	if wanted.SHA256 != "" && wanted.SHA256 != digest {
		return fmt.Errorf("%w: %s was changed since it was sealed: its SHA-256 is %s, want %s", outbox.ErrStuck, file.Name(), digest, wanted.SHA256)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := c.To.Deliver(ctx, name, digest, file); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", outbox.ErrStuck, err)
	} else if err != nil {
		return err
	}
	wanted.SHA256, wanted.Delivered = digest, time.Now()
	return nil
}

func (c *Copier) delivered(ctx context.Context, copies []Copy) error {
	if err := c.Record(ctx, c.To.Location(), copies); err != nil {
		return fmt.Errorf("record the delivered copies: %w", err)
	}
	c.Done(len(copies))
	return nil
}
