package anchor

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

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

// cosignatureType is the signature type of an Ed25519 cosignature in a witness's key.
const cosignatureType = 4

// Witness cosigns the checkpoints of logs that it has seen to be append-only
// (c2sp.org/tlog-cosignature, Ed25519).
type Witness struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

// ParseWitness reads a witness's key text: name+key hash+key, with a key of type 4.
func ParseWitness(text string) (*Witness, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), "+")
	hash, key, _ := strings.Cut(rest, "+")
	raw, err := base64.StdEncoding.DecodeString(key)
	if name == "" || strings.ContainsAny(name, " \t\r\n") || err != nil || len(raw) != 1+ed25519.PublicKeySize {
		return nil, errors.New("key of a witness: want name+hash+base64 of 33 bytes")
	}
	if raw[0] != cosignatureType {
		return nil, fmt.Errorf("key of the witness %q: signature type %d, want %d (Ed25519 cosignatures)", name, raw[0], cosignatureType)
	}
	sum := sha256.Sum256(append([]byte(name+"\n"), raw...))
	if hex.EncodeToString(sum[:4]) != hash {
		return nil, fmt.Errorf("key of the witness %q: its hash is %.20q, want %x", name, hash, sum[:4])
	}
	if aivs.SmallOrder(raw[1:]) {
		return nil, fmt.Errorf("key of the witness %q: %w", name, errSmallOrder)
	}
	return &Witness{name: name, hash: binary.BigEndian.Uint32(sum[:4]), key: raw[1:]}, nil
}

// Name returns the witness's name.
func (w *Witness) Name() string { return w.name }

// KeyHash returns the key hash that a signature line contains.
func (w *Witness) KeyHash() uint32 { return w.hash }

// Verify reports whether a signature is the witness's cosignature of a checkpoint.
func (w *Witness) Verify(checkpoint, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	at := binary.BigEndian.Uint64(signature)
	if at > math.MaxInt64 {
		return false
	}
	signed := fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, checkpoint)
	return ed25519.Verify(w.key, signed, signature[8:])
}

// Cosignature is a witness's signature on a checkpoint.
type Cosignature struct {
	note.Signature
	At time.Time // when it was made, by the witness's clock
}

// Cosignatures returns the cosignatures of these witnesses on a checkpoint. It ignores those of
// other witnesses. An invalid cosignature of one of these witnesses is an error.
func Cosignatures(signed []byte, witnesses []*Witness) ([]Cosignature, error) {
	if len(signed) > maxCheckpoint {
		return nil, fmt.Errorf("checkpoint: %d bytes, want at most %d", len(signed), maxCheckpoint)
	}
	known := make([]note.Verifier, len(witnesses))
	for i, w := range witnesses {
		known[i] = w
	}
	opened, err := note.Open(signed, note.VerifierList(known...))
	if _, unverified := errors.AsType[*note.UnverifiedNoteError](err); unverified {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cosignatures: %w", err)
	}
	var found []Cosignature
	for _, s := range opened.Sigs {
		raw, _ := base64.StdEncoding.DecodeString(s.Base64)                                                // the key's hash, and what Verify took
		found = append(found, Cosignature{s, time.Unix(int64(binary.BigEndian.Uint64(raw[4:])), 0).UTC()}) // Verify bounds it
	}
	return found, nil
}

// Lines returns the signature lines of a note.
func Lines(signatures []note.Signature) []byte {
	var b []byte
	for _, s := range signatures {
		b = fmt.Appendf(b, "\u2014 %s %s\n", s.Name, s.Base64)
	}
	return b
}
