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
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/plumbline/plumbline/aivs"
)

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
