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
	"slices"
	"sync"
)

// verifier is the verify.py that every bundle carries (draft section 5.3).
//
//go:embed verify.py
var verifier []byte

// verifierDigest is its SHA-256.
var verifierDigest = hexSHA256(verifier)

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
	err := in.check()
	var bundle *Bundle
	if err == nil {
		bundle, err = write(w, in, key)
	}
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return bundle, nil
}

// write is Write for an input that was checked.
func write(w io.Writer, in *Input, key ed25519.PrivateKey) (*Bundle, error) {
	open, err := in.opening(key)
	if err != nil {
		return nil, err
	}

	// The first pass over the rows gives the chain, on which the small files depend.
	pooled := logs.Get().(*[]byte)
	first := spool{kept: slices.Grow((*pooled)[:0], int(min(keptLog, in.TraceCount<<11)))} // few rows are longer
	defer func() {
		if cap(first.kept) <= pooledLog {
			*pooled = first.kept
			logs.Put(pooled)
		}
	}()
	chain, err := writeLog(&first, in, open)
	if err != nil {
		return nil, err
	}
	manifest, err := open.manifest(chain.Rows(), chain.Hash())
	if err != nil {
		return nil, err
	}

	// All files in the canonical order: the draft's files, the members, the attestation.
	digest, size := sha256.New(), new(counter)
	a := newArchive(io.MultiWriter(w, digest, size))
	if first.whole() {
		a.bytes(logFile, first.kept)
	} else {
		a.stream(logFile, first.size, func(w io.Writer) error {
			again, err := writeLog(w, in, open)
			if err == nil && again.Hash() != chain.Hash() { // the seal is a row too: its hash covers the contents of all others
				err = errors.New("the rows differ between the two passes")
			}
			return err
		})
	}
	var public ed25519.PublicKey
	if key != nil {
		public = key.Public().(ed25519.PublicKey)
	}
	a.bytes(manifestFile, manifest)
	a.bytes(keyFile, publicKeyFile(public))
	a.bytes(signatureName, signatureFile(key, chain.Hash()))
	a.verifier()
	if open.PreviousBundleHash != "" {
		a.bytes(previousFile, []byte(open.PreviousBundleHash))
	}
	for i := range in.Members {
		m, listed := &in.Members[i], open.Members[i+1] // the first listed is verify.py
		if m.Open == nil {
			a.digested(m.Name, m.Data, listed.SHA256)
			continue
		}
		sum := a.stream(m.Name, listed.Bytes, func(w io.Writer) error {
			_, err := m.copyTo(w)
			return err
		})
		if a.err == nil && sum != listed.SHA256 {
			a.err = fmt.Errorf("member %s differs between the two passes", m.Name)
		}
	}
	if key != nil {
		payload, err := payloadOf(a.files, open.predicate(chain.Rows(), chain.Hash()))
		if err != nil {
			return nil, err
		}
		text, err := attest(key, payload)
		if err != nil {
			return nil, err
		}
		a.bytes(attestationFile, text)
	}
	if err := a.close(); err != nil {
		return nil, err
	}
	return &Bundle{FileName: FileName(in.SessionID, in.ExportedAt), Size: size.n,
		SHA256: hex.EncodeToString(digest.Sum(nil)), ChainHash: chain.Hash(), Rows: chain.Rows()}, nil
}

// opening returns the contents of the open row.
func (in *Input) opening(key ed25519.PrivateKey) (*Opening, error) {
	open := &Opening{SessionID: in.SessionID, AgentID: in.AgentID, ExportedAt: exportedAt(in.ExportedAt),
		Part: in.Part, LastPart: in.LastPart, TraceCount: in.TraceCount, Redactions: in.Redactions,
		OptionalRedactions: in.OptionalRedactions, Generator: in.Generator, GeneratorURL: in.GeneratorURL,
		PreviousBundleHash: in.PreviousBundleSHA256}
	if key != nil {
		open.KeyID = KeyID(key.Public().(ed25519.PublicKey))
	}
	open.Members = append(open.Members, Listed{Name: verifierFile, Bytes: int64(len(verifier)), SHA256: verifierDigest})
	for _, m := range in.Members {
		digest := sha256.New()
		size, err := m.copyTo(digest)
		if err != nil {
			return nil, err
		}
		open.Members = append(open.Members, Listed{Name: m.Name, Bytes: size, SHA256: hex.EncodeToString(digest.Sum(nil))})
	}
	return open, nil
}

// writeLog writes audit_log.jsonl and returns its chain.
func writeLog(w io.Writer, in *Input, opening *Opening) (*Chain, error) {
	chain, session := NewChain(), Encode(in.SessionID)
	var line []byte
	write := func(r *Row) error {
		r.SessionID = session
		chain.Link(r)
		line = append(r.AppendJSON(line[:0]), '\n')
		_, err := w.Write(line)
		return err
	}
	open, err := opening.row()
	if err != nil {
		return nil, err
	}
	if err := write(&open); err != nil {
		return nil, err
	}
	for row, err := range in.Rows {
		if err == nil {
			err = row.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", chain.Rows()+1, err)
		}
		linked := *row
		linked.ActionType, linked.ToolName = Encode(row.ActionType), Encode(row.ToolName)
		if err := write(&linked); err != nil {
			return nil, err
		}
	}
	if n := chain.Rows() - 1; n != in.TraceCount {
		return nil, fmt.Errorf("%d rows, but the plan's trace count is %d", n, in.TraceCount)
	}
	return chain, write(&Row{ActionType: ActionSeal, ToolName: sealTool + chain.Content(),
		InputsJSON: "{}", OutputsJSON: "{}", Timestamp: open.Timestamp})
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

// logs pools the memory of short logs. pooledLog is the capacity of the longest.
var logs = sync.Pool{New: func() any { return new([]byte) }}

const pooledLog = 1 << 20

// whole reports whether everything written is kept.
func (s *spool) whole() bool { return s.size <= keptLog }

// counter counts the bytes written to it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
