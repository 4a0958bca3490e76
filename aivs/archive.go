package aivs

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// root is the directory that holds every entry of a bundle (draft section 5.1).
const root = "session_proof/"

// FileName returns the bundle's file name (draft section 5.1):
// aivs_proof_{first 8 characters of the session id}_{Unix seconds}.tar.gz, with
// _ for characters other than letters, digits, _ and -.
func FileName(sessionID string, exportedAt int64) string {
	prefix := []rune(sessionID)
	prefix = prefix[:min(8, len(prefix))]
	return fmt.Sprintf("aivs_proof_%s_%d.tar.gz", notInFileName.ReplaceAllString(string(prefix), "_"), exportedAt)
}

var notInFileName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// header returns the only form of a file's header in a canonical archive: ustar, mode 0644, owner
// 0 without a name, modification time 0.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: root + name, Size: size, Mode: 0o644,
		ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
}

// level is the gzip compression level of a bundle. Higher levels make it at most a seventh
// smaller and take half as much time again.
const level = 2

// compressors pools the gzip writers: each holds close to a megabyte of tables.
var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(io.Discard, level)
	if err != nil {
		panic(err) // gzip does not know this level
	}
	return z
}}

// The only gzip headers of our own dialect: no name, no further field, an unknown system, and no
// time. Earlier versions wrote the year 1 as a 32-bit time.
const (
	gzipHeader       = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	formerGzipHeader = "\x1f\x8b\x08\x00\x00\x09\x6e\x88\x00\xff"
)

// archive writes a canonical tar through gzip with an empty header.
type archive struct {
	gzip  *gzip.Writer
	tar   *tar.Writer
	files []attested // written so far
	err   error      // the first error; nothing is written after it
}

func newArchive(w io.Writer) *archive {
	z := compressors.Get().(*gzip.Writer)
	z.Reset(w)
	z.ModTime = time.Unix(0, 0) // the zero time.Time would be written as a time
	return &archive{gzip: z, tar: tar.NewWriter(z)}
}

// bytes writes one entry held in memory.
func (a *archive) bytes(name string, data []byte) { a.digested(name, data, hexSHA256(data)) }

// digested writes one entry held in memory whose digest is already known.
func (a *archive) digested(name string, data []byte, sha256 string) {
	a.entry(name, int64(len(data)), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	a.files = append(a.files, attested{name, sha256})
}

// stream writes one entry of size bytes, which write produces, and returns its digest.
func (a *archive) stream(name string, size int64, write func(io.Writer) error) string {
	digest := sha256.New()
	a.entry(name, size, func(w io.Writer) error { return write(io.MultiWriter(w, digest)) })
	sum := hex.EncodeToString(digest.Sum(nil))
	a.files = append(a.files, attested{name, sum})
	return sum
}

func (a *archive) entry(name string, size int64, write func(io.Writer) error) {
	if a.err != nil {
		return
	}
	err := a.tar.WriteHeader(header(name, size))
	if err == nil {
		err = write(a.tar)
	}
	if err == nil {
		err = a.tar.Flush() // fails when write produced fewer than size bytes
	}
	if err != nil {
		a.err = fmt.Errorf("archive %s: %w", name, err)
	}
}

// close ends the archive and returns the compressor to the pool. It returns the first error of all
// entries.
func (a *archive) close() error {
	if a.err != nil {
		return a.err
	}
	if err := a.tar.Close(); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := a.gzip.Close(); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	compressors.Put(a.gzip)
	return nil
}
