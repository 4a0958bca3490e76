package exporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/plumbline/plumbline/pipeline/run"
	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// noteSigner writes into bucket seals which key signs, before it signs the first bundle.
func (e *exporter) noteSigner(ctx context.Context) error {
	if e.noted == e.keyID {
		return nil
	}
	return e.env.Retry.Do(ctx, "note the signing key", func() error {
		if err := e.confirm(ctx); err != nil {
			return err
		}
		if _, err := e.seals.Put(ctx, seal.SignerKey, []byte(e.keyID)); err != nil {
			return err
		}
		e.noted = e.keyID
		return nil
	})
}

// Continues returns an error where the tenant's bundles were signed before and there is no
// key file: on a new directory an exporter would sign with a key that nobody knows, and
// the bundles of before would be elsewhere.
func Continues(ctx context.Context, env *run.Env, broker *stream.Client, keyFile string) error {
	if _, err := os.Stat(keyFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var before []byte
	err := env.Open(ctx, broker, func() error {
		seals, err := broker.Bucket(ctx, stream.Seals)
		if err == nil {
			before, _, err = seals.GetNewest(ctx, seal.SignerKey)
		}
		return err
	})
	if errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the key that signed before: %w", err)
	}
	return fmt.Errorf("there is no key %s, and the bundles of this tenant were signed with key %s until now: "+
		"start on the data directory of the exporter before, which has its key and its bundles; "+
		"where that is lost, begin with a new key: plumbline keys new session --file %[1]s", keyFile, before)
}
