package anchor

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// ProofSuffix is appended to the bundle's file name to form the name of its proof.
const ProofSuffix = ".tlog-proof"

// MaxProof is the longest accepted text of a proof.
const MaxProof = maxCheckpoint + 8<<10

const (
	proofType = "c2sp.org/tlog-proof@v1"
	maxHashes = 63 // the height of a tree of 2^63 leaves
)

// Proof proves that a leaf is in a log.
type Proof struct {
	Index      int64 // of the leaf, from 0
	Hashes     tlog.RecordProof
	Checkpoint []byte // signed
}

// Text returns the proof in the form c2sp.org/tlog-proof@v1.
func (p *Proof) Text() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nindex %d\n", proofType, p.Index)
	for _, hash := range p.Hashes {
		fmt.Fprintf(&b, "%s\n", hash)
	}
	fmt.Fprintf(&b, "\n%s", p.Checkpoint)
	return []byte(b.String())
}

// ParseProof reads a proof. It ignores extra data in it, which nothing authenticates.
func ParseProof(text []byte) (*Proof, error) {
	if len(text) > MaxProof {
		return nil, fmt.Errorf("proof of inclusion: %d bytes, want at most %d", len(text), MaxProof)
	}
	head, checkpoint, found := strings.Cut(string(text), "\n\n")
	lines := strings.Split(head, "\n")
	if !found || lines[0] != proofType {
		return nil, fmt.Errorf("proof of inclusion: not in the form %s", proofType)
	}
	lines = lines[1:]
	if len(lines) > 0 && strings.HasPrefix(lines[0], "extra ") {
		lines = lines[1:]
	}
	if len(lines) == 0 || len(lines)-1 > maxHashes {
		return nil, errors.New("proof of inclusion: no index, or more hashes than a tree is high")
	}
	p := &Proof{Checkpoint: []byte(checkpoint)}
	digits, isIndex := strings.CutPrefix(lines[0], "index ")
	index, err := strconv.ParseInt(digits, 10, 64)
	if !isIndex || err != nil || index < 0 || strconv.FormatInt(index, 10) != digits {
		return nil, fmt.Errorf("proof of inclusion: %.40q is not an index", lines[0])
	}
	p.Index = index
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return nil, fmt.Errorf("proof of inclusion: %.80q is not a hash", line)
		}
		p.Hashes = append(p.Hashes, hash)
	}
	return p, nil
}

// Verify returns an error unless the proof shows that the leaf is in the log with this key. It
// returns the checkpoint that the proof is under.
func (p *Proof) Verify(leaf []byte, log note.Verifier) (*Checkpoint, error) {
	c, err := OpenCheckpoint(p.Checkpoint, log)
	if err != nil {
		return nil, err
	}
	if p.Index >= c.Size {
		return nil, fmt.Errorf("proof of inclusion: leaf %d of a log of %d", p.Index, c.Size)
	}
	if err := tlog.CheckRecord(p.Hashes, c.Size, c.Root, p.Index, tlog.RecordHash(leaf)); err != nil {
		return nil, fmt.Errorf("proof of inclusion: the log does not hold this bundle at %d: %w", p.Index, err)
	}
	return c, nil
}

// leafType is the first line of a leaf.
const leafType = "aivs-bundle/v1"

// Leaf returns the log entry of a bundle, three lines:
//
//	aivs-bundle/v1
//	<session id, '%' and control characters percent-encoded>
//	<SHA-256 of the .tar.gz, 64 hexadecimal digits>
func Leaf(sessionID, sha256 string) ([]byte, error) {
	if b, err := hex.DecodeString(sha256); err != nil || len(b) != 32 || strings.ToLower(sha256) != sha256 {
		return nil, fmt.Errorf("leaf: %.80q is not a SHA-256", sha256)
	}
	var id strings.Builder // on one line; most ids stay unchanged
	for i := range len(sessionID) {
		if c := sessionID[i]; c < ' ' || c == 0x7f || c == '%' {
			fmt.Fprintf(&id, "%%%02X", c)
		} else {
			id.WriteByte(c)
		}
	}
	return fmt.Appendf(nil, "%s\n%s\n%s\n", leafType, id.String(), sha256), nil
}

// ParseLeaf is the inverse of Leaf.
func ParseLeaf(leaf []byte) (sessionID, sha256 string, err error) {
	lines := strings.Split(string(leaf), "\n")
	if len(lines) != 4 || lines[0] != leafType || lines[3] != "" {
		return "", "", fmt.Errorf("leaf: %.80q is not a leaf", leaf)
	}
	if sessionID, err = url.PathUnescape(lines[1]); err != nil {
		return "", "", fmt.Errorf("leaf: %w", err)
	}
	again, err := Leaf(sessionID, lines[2])
	if err == nil && string(again) != string(leaf) {
		err = fmt.Errorf("leaf: %.80q is not written as Leaf writes it", leaf)
	}
	return sessionID, lines[2], err
}
