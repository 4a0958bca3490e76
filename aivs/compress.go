package aivs

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// level is the compression level of a bundle. Higher levels make it at most a seventh smaller and
// take half as much time again.
const level = 2

// compressors pools the deflate writers: each holds close to a megabyte of tables.
var compressors = sync.Pool{New: func() any {
	z, err := flate.NewWriter(io.Discard, level)
	if err != nil {
		panic(err) // the package does not know this level
	}
	return z
}}

// The only gzip headers of our own dialect: no name, no further field, an unknown system, and no
// time. Earlier versions wrote the year 1 as a 32-bit time.
const (
	gzipHeader       = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	formerGzipHeader = "\x1f\x8b\x08\x00\x00\x09\x6e\x88\x00\xff"
)

// gzipWriter writes one gzip member. It differs from the writer of package gzip in that it accepts
// content that was compressed before.
type gzipWriter struct {
	w       io.Writer
	deflate *flate.Writer
	crc     uint32 // of the uncompressed content so far
	size    uint32 // of the same, modulo 2^32
}

// newGzipWriter writes the header.
func newGzipWriter(w io.Writer) (*gzipWriter, error) {
	deflate := compressors.Get().(*flate.Writer)
	deflate.Reset(w)
	_, err := io.WriteString(w, gzipHeader)
	return &gzipWriter{w: w, deflate: deflate}, err
}

// Write compresses p.
func (z *gzipWriter) Write(p []byte) (int, error) {
	z.count(p)
	return z.deflate.Write(p)
}

func (z *gzipWriter) count(content []byte) {
	z.crc = crc32.Update(z.crc, crc32.IEEETable, content)
	z.size += uint32(len(content))
}

// insert writes content that was compressed before. The blocks before it end at a byte, and the
// blocks after it refer to nothing before them.
func (z *gzipWriter) insert(p *precompressed) error {
	if err := z.deflate.Flush(); err != nil {
		return err
	}
	z.count(p.content)
	_, err := z.w.Write(p.blocks)
	z.deflate.Reset(z.w)
	return err
}

// Close writes the last block and the trailer, and returns the deflate writer to the pool.
func (z *gzipWriter) Close() error {
	if err := z.deflate.Close(); err != nil {
		return err
	}
	trailer := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, z.crc), z.size)
	_, err := z.w.Write(trailer)
	compressors.Put(z.deflate)
	return err
}

// precompressed is content that is the same in every bundle. Its deflate blocks refer to nothing
// before them, are not marked as the last, and end at a byte. So other blocks may be on both sides.
type precompressed struct{ content, blocks []byte }

// precompress compresses with the best level, since it does so once in a process.
func precompress(content []byte) *precompressed {
	var blocks bytes.Buffer
	z, err := flate.NewWriter(&blocks, flate.BestCompression)
	if err == nil {
		_, err = z.Write(content)
	}
	if err == nil {
		err = z.Flush()
	}
	if err != nil {
		panic(err) // cannot fail: the level exists, and a buffer accepts every write
	}
	return &precompressed{content, blocks.Bytes()}
}
