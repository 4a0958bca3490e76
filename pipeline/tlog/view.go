package tlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// View is a read-only log as of one checkpoint. The log may grow meanwhile.
type View struct {
	dir    string
	keys   []note.Verifier
	leaves *os.File
	hashes *os.File
	head   anchor.Checkpoint
	signed []byte // the head as stored on disk
}

// OpenView opens the log in a directory for reading, also while another process has it open. One
// of the keys must have signed its checkpoint.
func OpenView(dir string, keys ...note.Verifier) (*View, error) {
	v := &View{keys: keys}
	if err := v.open(dir, os.O_RDONLY); err != nil {
		return nil, fmt.Errorf("transparency log in %s: %w", dir, errors.Join(err, v.Close()))
	}
	return v, nil
}

// open reads the checkpoint before it opens the files. The files therefore hold at least what the
// checkpoint covers.
func (v *View) open(dir string, how int) error {
	v.dir = dir
	signed, err := os.ReadFile(filepath.Join(dir, checkpointName))
	if err != nil {
		return err
	}
	head, err := anchor.OpenCheckpointBy(signed, v.keys)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTampered, err)
	}
	v.head, v.signed = *head, signed
	if v.leaves, err = os.OpenFile(filepath.Join(dir, leavesName), how, 0); err == nil {
		v.hashes, err = os.OpenFile(filepath.Join(dir, hashesName), how, 0)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrTampered, err)
	}
	return err
}

// Close closes the files.
func (v *View) Close() error {
	var err error
	for _, file := range []*os.File{v.leaves, v.hashes} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// Size returns the number of leaves.
func (v *View) Size() int64 { return v.head.Size }

// Head returns the log's name, size and root.
func (v *View) Head() anchor.Checkpoint { return v.head }

// Check recomputes every hash from the leaves. It takes a second or two for a million leaves.
func (v *View) Check() error {
	_, err := v.read()
	return err
}

func (v *View) read() (*contents, error) {
	leaves, hashes := io.NewSectionReader(v.leaves, 0, endless), io.NewSectionReader(v.hashes, 0, endless)
	c, err := readFiles(leaves, hashes, v.head.Size)
	if err != nil {
		return nil, err
	}
	root, err := tlog.TreeHash(v.head.Size, v.reader(nil))
	if err != nil {
		return nil, err
	}
	if root != v.head.Root {
		return nil, fmt.Errorf("%w: its %d leaves do not have the checkpoint's root", ErrTampered, v.head.Size)
	}
	return c, nil
}

func (v *View) reader(pending []tlog.Hash) *hashReader {
	return &hashReader{file: v.hashes, stored: tlog.StoredHashCount(v.head.Size), pending: pending}
}

// GoesOnFrom returns an error unless the log still holds everything that it held at an earlier
// checkpoint, such as that of a bundle's proof: nothing removed, changed or inserted. Call Check
// first to check the log itself.
func (v *View) GoesOnFrom(older *anchor.Checkpoint) error {
	return continues(older, &v.head, v.reader(nil))
}

// continues checks by the log's hashes that the log at newer holds everything that it held at
// older.
func continues(older, newer *anchor.Checkpoint, hashes tlog.HashReader) (err error) {
	var proof tlog.TreeProof
	if older.Size > 0 && older.Size < newer.Size {
		if proof, err = tlog.ProveTree(newer.Size, older.Size, hashes); err != nil {
			return fmt.Errorf("prove that the log continues from %d leaves: %w", older.Size, err)
		}
	}
	return anchor.CheckConsistency(proof, older, newer)
}

// Bundle is the content of a leaf.
type Bundle struct {
	SessionID string
	SHA256    string // of the .tar.gz
}

// Bundles returns the log's bundles in order. It ends at the first error.
func (v *View) Bundles() iter.Seq2[Bundle, error] {
	return func(yield func(Bundle, error) bool) {
		reader := bufio.NewReaderSize(io.NewSectionReader(v.leaves, 0, endless), maxLine)
		for n := range v.head.Size {
			b := Bundle{}
			leaf, err := readLeaf(reader)
			if err == nil {
				b.SessionID, b.SHA256, err = anchor.ParseLeaf(leaf)
			}
			if err != nil {
				err = fmt.Errorf("%w: leaf %d: %w", ErrTampered, n, err)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}
