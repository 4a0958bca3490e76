// Package keyfile reads and creates the files that hold Ed25519 signing keys (draft-stone-aivs-00
// section 4.2): exactly the 32 raw bytes of the private key, mode 0600.
//
// It owns the file's format and its protection; it does not know what a key is used for. Package
// durable writes the file.
//
// Invariants: a key that others can read is never loaded; an existing file is never overwritten;
// a file appears whole or not at all. No error contains a byte of a key.
package keyfile

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// mode is the only permission mode of a key file.
const mode = 0o600

// Load reads the key in the file at path. It refuses anything but a regular file of mode 0600 and
// 32 bytes.
func Load(path string) (ed25519.PrivateKey, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without O_NONBLOCK a pipe would block until it has a writer
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat() // of the open file, which cannot be replaced in between
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("load key %s: not a regular file", path)
	}
	if info.Mode().Perm() != mode {
		return nil, fmt.Errorf("load key %s: mode is %04o, want %04o; run: chmod %o '%s'", path, info.Mode().Perm(), mode, mode, path)
	}
	seed, err := io.ReadAll(io.LimitReader(file, ed25519.SeedSize+1))
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	if durable.Blank(seed) {
		return nil, fmt.Errorf("load key %s: the file is empty or contains only zero bytes, probably after a loss of power: restore it from a backup; "+
			"if nothing was signed with it, remove it", path)
	}
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("load key %s: not exactly %d raw bytes (no PEM, no hexadecimal digits, no line feed)", path, ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Create makes a new key and writes it to path. The file must not exist; its directory must.
func Create(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	if err := durable.Create(path, key.Seed(), mode); err != nil {
		return nil, fmt.Errorf("create key %s: %w", path, err)
	}
	return key, nil
}
