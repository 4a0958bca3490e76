package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/keyfile"
	"github.com/plumbline/plumbline/pipeline/keystore"
)

type keysCommands struct {
	New    keysNewCommand    `cmd:"" help:"Create the first key for a purpose, and the key list."`
	Show   keysShowCommand   `cmd:"" help:"Show the key list: every key, its purpose and its validity."`
	Rotate keysRotateCommand `cmd:"" help:"Replace a key. The old key signs the new one in the key list."`
}

// keyPlace names the file of a key.
type keyPlace struct {
	Purpose string `arg:"" optional:"" enum:"session,micro,handshake,log" default:"session" help:"What the key signs (${enum}). Default: session."`
	Data    string `default:"./plumbline-data" placeholder:"DIR" help:"Data directory; keys are in keys/ (${default})."`
	File    string `type:"path" placeholder:"FILE" help:"The key file, if it is not keys/<purpose>.key. The key list is next to it."`
}

func (p *keyPlace) slot() keystore.Slot {
	purpose := keyring.Purpose(p.Purpose)
	if p.File != "" {
		return keystore.Slot{Path: p.File, Purpose: purpose}
	}
	return keystore.In(filepath.Join(p.Data, "keys"), purpose)
}

type keysNewCommand struct {
	keyPlace
	ValidFor time.Duration `placeholder:"DURATION" help:"How long the key is valid. Default: until it is rotated."`
	JSON     bool          `help:"Print the key's entry as JSON."`
}

// Help returns the examples.
func (*keysNewCommand) Help() string {
	return examples(
		"plumbline keys new",
		"plumbline keys new micro --valid-for 8760h",
	)
}

func (c *keysNewCommand) Run(ctx context.Context, con *console) error {
	period, now, err := periodOf(c.ValidFor, 0)
	if err != nil {
		return err
	}
	made, err := c.slot().New(ctx, period, now)
	if err != nil {
		return fmt.Errorf("create a key: %w", err)
	}
	return showMade(con.out, c.slot(), made, c.JSON)
}

type keysRotateCommand struct {
	keyPlace
	Overlap  time.Duration `default:"24h" help:"How long the previous key stays valid for processes that still sign with it (${default}); 0s if somebody else may have it."`
	ValidFor time.Duration `placeholder:"DURATION" help:"How long the new key is valid. Default: until it is rotated."`
	JSON     bool          `help:"Print the new key's entry as JSON."`
}

// Help returns the examples.
func (*keysRotateCommand) Help() string {
	return examples(
		"plumbline keys rotate session --valid-for 8760h",
		"plumbline keys rotate session --overlap 0s",
	)
}

func (c *keysRotateCommand) Run(ctx context.Context, con *console) error {
	period, now, err := periodOf(c.ValidFor, c.Overlap)
	if err != nil {
		return err
	}
	made, err := c.slot().Rotate(ctx, period, now)
	if errors.Is(err, keystore.ErrMissing) {
		return fmt.Errorf("rotate: %w: create the first key with: plumbline keys new %s", err, c.Purpose)
	}
	if err != nil {
		return fmt.Errorf("rotate: %w", err)
	}
	return showMade(con.out, c.slot(), made, c.JSON)
}

// periodOf returns the period of a key that is created now.
func periodOf(validFor, overlap time.Duration) (keystore.Period, time.Time, error) {
	if validFor < 0 || overlap < 0 {
		return keystore.Period{}, time.Time{}, usagef("--valid-for or --overlap is negative: want 0 or more")
	}
	now := time.Now()
	period := keystore.Period{From: now, Overlap: overlap}
	if validFor > 0 {
		period.Until = now.Add(validFor)
	}
	return period, now, nil
}

