package aivs

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"
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

// archive writes a canonical tar through gzip with an empty header.
type archive struct {
	gzip  *gzipWriter
	tar   *tar.Writer
	files []attested // written so far
	err   error      // the first error; nothing is written after it
}

func newArchive(w io.Writer) *archive {
	z, err := newGzipWriter(w)
	return &archive{gzip: z, tar: tar.NewWriter(z), err: err}
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

// verifierEntry is the whole entry of verify.py: header, script and padding. Every bundle has it,
// and compressing it for each would take more than half of a short session's compression.
var verifierEntry = sync.OnceValue(func() *precompressed {
	var entry bytes.Buffer
	t := tar.NewWriter(&entry)
	err := t.WriteHeader(header(verifierFile, int64(len(verifier))))
	if err == nil {
		_, err = t.Write(verifier)
	}
	if err == nil {
		err = t.Flush()
	}
	if err != nil {
		panic(err) // cannot fail: a buffer accepts every write
	}
	return precompress(entry.Bytes())
})

// verifier writes the entry of verify.py. The tar writer is between two entries, and need not know.
func (a *archive) verifier() {
	if a.err != nil {
		return
	}
	if err := a.gzip.insert(verifierEntry()); err != nil {
		a.err = fmt.Errorf("archive %s: %w", verifierFile, err)
	}
	a.files = append(a.files, attested{verifierFile, verifierDigest})
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

// close ends the archive. It returns the first error of all entries.
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
	return nil
}
