package aivs

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"
)

// archivePlace is the Where of faults of the archive itself.
const archivePlace = "archive"

// ratioFloor is how many bytes may be unpacked before the ratio is checked.
const ratioFloor = 64 << 20

// maxName is the longest allowed name of an entry, in bytes.
const maxName = 1024

// untar reads the archive's entries and reports whether it reached the end. It writes each entry
// again as our own writer does and compares the digests of both streams. That recognises a
// canonical archive without keeping it.
func (v *verification) untar(r io.Reader) bool {
	met, written := sha256.New(), sha256.New()
	out := &rewriter{tar: tar.NewWriter(written), digest: written}
	bounded := &boundedReader{r: r, v: v}
	raw := io.TeeReader(bounded, met)
	in := tar.NewReader(raw)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = v.entry(h, in, out)
		}
		if err != nil {
			place := archivePlace
			if placed, ok := errors.AsType[*faultIn](err); ok {
				place = placed.name
			}
			v.report.fault(place, err)
			return false
		}
	}
	for name := range v.seen {
		if withinFile(name, func(folder string) bool { return v.seen[folder] }) {
			v.report.fault(archivePlace, said(saysFolderToo))
			return false
		}
	}
	if err := onlyZeros(raw); err != nil {
		v.report.Fault(archivePlace, "after its last entry: %v", err)
		return false
	}
	digest := met.Sum(nil)
	v.report.TarSHA256, v.unpacked = hex.EncodeToString(digest), bounded.n
	v.canonical = bytes.Equal(digest, out.close())
	return true
}

// faultIn is a fault in a file of the archive.
type faultIn struct {
	name string
	error
}

func (f *faultIn) Unwrap() error { return f.error }

// rewriter writes entries as our own writer does, as far as possible.
type rewriter struct {
	tar    *tar.Writer
	digest hash.Hash
	failed bool // the archive has something that our writer never produces
}

func (w *rewriter) next(name string, size int64) {
	w.failed = w.failed || w.tar.WriteHeader(header(name, size)) != nil
}

func (w *rewriter) Write(p []byte) (int, error) {
	if !w.failed {
		_, err := w.tar.Write(p)
		w.failed = err != nil
	}
	return len(p), nil
}

// close returns the digest of the archive that our own writer writes, or nil.
func (w *rewriter) close() []byte {
	if w.failed || w.tar.Close() != nil {
		return nil
	}
	return w.digest.Sum(nil)
}

// boundedReader ends a stream whose size exceeds the allowed ratio.
type boundedReader struct {
	r io.Reader
	v *verification
	n int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	if b.n > b.v.limits.bytes {
		return 0, fmt.Errorf("more than %d bytes uncompressed", b.v.limits.bytes)
	}
	if b.n > ratioFloor && b.n / *b.v.compressed > b.v.limits.ratio && !b.v.own() {
		return 0, fmt.Errorf("uncompresses to more than %d times its size", b.v.limits.ratio)
	}
	return n, err
}

// own reports whether the log, which comes first in our archives, showed that the bundle is of
// our own dialect. Its open row lists the size of everything that follows.
func (v *verification) own() bool { return v.log != nil && v.log.opening != nil }

