package aivs

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// verifier is the verify.py that every bundle carries (draft section 5.3).
//
//go:embed verify.py
var verifier []byte

// VerifierScript returns a copy of the embedded verify.py.
func VerifierScript() []byte { return bytes.Clone(verifier) }

// Bundle describes a bundle that was written.
type Bundle struct {
	FileName  string
	Bytes     []byte // the .tar.gz; nil from Write
	Size      int64  // of the .tar.gz
	SHA256    string // of the .tar.gz; the next bundle's PreviousBundleSHA256
	ChainHash string
	Rows      int64 // includes the open and seal rows
}

// Build makes a bundle in memory. See Write.
func Build(in *Input, key ed25519.PrivateKey) (*Bundle, error) {
	var buffer bytes.Buffer
	bundle, err := Write(&buffer, in, key)
	if err != nil {
		return nil, err
	}
	bundle.Bytes = buffer.Bytes()
	return bundle, nil
}

// Write makes a bundle from in alone: the same input and key give the same bytes. Beyond keptLog,
// its memory does not grow with the size of the log. A nil key makes an unsigned bundle (draft
// section 4.4). After an error, the bytes already written to w are not a bundle.
func Write(w io.Writer, in *Input, key ed25519.PrivateKey) (*Bundle, error) {
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	b := &builder{in: in}
	b.first.kept = make([]byte, 0, min(keptLog, in.TraceCount<<11)) // few rows are longer
	if err := b.opening(key); err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	var err error
	if b.chain, err = b.log(&b.first); err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	bundle, err := b.archive(w, key)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return bundle, nil
}

// builder makes one bundle in two steps. It first measures and chains the log, which gives the
// contents of all small files. It then writes all files in order.
type builder struct {
	in    *Input
	open  Opening
	chain *Chain // of the first pass over the rows
	first spool  // the log that the first pass wrote
}

// keptLog is the largest log that is kept in memory after the first pass. A longer log is
// generated a second time. Tests make it smaller.
var keptLog int64 = 64 << 20

// spool counts the bytes written to it. It keeps them until there are more than keptLog.
type spool struct {
	size int64
	kept []byte
}

func (s *spool) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	if s.whole() {
		s.kept = append(s.kept, p...)
	} else {
		s.kept = nil
	}
	return len(p), nil
}

// whole reports whether everything written is kept.
func (s *spool) whole() bool { return s.size <= keptLog }

// opening fills in the contents of the open row.
func (b *builder) opening(key ed25519.PrivateKey) error {
	in := b.in
	b.open = Opening{SessionID: in.SessionID, AgentID: in.AgentID, ExportedAt: exportedAt(in.ExportedAt),
		Part: in.Part, LastPart: in.LastPart, TraceCount: in.TraceCount, Redactions: in.Redactions,
		OptionalRedactions: in.OptionalRedactions, Generator: in.Generator, GeneratorURL: in.GeneratorURL,
		PreviousBundleHash: in.PreviousBundleSHA256}
	if key != nil {
		b.open.KeyID = KeyID(key.Public().(ed25519.PublicKey))
	}
	for _, m := range append([]Member{{Name: verifierFile, Data: verifier}}, in.Members...) {
		listed, err := m.list()
		if err != nil {
			return err
		}
		b.open.Members = append(b.open.Members, listed)
	}
	return nil
}

// log writes audit_log.jsonl and returns its chain.
func (b *builder) log(w io.Writer) (*Chain, error) {
	l := logWriter{out: w, session: Encode(b.in.SessionID), chain: NewChain()}
	open, err := b.open.row()
	if err != nil {
		return nil, err
	}
	if err := l.write(&open); err != nil {
		return nil, err
	}
	if err := l.actions(b.in); err != nil {
		return nil, err
	}
	seal := Row{ActionType: ActionSeal, ToolName: sealTool + l.chain.Content(),
		InputsJSON: "{}", OutputsJSON: "{}", Timestamp: open.Timestamp}
	return l.chain, l.write(&seal)
}

// logWriter links rows to the chain and writes them.
type logWriter struct {
	out     io.Writer
	session string
	chain   *Chain
	line    []byte
}

