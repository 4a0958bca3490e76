package aivs

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/gzip"

	"github.com/plumbline/plumbline/schema"
)

// Options configures what a verification requires beyond an intact bundle.
type Options struct {
	Keys             []ed25519.PublicKey // the signer must be one of these; empty: any
	RequireSignature bool                // implied by Keys and Signer
	Signer           Signer              // where set, it decides which key may have signed, instead of Keys
	Row              func(*Row)          // where set, called in order with each row that passes the checks, while the bundle is read

	// File, where set, is called with the name of each file below session_proof/ while the bundle is
	// read. The content is written to the writer that it returns, if there is one, before anything is
	// known about it. The writer must not fail.
	File func(name string) io.Writer

	limits limits // zero fields: defaultLimits; only tests set it
}

// Signer returns nil if a key may have signed a bundle with this export time; otherwise the error
// says why not.
type Signer func(key ed25519.PublicKey, exportedAt time.Time) error

// limits bound the resources that a hostile archive can use.
type limits struct {
	bytes    int64 // of the uncompressed archive
	ratio    int64 // uncompressed to compressed, checked after 64 MiB; not for our own dialect
	members  int   // entries of the archive
	line     int   // bytes of one row or trace
	smallKiB int   // of each of the draft's small files
}

// defaultLimits allow a session of about a million rows. Hashes hardly compress, so a log stays
// far below the ratio; repetitive traces may reach it.
var defaultLimits = limits{bytes: 32 << 30, ratio: 250, members: 10_000, line: 16 << 20, smallKiB: 256}

// orDefault returns the limits with defaults for those that are not set.
func (l limits) orDefault() limits {
	d := defaultLimits
	return limits{cmp.Or(l.bytes, d.bytes), cmp.Or(l.ratio, d.ratio), cmp.Or(l.members, d.members), cmp.Or(l.line, d.line), cmp.Or(l.smallKiB, d.smallKiB)}
}

// Verify reads a .tar.gz and checks everything that can be checked (draft section 7 and beyond).
// It runs nothing from the bundle and writes nothing. Faults of the bundle are in the report; the
// error is only that of reading r. Where a row was changed and r can seek, Verify reads r again
// to find out which row.
func Verify(r io.Reader, options Options) (*Report, error) {
	seeker, canSeek := r.(io.ReadSeeker)
	var start int64
	if canSeek {
		var err error
		start, err = seeker.Seek(0, io.SeekCurrent)
		canSeek = err == nil
	}
	source := &sourceReader{r: r}
	v := newVerification(options)
	v.compressed = &source.n
	digest := sha256.New()
	compressed := bufio.NewReaderSize(io.TeeReader(source, digest), 64<<10)
	v.gunzip(compressed)
	if source.err == nil { // the digest covers the whole file, whatever it contains
		_, source.err = io.Copy(io.Discard, compressed)
	}
	if source.err != nil {
		return nil, fmt.Errorf("read bundle: %w", source.err)
	}
	v.report.SHA256 = hex.EncodeToString(digest.Sum(nil))
	report := v.conclude()
	if !canSeek || !v.changed {
		return report, nil
	}
	located, err := v.locate(seeker, start)
	if err != nil {
		return nil, fmt.Errorf("read bundle again: %w", err)
	}
	if len(located) > 0 && v.log.unsealed {
		report.Faults = nil // replace the fault of the seal: the seal detected the change, but is not what was changed
	}
	report.Faults = append(located, report.Faults...)
	return report, nil
}