// onlyZeros reads the padding at an archive's end.
func onlyZeros(r io.Reader) error {
	buffer := make([]byte, 4096)
	for {
		n, err := r.Read(buffer)
		if bytes.ContainsFunc(buffer[:n], func(c rune) bool { return c != 0 }) {
			return errors.New("data that is not padding")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// entry reads one entry of the archive to its end.
func (v *verification) entry(h *tar.Header, in io.Reader, out *rewriter) error {
	if v.entries++; v.entries > v.limits.members {
		return said(saysTooMany, v.limits.members)
	}
	name, err := safeName(h)
	if err != nil || name == "" {
		return err
	}
	if h.Size > v.limits.bytes {
		return fmt.Errorf("%q: %d bytes, more than %d", name, h.Size, v.limits.bytes)
	}
	lower := folded(name)
	if v.seen[lower] {
		return &saying{saysNamesTwice, fmt.Errorf("%q", name)}
	}
	v.seen[lower] = true
	v.order = append(v.order, name)
	out.next(name, h.Size)

	digest := sha256.New()
	r := io.TeeReader(io.TeeReader(in, out), digest)
	if v.options.File != nil {
		if w := v.options.File(name); w != nil {
			r = io.TeeReader(r, w)
		}
	}
	small := int64(v.limits.smallKiB) << 10
	if name == attestationFile { // it has a line for each file
		small += int64(v.limits.members) * (maxName + subjectFrame)
	}
	switch {
	case name == logFile:
		v.log = newLogCheck(v.options.Row)
		err = v.eachLine(name, r, v.log.line)
	case name == TracesMember && v.log != nil && v.log.traced:
		err = v.eachLine(name, r, v.log.traceLine)
	case slices.Contains(draftFiles, name) && h.Size > small:
		err = &faultIn{name, said(saysTooLarge, small)}
	case slices.Contains(draftFiles, name):
		v.small[name], err = io.ReadAll(r)
	case name == SessionMember && v.own() && h.Size <= small:
		v.verdict, err = io.ReadAll(r)
	default:
		if name == SessionMember && v.own() {
			v.over = small
		}
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return err
	}
	v.files[name] = fileDigest{size: h.Size, sha256: hex.EncodeToString(digest.Sum(nil))}
	return nil
}

// folded returns a name with the letters A to Z in lower case: some file systems fold case. What they make of
// other letters differs, and so does what programming languages do.
func folded(name string) string {
	lower := []byte(name)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + ('a' - 'A')
		}
	}
	return string(lower)
}

// withinFile reports whether one of the folders of a name is a file: then no directory can hold both.
func withinFile(name string, isFile func(folder string) bool) bool {
	for i, c := range []byte(name) {
		if c == '/' && isFile(name[:i]) {
			return true
		}
	}
	return false
}

// subjectFrame is how many bytes one file takes in an attestation, without its name.
const subjectFrame = 256

func (v *verification) eachLine(name string, r io.Reader, take func(line []byte, ended bool)) error {
	if err := eachLine(r, v.limits.line, take); err != nil {
		return &faultIn{name, err}
	}
	return nil
}

// safeName returns an entry's name below the root, or "" for a directory. It refuses everything
// that could leave the root or is not plain data.
func safeName(h *tar.Header) (string, error) {
	if len(h.Name) > maxName {
		return "", fmt.Errorf("%.80q…: a name longer than %d bytes", h.Name, maxName)
	}
	name := strings.TrimPrefix(h.Name, "./")
	directory := h.Typeflag == tar.TypeDir
	if directory && h.Size == 0 && (h.Name == "." || h.Name == "./") {
		return "", nil // the directory that contains the root
	}
	if directory {
		name = strings.TrimSuffix(name, "/") + "/"
	}
	sparse := false // it claims to be bigger than it is
	for record := range h.PAXRecords {
		sparse = sparse || strings.HasPrefix(record, "GNU.sparse.")
	}
	// Readers disagree whether a directory with a size has content, and whether a file can have the name of a directory.
	deceiving := directory && h.Size != 0 || !directory && strings.HasSuffix(name, "/")
	if (h.Typeflag != tar.TypeReg && !directory) || sparse || deceiving {
		return "", &faultIn{strings.TrimPrefix(name, root), said(saysNotPlain)}
	}
	below, ok := strings.CutPrefix(name, root)
	clean := path.Clean("/" + below)[1:]
	if !ok || strings.ContainsAny(below, "\\\x00") || clean != strings.TrimSuffix(below, "/") || (clean == "" && !directory) {
		return "", fmt.Errorf("%q: not a plain path below %s", h.Name, root)
	}
	if directory {
		return "", nil
	}
	return clean, nil
}
