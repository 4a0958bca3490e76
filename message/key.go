package message

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/plumbline/plumbline/schema"
)

// MAC is an HMAC-SHA256.
type MAC [sha256.Size]byte

// String returns 64 lower-case hexadecimal digits.
func (m MAC) String() string { return hex.EncodeToString(m[:]) }

// ParseMAC reads 64 lower-case hexadecimal digits.
func ParseMAC(text string) (m MAC, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(m) || hex.EncodeToString(b) != text {
		return m, fmt.Errorf("a MAC is 64 lower-case hexadecimal digits, not %q", clip(text))
	}
	return MAC(b), nil
}

// Key signs messages and tool results. It exists only in the memory of the process that made it
// (RFC section 5): it has no exported form, and printing it prints its id. It is safe for
// concurrent use.
type Key struct {
	id          string
	messages    *signer
	toolResults *signer
}

// NewKey makes a key of 32 random bytes.
func NewKey(random io.Reader) (*Key, error) {
	var secret [32]byte
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return nil, fmt.Errorf("make a message key: %w", err)
	}
	id := derive(secret[:], "plumbline key id")
	return &Key{
		id:          hex.EncodeToString(id[:8]),
		messages:    newSigner(derive(secret[:], "plumbline message")),
		toolResults: newSigner(secret[:]), // by the RFC's formula; its text always has a "|", the purposes of derive have none
	}, nil
}

// derive separates the uses of one secret: a signature for one purpose is not valid for
// another.
func derive(secret []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// ID returns the name of the key; it reveals nothing about the secret.
func (k *Key) ID() string { return k.id }

// String returns the id.
func (k *Key) String() string { return "message key " + k.id }

// Format writes the id for every verb.
func (k *Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// MarshalText returns the id, also in logs: a key has no other text.
func (k *Key) MarshalText() ([]byte, error) { return []byte(k.id), nil }

// signer makes MACs with one key. It is safe for concurrent use.
type signer struct{ workspaces sync.Pool }

// workspace is the reused memory for making a MAC.
type workspace struct {
	mac  hash.Hash
	text []byte
	out  MAC
}

func newSigner(key []byte) *signer {
	return &signer{sync.Pool{New: func() any { return &workspace{mac: hmac.New(sha256.New, key)} }}}
}

// largestKept bounds the memory that a workspace keeps between texts.
const largestKept = 64 << 10

// sum computes the MAC of the bytes that write appends.
func (s *signer) sum(write func([]byte) []byte) MAC {
	w := s.workspaces.Get().(*workspace)
	w.text = write(w.text[:0])
	w.mac.Reset()
	w.mac.Write(w.text)
	w.mac.Sum(w.out[:0])
	sum := w.out
	if cap(w.text) <= largestKept {
		s.workspaces.Put(w)
	}
	return sum
}

// clip bounds a text for a message.
func clip(text string) string { return schema.Clip(text, 80) }
