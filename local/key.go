package local

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/plumbline/plumbline/aivs/keyfile"
	"github.com/plumbline/plumbline/pipeline/durable"
)

// openKey returns the public half, in hexadecimal, of a signing key. The first
// start makes it.
func openKey(path string) (string, error) {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	key, err := keyfile.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = keyfile.Create(path)
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(key.Public().(ed25519.PublicKey)), nil
}
