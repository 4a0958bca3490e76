package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/keystore"
)

// readKeys reads the values of --key.
func readKeys(given []string) (keys []ed25519.PublicKey, err error) {
	for _, one := range given {
		key, err := readKey(one)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readRing reads the file of --keyring; nil if the flag is not given.
func readRing(path string, pins []ed25519.PublicKey) (*keyring.Ring, error) {
	if path == "" {
		return nil, nil
	}
	if len(pins) == 0 {
		return nil, usagef("--keyring needs --key: anyone can write a key list, and a pinned key tells whether it is the right one")
	}
	ring, err := keystore.ReadList(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", errNothing, err)
	}
	return ring, err
}

// readKey reads a public key from hexadecimal digits or a file.
func readKey(given string) (ed25519.PublicKey, error) {
	text := given
	if content, err := durable.ReadPlain(given, maxSmallFile); err == nil {
		text = string(content)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("--key: %w", err)
	}
	key, err := aivs.ParseKey(text)
	if err != nil {
		return nil, usagef("--key %q is neither 64 hexadecimal digits nor a file with a public key: %w", given, err)
	}
	return key, nil
}