func (l *logWriter) write(r *Row) error {
	r.SessionID = l.session
	l.chain.Link(r)
	l.line = append(r.AppendJSON(l.line[:0]), '\n')
	_, err := l.out.Write(l.line)
	return err
}

// actions writes the rows between open and seal.
func (l *logWriter) actions(in *Input) error {
	for row, err := range in.Rows {
		if err == nil {
			err = row.Check()
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", l.chain.Rows()+1, err)
		}
		linked := *row
		linked.ActionType, linked.ToolName = Encode(row.ActionType), Encode(row.ToolName)
		if err := l.write(&linked); err != nil {
			return err
		}
	}
	if n := l.chain.Rows() - 1; n != in.TraceCount {
		return fmt.Errorf("%d rows, but the plan's trace count is %d", n, in.TraceCount)
	}
	return nil
}

// archive writes all files in the canonical order: the draft's files, then the members.
func (b *builder) archive(w io.Writer, key ed25519.PrivateKey) (*Bundle, error) {
	digest, size := sha256.New(), new(counter)
	a := newArchive(io.MultiWriter(w, digest, size))
	if err := b.draftFiles(a, key); err != nil {
		return nil, err
	}
	if err := b.members(a); err != nil {
		return nil, err
	}
	if err := b.attestation(a, key); err != nil {
		return nil, err
	}
	if err := a.close(); err != nil {
		return nil, err
	}
	return &Bundle{FileName: FileName(b.in.SessionID, b.in.ExportedAt), Size: size.n,
		SHA256: hex.EncodeToString(digest.Sum(nil)), ChainHash: b.chain.Hash(), Rows: b.chain.Rows()}, nil
}

func (b *builder) draftFiles(a *archive, key ed25519.PrivateKey) error {
	if err := b.writeLog(a); err != nil {
		return err
	}
	chainHash := b.chain.Hash()
	manifest, err := b.open.manifest(b.chain.Rows(), chainHash)
	if err != nil {
		return err
	}
	var public ed25519.PublicKey
	if key != nil {
		public = key.Public().(ed25519.PublicKey)
	}
	small := []Member{{Name: manifestFile, Data: manifest}, {Name: keyFile, Data: publicKeyFile(public)},
		{Name: signatureName, Data: signatureFile(key, chainHash)}, {Name: verifierFile, Data: verifier}}
	if b.open.PreviousBundleHash != "" {
		small = append(small, Member{Name: previousFile, Data: []byte(b.open.PreviousBundleHash)})
	}
	for _, file := range small {
		if err := a.bytes(file.Name, file.Data); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) writeLog(a *archive) error {
	if b.first.whole() {
		return a.bytes(logFile, b.first.kept)
	}
	return a.file(logFile, b.first.size, b.sameLog)
}

// sameLog writes the log a second time and fails if it differs from the first pass.
func (b *builder) sameLog(w io.Writer) error {
	again, err := b.log(w)
	if err != nil {
		return err
	}
	if again.Hash() != b.chain.Hash() { // the seal is a row too: its hash covers the contents of all others
		return errors.New("the rows differ between the two passes")
	}
	return nil
}

// attestation writes the sidecar over all files written before it.
func (b *builder) attestation(a *archive, key ed25519.PrivateKey) error {
	if key == nil {
		return nil
	}
	payload, err := payloadOf(a.files, b.open.predicate(b.chain.Rows(), b.chain.Hash()))
	if err != nil {
		return err
	}
	text, err := attest(key, payload)
	if err != nil {
		return err
	}
	return a.bytes(attestationFile, text)
}

// members writes the further files and fails unless they match the list in the open row.
func (b *builder) members(a *archive) error {
	for i := range b.in.Members {
		m, listed := &b.in.Members[i], b.open.Members[i+1] // the first listed is verify.py
		if m.Open == nil {
			if err := a.digested(m.Name, m.Data, listed.SHA256); err != nil {
				return err
			}
			continue
		}
		err := a.file(m.Name, listed.Bytes, func(w io.Writer) error {
			_, err := m.copyTo(w)
			return err
		})
		if err != nil {
			return err
		}
		if a.files[len(a.files)-1].sha256 != listed.SHA256 {
			return fmt.Errorf("member %s differs between the two passes", m.Name)
		}
	}
	return nil
}

// counter counts the bytes written to it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
