package tlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// Names in a log's directory. Leaves and hashes are append-only; the checkpoint states how much
// of them belongs to the log.
const (
	leavesName     = "leaves"     // the leaves' texts, one after the other
	hashesName     = "hashes"     // of leaves and nodes, 32 bytes each, in the order of tlog.StoredHashes
	checkpointName = "checkpoint" // signed
	cosignedName   = "cosigned"   // the newest checkpoint that witnesses have cosigned
)

// ErrTampered is wrapped by every error about files that do not match the log's checkpoint.
var ErrTampered = errors.New("the transparency log was changed, or its disk lost data")

// contents describes the files of a log, up to a size.
type contents struct {
	index  map[uint64]int64 // first bytes of a leaf's hash -> index of the leaf
	starts []int64          // offsets in the leaves' file at which each bundle of tileWidth entries begins
	length int64            // total bytes of the leaves
}

// readFiles reads a log's leaves and recomputes every hash from them. maxLine bounds a line of a
// leaf.
func readFiles(leaves, hashes io.Reader, size int64) (*contents, error) {
	c := &contents{index: map[uint64]int64{}}
	leafReader, hashReader := bufio.NewReaderSize(leaves, maxLine), bufio.NewReaderSize(hashes, 64<<10)
	var left [64]tlog.Hash // for each level, the last full subtree
	for n := range size {
		leaf, err := readLeaf(leafReader)
		if err != nil {
			return nil, fmt.Errorf("%w: leaf %d of %d: %w", ErrTampered, n, size, err)
		}
		hash := tlog.RecordHash(leaf)
		if n%tileWidth == 0 {
			c.starts = append(c.starts, c.length)
		}
		c.length += int64(len(leaf))
		c.index[prefixOf(hash)] = n
		for level := 0; ; level++ {
			if err := expect(hashReader, hash); err != nil {
				return nil, fmt.Errorf("%w: hash of leaf %d, level %d: %w", ErrTampered, n, level, err)
			}
			if n>>level&1 == 0 {
				left[level] = hash
				break
			}
			hash = tlog.NodeHash(left[level], hash)
		}
	}
	return c, nil
}

// endless is larger than any file.
const endless = 1 << 62

// maxLine is larger than the longest encoded session id.
const maxLine = 64 << 10

// readLeaf reads the three lines of a leaf.
func readLeaf(r *bufio.Reader) ([]byte, error) {
	var leaf []byte
	for range 3 {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, noEnd(err)
		}
		leaf = append(leaf, line...)
	}
	_, _, err := anchor.ParseLeaf(leaf)
	return leaf, err
}

func expect(r io.Reader, want tlog.Hash) error {
	var got tlog.Hash
	if _, err := io.ReadFull(r, got[:]); err != nil {
		return noEnd(err)
	}
	if got != want {
		return errors.New("it does not match the leaves")
	}
	return nil
}

// noEnd replaces io.EOF by what the end of the file means here.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends too early")
	}
	return err
}

// hashReader reads stored hashes: those in the file, then pending ones, which are not in it yet.
type hashReader struct {
	file    io.ReaderAt
	stored  int64 // number of hashes in the file
	pending []tlog.Hash
}

// ReadHashes implements tlog.HashReader.
func (r *hashReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= r.stored {
			found[i] = r.pending[index-r.stored]
			continue
		}
		if _, err := r.file.ReadAt(found[i][:], index*tlog.HashSize); err != nil {
			return nil, fmt.Errorf("read hash %d: %w", index, noEnd(err))
		}
	}
	return found, nil
}
