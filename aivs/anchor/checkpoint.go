package anchor

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs"
)

// maxCheckpoint is the longest accepted checkpoint: its text and some witnesses' signatures.
const maxCheckpoint = 64 << 10

// Checkpoint is the state of a log at one size.
type Checkpoint struct {
	Origin string // the log's name
	Size   int64  // leaves
	Root   tlog.Hash
}

// NewSigner returns the signer of checkpoints of the log called origin.
func NewSigner(origin string, key ed25519.PrivateKey) (note.Signer, error) {
	vkey, err := VerifierKey(origin, key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	hash := strings.Split(vkey, "+")[1]
	secret := append([]byte{1}, key.Seed()...) // 1: Ed25519
	signer, err := note.NewSigner("PRIVATE+KEY+" + origin + "+" + hash + "+" + base64.StdEncoding.EncodeToString(secret))
	if err != nil {
		return nil, fmt.Errorf("key of the log %q: %w", origin, err)
	}
	return signer, nil
}

// errSmallOrder is the error for a key that is one of the few points of small order.
var errSmallOrder = errors.New("a key of small order: it accepts signatures that nobody made")

// VerifierKey returns the text form of the log's public key (signed notes' vkey): origin+key
// hash+key.
func VerifierKey(origin string, key ed25519.PublicKey) (string, error) {
	vkey, err := note.NewEd25519VerifierKey(origin, key)
	if err == nil {
		_, err = note.NewVerifier(vkey) // checks that the name is allowed
	}
	if err != nil {
		return "", fmt.Errorf("key of the log %q: %w", origin, err)
	}
	return vkey, nil
}

// ParseVerifier reads a VerifierKey.
func ParseVerifier(text string) (note.Verifier, error) {
	text = strings.TrimSpace(text)
	verifier, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("key of a log: %w", err)
	}
	key, _ := base64.StdEncoding.DecodeString(strings.SplitN(text, "+", 3)[2]) // NewVerifier decoded it without error
	if aivs.SmallOrder(key[1:]) {
		return nil, fmt.Errorf("key of the log %q: %w", verifier.Name(), errSmallOrder)
	}
	return verifier, nil
}

// Sign writes the checkpoint as a signed note.
func (c *Checkpoint) Sign(signer note.Signer) ([]byte, error) {
	text := fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	return signed, nil
}

// OpenCheckpoint reads a checkpoint that the log with this key has signed. It ignores signatures
// of other keys.
func OpenCheckpoint(signed []byte, log note.Verifier) (*Checkpoint, error) {
	if len(signed) > maxCheckpoint {
		return nil, fmt.Errorf("checkpoint: %d bytes, want at most %d", len(signed), maxCheckpoint)
	}
	opened, err := note.Open(signed, note.VerifierList(log))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 {
		return nil, errors.New("checkpoint: fewer than three lines")
	}
	c := &Checkpoint{Origin: lines[0]}
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 || strconv.FormatInt(c.Size, 10) != lines[1] {
		return nil, fmt.Errorf("checkpoint: size %.40q", lines[1])
	}
	if c.Root, err = tlog.ParseHash(lines[2]); err != nil {
		return nil, fmt.Errorf("checkpoint: root %.80q: %w", lines[2], err)
	}
	if c.Origin != log.Name() {
		return nil, fmt.Errorf("checkpoint: of the log %.80q, want %q", c.Origin, log.Name())
	}
	return c, nil
}

// OpenCheckpointBy is OpenCheckpoint for any of a log's keys. If all fail, it returns the error
// of the first.
func OpenCheckpointBy(signed []byte, keys []note.Verifier) (*Checkpoint, error) {
	first := errors.New("checkpoint: no key to verify it by")
	for i, key := range keys {
		c, err := OpenCheckpoint(signed, key)
		if err == nil {
			return c, nil
		}
		if i == 0 {
			first = err
		}
	}
	return nil, first
}

// CheckConsistency returns an error unless the log at newer contains everything that it contained
// at older, unchanged and in order. The proof is from the log (tlog.ProveTree).
func CheckConsistency(proof tlog.TreeProof, older, newer *Checkpoint) error {
	switch {
	case older.Origin != newer.Origin:
		return fmt.Errorf("checkpoints of two logs, %.80q and %.80q", older.Origin, newer.Origin)
	case older.Size > newer.Size:
		return fmt.Errorf("the log was rolled back: it had %d leaves and has %d", older.Size, newer.Size)
	case older.Size == newer.Size && older.Root != newer.Root:
		return fmt.Errorf("the log was rewritten: two roots for its first %d leaves", older.Size)
	case older.Size == newer.Size || older.Size == 0:
		return nil
	}
	if err := tlog.CheckTree(proof, newer.Size, newer.Root, older.Size, older.Root); err != nil {
		return fmt.Errorf("the log was rewritten: its first %d leaves are not what they were: %w", older.Size, err)
	}
	return nil
}