// sourceReader counts the bytes read. It keeps the source's own error apart from errors of the
// formats read from it.
type sourceReader struct {
	r   io.Reader
	n   int64
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// verification is the state of verifying one bundle. The archive is read once, in its own order.
// At the end, its files are compared with each other.
type verification struct {
	options    Options
	limits     limits
	report     *Report
	compressed *int64 // bytes of the source read so far

	entries int                   // entries of the archive, including directories
	small   map[string][]byte     // the draft's small files by name
	files   map[string]fileDigest // every file
	order   []string              // all files, in archive order
	seen    map[string]bool       // the names of all files, folded
	log     *logCheck             // nil until audit_log.jsonl was read

	signature string // of session_sig.txt, in base64; empty where it has none

	header    string // the beginning of the gzip layer
	unpacked  int64  // bytes of the archive
	canonical bool   // the archive is byte for byte what our writer writes

	verdict []byte // session.json of our own dialect
	over    int64  // the bound that it exceeds; 0: none
	changed bool   // the log is not what was sealed or signed, or somebody else signed it
}

type fileDigest struct {
	size   int64
	sha256 string
}

func newVerification(options Options) *verification {
	return &verification{options: options, limits: options.limits.orDefault(), report: newReport(),
		small: map[string][]byte{}, files: map[string]fileDigest{}, seen: map[string]bool{}}
}

// gunzip opens the outer layer: one gzip member with nothing after it.
func (v *verification) gunzip(compressed *bufio.Reader) {
	first, _ := compressed.Peek(len(gzipHeader)) // an error shows again below
	v.header = string(first)
	z, err := gzip.NewReader(compressed)
	if err != nil {
		v.report.Fault(archivePlace, "not a gzip file: %v", err)
		return
	}
	z.Multistream(false)
	if !v.untar(z) {
		return
	}
	if _, err := compressed.ReadByte(); !errors.Is(err, io.EOF) {
		v.report.Fault(archivePlace, "data follows the end of the archive")
	}
}

// conclude compares the files with each other and returns the report.
func (v *verification) conclude() *Report {
	r := v.report
	if len(r.Faults) == 0 {
		v.crossCheck()
	}
	if r.Intact = len(r.Faults) == 0; !r.Intact {
		r.Passed = []string{}
	}
	if r.Intact && v.log.opening != nil {
		r.VerdictOver = v.over
	}
	if r.Intact && v.log.opening != nil && v.verdict != nil {
		r.Verdict = parseVerdict(v.verdict)
	}
	return r
}

func (v *verification) crossCheck() {
	r := v.report
	if v.log == nil {
		r.fault(logFile, said(saysMissing))
		return
	}
	r.Rows, r.SessionID, r.ChainHash = v.log.chain.Rows(), v.log.session, v.log.chain.Hash()
	r.Dialect, r.Opening = v.log.dialect(), v.log.opening
	if r.Opening != nil {
		r.SessionID = r.Opening.SessionID
	}
	if fault := v.log.fault; fault != nil {
		v.changed = v.log.unsealed || v.log.unlinked
		r.Faults = append(r.Faults, *fault)
		return
	}
	r.pass(saysPassChain, r.Rows)
	v.checkManifest()
	if len(r.Faults) == 0 {
		r.pass(saysPassManifest)
	}
	v.checkSignature()
	if r.Opening != nil {
		r.PreviousBundleHash = r.Opening.PreviousBundleHash
		v.checkOwn(r.Opening)
	} else if text, present := v.small[previousFile]; present { // draft section 5.4
		if digest := string(bytes.Trim(text, " \t\r\n")); hexDigest.MatchString(digest) {
			r.PreviousBundleHash = digest
		} else {
			r.fault(previousFile, said(saysNotSHA256))
		}
	}
	v.checkAttestation()

	// What the signature covers, and what nothing covers.
	covered := []string{CoversRows, CoversInputs, CoversOutputs, CoversErrors, CoversFiles}
	if _, attestation := v.small[attestationFile]; r.Opening == nil && !attestation { // an invalid attestation is a fault already
		covered = v.log.covered()
		for _, what := range v.log.uncovered() {
			r.Skip(what)
		}
		r.Skip(saysNoFiles)
	}
	if r.Signature == SignatureValid && len(r.Faults) == 0 {
		r.Covered = covered
	}
}

// checkSignature checks draft section 7.2: whether the signature is over this log, by the key in
// the bundle, and by a key that may have signed.
func (v *verification) checkSignature() {
	r, options := v.report, &v.options
	chainHash, signed, err := signatureLines(v.small[signatureName])
	v.signature = signed
	switch {
	case err != nil:
		r.fault(signatureName, err)
		return
	case chainHash != "" && chainHash != r.ChainHash:
		v.changed = true
		r.fault(signatureName, said(saysLogChanged))
		return
	case signed == "" && (options.RequireSignature || options.Signer != nil || len(options.Keys) > 0 || r.Opening != nil && r.Opening.KeyID != ""):
		r.Signature, v.changed = SignatureAbsent, true
		r.fault(signatureName, said(saysUnsigned))
		return
	case signed == "":
		r.Signature = SignatureAbsent
		r.Skip(saysNoSignature)
		return
	}

	r.Signature = SignatureInvalid
	text, present := v.small[keyFile]
	key, err := readPublicKey(text)
	switch {
	case !present:
		err = said(saysMissing)
	case err == nil && key == nil:
		err = said(saysNoKey)
	}
	if err != nil {
		r.fault(keyFile, err)
		return
	}
	r.PublicKey, r.KeyID = hex.EncodeToString(key), KeyID(key)
	signature, ok := strictBase64(signed)
	if !ok || len(signature) != ed25519.SignatureSize {
		r.fault(signatureName, said(saysNotBase64))
		return
	}
	if !ed25519.Verify(key, []byte(r.ChainHash), signature) {
		v.changed = true
		r.fault(signatureName, said(saysWrong))
		return
	}
	r.Signature, r.SignatureBytes = SignatureValid, signature
	r.pass(saysPassSignature, r.PublicKey)
	var m struct {
		ExportedAt schema.Time `json:"exported_at"`
	}
	if json.Unmarshal(v.small[manifestFile], &m) == nil {
		r.ExportedAt = m.ExportedAt.Time
	}

	switch {
	case options.Signer != nil && r.ExportedAt.IsZero():
		r.Fault(manifestFile, "exported_at is not a time, so it is unknown whether the key was valid then")
	case options.Signer != nil:
		if err := options.Signer(key, r.ExportedAt); err != nil {
			v.changed = true
			r.Fault(keyFile, "%v", err)
			return
		}
		r.KeyPinned = true
	case len(options.Keys) == 0:
		r.Skip(saysNoSigner)
	case slices.ContainsFunc(options.Keys, func(pinned ed25519.PublicKey) bool { return pinned.Equal(key) }):
		r.KeyPinned = true
	default:
		v.changed = true
		r.fault(keyFile, said(saysStranger, r.PublicKey))
	}
	if r.KeyPinned {
		r.pass(saysPassSigner)
	}
}

// signatureLines reads session_sig.txt (draft section 4.3). A text is empty where its line is
// absent.
func signatureLines(text []byte) (chainHash, signature string, err error) {
	seen := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, found := strings.Cut(line, ":")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		if _, twice := seen[name]; twice {
			return "", "", said(saysTwoLines, quoted(name))
		}
		seen[name] = strings.Trim(value, " \t\r")
	}
	chainHash, hashed := seen["chain_hash"]
	signature, signed := seen["signature"]
	if signed && signature == "" || (signed || hashed) && chainHash == "" {
		return "", "", said(saysEmptySigned)
	}
	return chainHash, signature, nil
}
