package accounts

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/bcrypt"

	"github.com/plumbline/plumbline/pipeline/durable"
)

const (
	secretMode  = 0o600
	leastSecret = 24 // bytes; rand.Text returns 26
)

// credential reads or creates the user's secret, and sets the public part that the server gets.
func (u *User) credential(password bool) error {
	if password {
		secret, err := u.secret(func() ([]byte, error) { return []byte(rand.Text()), nil })
		if err != nil {
			return err
		}
		// The password is random, so a cheap hash is as safe as an expensive one.
		hash, err := bcrypt.GenerateFromPassword(secret, bcrypt.MinCost)
		if err != nil {
			return fmt.Errorf("%s: %w: remove the file, and run the command again", u.Secret, err)
		}
		u.hash = string(hash)
		return nil
	}
	seed, err := u.secret(func() ([]byte, error) {
		pair, err := nkeys.CreateUser()
		if err != nil {
			return nil, err
		}
		return pair.Seed()
	})
	if err != nil {
		return err
	}
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return fmt.Errorf("%s contains no nkey seed: remove the file, and run the command again", u.Secret)
	}
	u.Login, err = pair.PublicKey()
	if err == nil && !nkeys.IsValidPublicUserKey(u.Login) {
		err = fmt.Errorf("%s is not the seed of a user: remove the file, and run the command again", u.Secret)
	}
	return err
}

// secret returns the contents of the user's file, and creates the file if it is missing.
func (u *User) secret(generate func() ([]byte, error)) ([]byte, error) {
	info, err := os.Stat(u.Secret)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		secret, err := generate()
		if err == nil {
			err = durable.MkdirAll(filepath.Dir(u.Secret), 0o700)
		}
		if err != nil {
			return nil, err
		}
		return secret, durable.WriteFile(u.Secret, append(bytes.Clone(secret), '\n'), secretMode)
	case err != nil:
		return nil, err
	case info.Mode().Perm() != secretMode:
		return nil, fmt.Errorf("%s: mode is %#o, want 0600; run: chmod 600 %[1]s", u.Secret, info.Mode().Perm())
	}
	text, err := durable.ReadPlain(u.Secret, 4096)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimSpace(text)
	if len(text) < leastSecret || durable.Blank(text) {
		return nil, fmt.Errorf("%s holds no secret: remove the file, and run the command again", u.Secret)
	}
	return text, nil
}
