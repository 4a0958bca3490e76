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
	"github.com/plumbline/plumbline/pipeline/worklist"
)

// Copy is one file on its way to one destination.
type Copy struct {
	File   string `json:"file"`             // below the bundle directory
	SHA256 string `json:"sha256,omitempty"` // hexadecimal, as sealed; empty where that was not noted

	Size      int64     `json:"-"` // once delivered
	Delivered time.Time `json:"-"` // likewise
}

// Copier brings what it is told of to one destination.
type Copier struct {
	To      Destination
	Name    string // of the kind of destination: "s3"
	Dir     string // of the list of those that wait; of this copier alone
	Bundles string // the bundle directory
	Log     *slog.Logger
	Record  func(ctx context.Context, location string, copies []Copy) error // notes what was delivered
	Done    func(copies int)                                                // is told how many were
	Failed  func()                                                          // is told of each attempt in vain
	Waiting func(copies int)                                                // is told how many wait

	list worklist.List[Copy]
}

const (
	// atOnce is how many copies are on their way to a destination at a time.
	atOnce = 8
	// together is how many earlier files one list file names.
	together = 500
	// locationName is the file that says for which place all of the earlier files were
	// noted.
	locationName = "location"
)

// Open opens the list. Where the destination is new, or another than before, earlier
// are the files that it gets as well. It is called before all else.
func (c *Copier) Open(earlier iter.Seq2[string, error]) error {
	c.list = worklist.List[Copy]{
		Name: c.Name + " (" + c.To.Location() + ")", Dir: c.Dir, Ready: c.To.Ready, Settle: c.deliver, Settled: c.delivered,
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
	if err := c.addAll(earlier); err != nil {
		return fmt.Errorf("note earlier bundles for %s: %w", c.Name, err)
	}
	return durable.WriteFile(path, []byte(c.To.Location()), 0o600)
}

// Forget makes the next Open take the destination for a new one: what is sealed until
// then is not noted for it.
func Forget(dir string) error {
	path := filepath.Join(dir, locationName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return durable.Remove(path)
}

func (c *Copier) addAll(files iter.Seq2[string, error]) error {
	var copies []Copy
	for file, err := range files {
		if err != nil {
			return err
		}
		if copies = append(copies, Copy{File: file}); len(copies) == together {
			if err := c.Add(copies...); err != nil {
				return err
			}
			copies = nil
		}
	}
	return c.Add(copies...)
}

// Add notes files durably. The same may be added twice.
func (c *Copier) Add(copies ...Copy) error { return c.list.Add(copies...) }

// Run delivers what waits until ctx ends.
func (c *Copier) Run(ctx context.Context) error { return c.list.Run(ctx) }

// deliver brings one file, if it is what was sealed.
func (c *Copier) deliver(ctx context.Context, wanted *Copy) error {
	name := filepath.ToSlash(wanted.File)
	file, err := os.Open(filepath.Join(c.Bundles, wanted.File))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", worklist.ErrStuck, err)
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
		return fmt.Errorf("%w: %s was changed since it was sealed: it has SHA-256 %s, was %s", worklist.ErrStuck, file.Name(), digest, wanted.SHA256)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := c.To.Deliver(ctx, name, digest, file); errors.Is(err, ErrTaken) {
		return fmt.Errorf("%w: %w", worklist.ErrStuck, err)
	} else if err != nil {
		return err
	}
	wanted.SHA256, wanted.Delivered = digest, time.Now()
	return nil
}

func (c *Copier) delivered(ctx context.Context, copies []Copy) error {
	if err := c.Record(ctx, c.To.Location(), copies); err != nil {
		return fmt.Errorf("record what was delivered: %w", err)
	}
	c.Done(len(copies))
	return nil
}