func showMade(w io.Writer, slot keystore.Slot, made *keystore.Opened, asJSON bool) error {
	if asJSON {
		return writeJSON(w, made.Entry)
	}
	_, err := fmt.Fprintf(w, "key id      %s\npublic key  %s\npurpose     %s\nkey file    %s\nkey list    %s\n",
		made.Entry.KeyID, made.Entry.PublicKey, made.Entry.Purpose, printable(slot.Path), printable(slot.List()))
	return err
}

type keysShowCommand struct {
	List string `arg:"" optional:"" type:"path" placeholder:"FILE" help:"A key list. Default: that of the data directory; existing keys that it lacks are added to it."`
	Data string `default:"./plumbline-data" placeholder:"DIR" help:"Data directory; keys are in keys/ (${default})."`
	JSON bool   `xor:"form" help:"Print one JSON object for each key."`
	JWKS bool   `name:"jwks" xor:"form" help:"Print the session keys as a JSON Web Key Set."`
}

// Help returns the examples.
func (*keysShowCommand) Help() string {
	return examples(
		"plumbline keys show",
		"plumbline keys show keys.jsonl --json",
	)
}

// Run checks the list and prints it.
func (c *keysShowCommand) Run(ctx context.Context, con *console) error {
	ring, err := c.read(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errNothing, err)
	}
	if err != nil {
		return err
	}
	switch {
	case c.JWKS:
		set, err := ring.JWKS()
		if err != nil {
			return fmt.Errorf("key set: %w", err)
		}
		_, err = fmt.Fprintf(con.out, "%s\n", set)
		return err
	case c.JSON:
		return writeEach(con.out, ring.Keys())
	}
	t := newTable(con.out)
	t.row("purpose", "key id", "state", "not before", "not after", "public key")
	for _, k := range ring.Keys() {
		t.row(string(k.Purpose), k.KeyID, stateOf(ring, &k, time.Now()), bound(k.NotBefore), bound(k.NotAfter), k.PublicKey)
	}
	return t.Flush()
}

func (c *keysShowCommand) read(ctx context.Context) (*keyring.Ring, error) {
	if c.List != "" {
		return keystore.ReadList(c.List)
	}
	dir := filepath.Join(c.Data, "keys")
	for _, purpose := range keyring.Purposes() {
		slot := keystore.In(dir, purpose)
		if _, err := os.Stat(slot.Path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := slot.Load(ctx, time.Now()); err != nil {
			return nil, err
		}
	}
	return keystore.ReadList(filepath.Join(dir, keystore.ListName))
}

func stateOf(ring *keyring.Ring, k *keyring.Key, now time.Time) string {
	current, _ := ring.Current(k.Purpose)
	err := k.ValidAt(now.Truncate(time.Second))
	switch {
	case errors.Is(err, keyring.ErrLate):
		return "ended"
	case errors.Is(err, keyring.ErrEarly):
		return "not yet valid"
	case current.KeyID != k.KeyID:
		return "retiring"
	}
	return "in use"
}

// bound returns the cell of a time that may not be set.
func bound(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

// loadKey reads the key file of --key, whose key must be for the purpose.
func loadKey(path string, purpose keyring.Purpose) (ed25519.PrivateKey, error) {
	key, err := keyfile.Load(path)
	if err == nil {
		err = keystore.Slot{Path: path, Purpose: purpose}.Permit(key)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return key, nil
}

// readKeys reads the public keys of --key.
func readKeys(given []string) (keys []ed25519.PublicKey, err error) {
	for _, one := range given { // hexadecimal digits or a file
		text := one
		if content, err := durable.ReadPlain(one, maxSmallFile); err == nil {
			text = string(content)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, usagef("--key: %w", err)
		}
		key, err := aivs.ParseKey(text)
		if err != nil {
			return nil, usagef("--key %q is neither 64 hexadecimal digits nor a file with a public key: %w", one, err)
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
		return nil, usagef("--keyring needs --key: anyone can write a key list, and only a pinned key shows that it is the right one")
	}
	ring, err := keystore.ReadList(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", errNothing, err)
	}
	return ring, err
}
