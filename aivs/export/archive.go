package export

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs"
)

// Archive is what is written.
type Archive struct {
	Range        Range
	Bundles      []Bundle // of the range, and the other parts of their sessions
	Missing      []Missing
	MissingKnown bool   // Missing has everything of the range that the operator's database has in no bundle
	KeyList      []byte // keys.jsonl; nil if there is none

	// Key signs the index. It is nil if the index has no signature: then whoever passes the archive
	// on can leave out bundles together with their entries.
	Key ed25519.PrivateKey
}

// The names within the archive.
const (
	folder        = "plumbline-export/"
	bundleFolder  = "bundles/"
	pageFolder    = "reports/"
	indexName     = "index.json"
	textName      = "index.txt"
	signatureName = "index.sig"
	keysName      = "keys.jsonl"
	readmeName    = "README.txt"
	allName       = "verify_all.py"
	verifierName  = "verify.py"
)

//go:embed verify_all.py
var verifyAll []byte

//go:embed README.txt
var readme []byte

// Write writes the archive as a tar file, and returns its index. The index comes last: it has the
// digest of every other file.
func (a *Archive) Write(w io.Writer) (*Index, error) {
	a.nameInUTF8()
	x := a.index()
	out := &writer{tar: tar.NewWriter(w)}
	out.bytes(readmeName, readme)
	out.bytes(allName, verifyAllOf(aivs.VerifierScript()))
	out.bytes(verifierName, aivs.VerifierScript())
	out.bytes(textName, []byte(x.text()))
	if a.KeyList != nil {
		out.bytes(keysName, a.KeyList)
	}
	for i := range a.Bundles {
		b := &a.Bundles[i]
		out.bundle(b)
		for _, f := range b.SideFiles {
			out.bytes(bundleFolder+b.Name+f.Suffix, f.Data)
		}
		if b.Page != nil && out.err == nil {
			page, err := b.Page()
			if out.bytes(pageFolder+b.Name+".html", page); out.err == nil {
				out.err = err
			}
		}
	}
	if x.Files = out.files; out.err == nil {
		out.err = out.index(x, a.Key)
	}
	if out.err == nil {
		out.err = out.tar.Close()
	}
	if out.err != nil {
		return nil, fmt.Errorf("export: %w", out.err)
	}
	return x, nil
}

// nameInUTF8 gives a bundle whose name is not UTF-8 another one in the archive: JSON has no other text, and the
// index must name each file. A byte that is no UTF-8 becomes a percent sign and two hexadecimal digits.
func (a *Archive) nameInUTF8() {
	taken := map[string]bool{}
	for i := range a.Bundles {
		taken[a.Bundles[i].Name] = true
	}
	for i := range a.Bundles {
		b := &a.Bundles[i]
		if utf8.ValidString(b.Name) {
			continue
		}
		var name []byte
		for rest := b.Name; rest != ""; {
			r, size := utf8.DecodeRuneInString(rest)
			if r == utf8.RuneError && size == 1 {
				name = fmt.Appendf(name, "%%%02X", rest[0])
			} else {
				name = append(name, rest[:size]...)
			}
			rest = rest[size:]
		}
		b.Name = string(name)
		for taken[b.Name] {
			b.Name = strings.TrimSuffix(b.Name, ".tar.gz") + "%.tar.gz"
		}
		taken[b.Name] = true
	}
}

// verifyAllOf returns verify_all.py, which runs no other verify.py than this one. So whoever trusts
// that one file can trust the two.
func verifyAllOf(verifier []byte) []byte {
	sum := sha256.Sum256(verifier)
	return bytes.Replace(verifyAll, []byte("\nVERIFIER = \"\""), fmt.Appendf(nil, "\nVERIFIER = \"%x\"", sum), 1)
}

// index writes the index, and its signature if there is a key.
func (w *writer) index(x *Index, key ed25519.PrivateKey) error {
	text, err := json.Marshal(x, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("the index: %w", err)
	}
	text = append(text, '\n')
	w.bytes(indexName, text)
	if key == nil {
		return w.err
	}
	signed, err := json.Marshal(signature{
		PublicKey: hex.EncodeToString(key.Public().(ed25519.PublicKey)),
		Signature: base64.StdEncoding.EncodeToString(ed25519.Sign(key, append([]byte(indexType+"\n"), text...))),
	})
	w.bytes(signatureName, append(signed, '\n'))
	return errors.Join(err, w.err)
}

// signature is index.sig: a signature over the type of the index, a line feed, and index.json. No
// other signature of Plumbline is over bytes that begin like this.
type signature struct {
	PublicKey string `json:"public_key"` // 64 hexadecimal digits
	Signature string `json:"signature"`  // Ed25519, in base64
}

// writer writes entries whose headers depend on nothing but their names and sizes. It keeps the
// first error, and the digest of each file that is not a bundle.
type writer struct {
	tar   *tar.Writer
	files []File
	err   error
}

func (w *writer) header(name string, size int64) {
	if w.err == nil {
		w.err = w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: folder + name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0)})
	}
}

func (w *writer) bytes(name string, data []byte) {
	w.header(name, int64(len(data)))
	if w.err == nil {
		_, w.err = w.tar.Write(data)
	}
	sum := sha256.Sum256(data)
	w.files = append(w.files, File{Name: name, SHA256: hex.EncodeToString(sum[:])})
}

// bundle writes a bundle whose bytes are those that were verified.
func (w *writer) bundle(b *Bundle) {
	w.header(bundleFolder+b.Name, b.Size)
	if w.err != nil {
		return
	}
	in, err := b.Open()
	if err != nil {
		w.err = err
		return
	}
	digest := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, digest), io.LimitReader(in, b.Size+1))
	_ = in.Close() // it was only read
	switch {
	case err != nil:
		w.err = fmt.Errorf("%s: %w", b.Name, err)
	case n != b.Size || hex.EncodeToString(digest.Sum(nil)) != b.Report.SHA256:
		w.err = fmt.Errorf("%s was changed while it was exported: run the command again", b.Name)
	}
}
