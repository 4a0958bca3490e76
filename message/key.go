package message

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"sync"
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

// Key signs messages and tool results. It lives in the memory of the process that
// made it and nowhere else (RFC section 5): it has no exported form, and printing
// it prints its id. Safe for concurrent use.
type Key struct {
	id          string
	messages    *sync.Pool // of hash.Hash, keyed for messages
	toolResults *sync.Pool // of hash.Hash, keyed for tool results
}

// NewKey makes a key of 32 bytes of randomness.
func NewKey(random io.Reader) (*Key, error) {
	var secret [32]byte
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return nil, fmt.Errorf("make a message key: %w", err)
	}
	id := derive(secret[:], "plumbline key id")
	return &Key{
		id:          hex.EncodeToString(id[:8]),
		messages:    macs(derive(secret[:], "plumbline message")),
		toolResults: macs(secret[:]), // by the RFC's formula; its text always has a "|", the purposes of derive have none
	}, nil
}

// derive separates the uses of one secret: a signature made for one purpose is
// worth nothing for another.
func derive(secret []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

func macs(key []byte) *sync.Pool {
	return &sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}
}

// ID names the key; it tells nothing of it.
func (k *Key) ID() string { return k.id }

// String returns the id.
func (k *Key) String() string { return "message key " + k.id }

// Format writes the id, whatever the verb.
func (k *Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// MarshalText is the id, in logs as well: a key has no other text.
func (k *Key) MarshalText() ([]byte, error) { return []byte(k.id), nil }

// sum computes the MAC of what write writes.
func sum(pool *sync.Pool, write func(hash.Hash)) MAC {
	mac, ok := pool.Get().(hash.Hash)
	if !ok {
		panic("message: a pool of something else")
	}
	defer pool.Put(mac)
	mac.Reset()
	write(mac)
	var m MAC
	mac.Sum(m[:0])
	return m
}

// clip shortens a text for a message.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
