package tlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// Append adds leaves (anchor.Leaf) to the log, all of them or none, and returns a proof of each
// against the log's new head. A leaf that is already in the log keeps its place. After an error
// the log is unchanged; the same call may be retried.
func (l *Log) Append(leaves ...[]byte) ([]*anchor.Proof, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	places, err := l.extend(leaves)
	if err != nil {
		return nil, fmt.Errorf("transparency log: %w", err)
	}
	proofs := make([]*anchor.Proof, len(leaves))
	for i, n := range places {
		hashes, err := tlog.ProveRecord(l.view.head.Size, n, l.view.reader(nil))
		if err != nil {
			return nil, fmt.Errorf("transparency log: prove leaf %d: %w", n, err)
		}
		if err := tlog.CheckRecord(hashes, l.view.head.Size, l.view.head.Root, n, tlog.RecordHash(leaves[i])); err != nil {
			return nil, fmt.Errorf("%w: the hashes on disk do not prove leaf %d", ErrTampered, n)
		}
		proofs[i] = &anchor.Proof{Index: n, Hashes: hashes, Checkpoint: l.view.signed}
	}
	return proofs, nil
}

// extension is the data to append.
type extension struct {
	text   []byte
	hashes []tlog.Hash
	index  map[uint64]int64
	starts []int64
}

// extend appends the leaves that are new and returns the index of each leaf.
func (l *Log) extend(leaves [][]byte) ([]int64, error) {
	places := make([]int64, len(leaves))
	e := extension{index: map[uint64]int64{}}
	size := l.view.head.Size
	for i, leaf := range leaves {
		n, err := l.find(leaf, &e)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			n = size
			if err := l.add(&e, n, leaf); err != nil {
				return nil, err
			}
			size++
		}
		places[i] = n
	}
	if size == l.view.head.Size {
		return places, nil
	}
	return places, l.write(&e, size)
}

// write writes an extension to disk: leaves and hashes, then the checkpoint.
func (l *Log) write(e *extension, size int64) error {
	if err := l.inPlace(); err != nil {
		return err
	}
	if l.unsure { // the checkpoint on disk may cover leaves that are overwritten now
		if err := l.place(l.view.signed); err != nil {
			return err
		}
	}
	if err := errors.Join(writeAt(l.view.leaves, e.text, l.length), writeAt(l.view.hashes, bytesOf(e.hashes), l.storedBytes())); err != nil {
		return err
	}
	if err := l.commit(size, e.hashes); err != nil {
		return err
	}
	l.length += int64(len(e.text))
	l.starts = append(l.starts, e.starts...)
	for prefix, n := range e.index {
		l.index[prefix] = n
	}
	return nil
}

// inPlace checks that the files with the log's names are still those that are open, and that they
// were not truncated.
func (l *Log) inPlace() error {
	for _, f := range []struct {
		file *os.File
		size int64
	}{{l.view.leaves, l.length}, {l.view.hashes, l.storedBytes()}} {
		named, err := os.Stat(f.file.Name())
		if err != nil {
			return fmt.Errorf("%w: %w", ErrTampered, err)
		}
		open, err := f.file.Stat()
		if err != nil {
			return err
		}
		if !os.SameFile(named, open) || open.Size() < f.size {
			return fmt.Errorf("%w: %s was replaced or truncated while this process was writing it", ErrTampered, f.file.Name())
		}
	}
	return nil
}

// find returns the index of a leaf, or -1.
func (l *Log) find(leaf []byte, e *extension) (int64, error) {
	hash := tlog.RecordHash(leaf)
	n, known := e.index[prefixOf(hash)]
	if !known {
		if n, known = l.index[prefixOf(hash)]; !known {
			return -1, nil
		}
	}
	stored, err := l.view.reader(e.hashes).ReadHashes([]int64{tlog.StoredHashIndex(0, n)})
	if err != nil {
		return 0, err
	}
	if stored[0] != hash { // two leaves whose hashes begin alike: this one is appended each time
		return -1, nil
	}
	return n, nil
}

func (l *Log) add(e *extension, n int64, leaf []byte) error {
	if _, _, err := anchor.ParseLeaf(leaf); err != nil {
		return err
	}
	hashes, err := tlog.StoredHashes(n, leaf, l.view.reader(e.hashes))
	if err != nil {
		return err
	}
	if n%tileWidth == 0 {
		e.starts = append(e.starts, l.length+int64(len(e.text)))
	}
	e.text, e.hashes = append(e.text, leaf...), append(e.hashes, hashes...)
	e.index[prefixOf(hashes[0])] = n
	return nil
}

// commit makes size leaves the log. The files must already hold them durably. pending are the
// hashes beyond the present head. commit signs no head that is not a continuation of the present
// one: it computes the root from hashes on disk.
func (l *Log) commit(size int64, pending []tlog.Hash) error {
	root, err := tlog.TreeHash(size, l.view.reader(pending))
	if err != nil {
		return err
	}
	head := anchor.Checkpoint{Origin: l.origin, Size: size, Root: root}
	if l.view.signed != nil {
		if err := continues(&l.view.head, &head, l.view.reader(pending)); err != nil {
			return fmt.Errorf("%w: compared with the hashes on disk: %w", ErrTampered, err)
		}
	}
	signed, err := head.Sign(l.keys.signer)
	if err != nil {
		return err
	}
	if err := l.place(signed); err != nil {
		return err
	}
	l.view.head, l.view.signed = head, signed
	return nil
}

func (l *Log) place(signed []byte) error {
	l.unsure = true
	if err := durable.WriteFile(filepath.Join(l.dir, checkpointName), signed, 0o644); err != nil {
		return err
	}
	l.unsure = false
	return nil
}

// writeAt writes data durably. The bytes it overwrites were never part of the log.
func writeAt(file *os.File, data []byte, offset int64) error {
	if _, err := file.WriteAt(data, offset); err != nil {
		return err
	}
	return file.Sync()
}

func bytesOf(hashes []tlog.Hash) []byte {
	b := make([]byte, 0, len(hashes)*tlog.HashSize)
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return b
}

// PlaceProof writes a bundle's proof next to it.
func PlaceProof(bundle string, proof *anchor.Proof) error {
	return durable.WriteFile(bundle+anchor.ProofSuffix, proof.Text(), 0o644)
}
