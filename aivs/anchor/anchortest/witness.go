package anchortest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"
)

// Witness cosigns checkpoints in the byte format of c2sp.org/tlog-cosignature. It uses none of
// the code under test.
type Witness struct {
	Name string
	key  ed25519.PrivateKey
	hash []byte
}

// NewWitness returns a witness whose key is derived from a seed.
func NewWitness(name string, seed byte) *Witness {
	w := &Witness{Name: name, key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))}
	sum := sha256.Sum256(append([]byte(name+"\n\x04"), w.public()...))
	w.hash = sum[:4]
	return w
}

func (w *Witness) public() []byte { return w.key.Public().(ed25519.PublicKey) }

// Key returns the witness's key text.
func (w *Witness) Key() string {
	return fmt.Sprintf("%s+%x+%s", w.Name, w.hash, base64.StdEncoding.EncodeToString(append([]byte{4}, w.public()...)))
}

// Cosign returns a signed checkpoint with the witness's line after the others.
func (w *Witness) Cosign(signed []byte, at time.Time) []byte {
	text := signed[:bytes.LastIndex(signed, []byte("\n\n"))+1]
	message := append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", at.Unix()), text...)
	raw := binary.BigEndian.AppendUint64(bytes.Clone(w.hash), uint64(at.Unix())) // a time of a test
	raw = append(raw, ed25519.Sign(w.key, message)...)
	return fmt.Appendf(bytes.Clone(signed), "— %s %s\n", w.Name, base64.StdEncoding.EncodeToString(raw))
}
