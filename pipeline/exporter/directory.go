package exporter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/pipeline/ownership"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// placeName is the file in the bundle directory with the directory's id. All exporters of a tenant use
// the same directory, under any path.
const placeName = ".directory"

// enter creates the bundle directory where it is missing, and returns its id, and a lock that keeps out
// exporters of earlier versions, which work alone. If exporters of the tenant work in another directory, or
// the key that signed the tenant's bundles is not there, it creates nothing.
func enter(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client) (place string, lock *durable.Lock, err error) {
	dir := cfg.bundleDir()
	if place, err = placeOf(dir); err != nil {
		return "", nil, fmt.Errorf("bundle directory: %w", err)
	}
	err = env.Open(ctx, broker, func() error {
		leases, err := broker.Bucket(ctx, stream.Leases)
		if err == nil {
			err = ownership.Visit(ctx, leases, broker, stream.ExporterOwners, place)
		}
		return err
	})
	if err != nil {
		return "", nil, err
	}
	if err := Continues(ctx, env, broker, cfg.keyFile()); err != nil {
		return "", nil, err
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("bundle directory: %w", err)
	}
	if lock, err = durable.Share(filepath.Join(dir, ".lock"), "exporter"); err != nil {
		return "", nil, fmt.Errorf("bundle directory: %w", err)
	}
	if place == "" {
		place, err = namePlace(dir, cfg.Tenant)
	}
	if err == nil && !strings.HasPrefix(place, cfg.Tenant+" ") {
		err = fmt.Errorf("its file %s names tenant %s: use another directory, or remove the file if no exporter of that tenant works there", placeName, strings.SplitN(place, " ", 2)[0])
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("bundle directory %s: %w", dir, err), lock.Release())
	}
	return place, lock, nil
}

// placeOf returns the id of a directory, "" for one that does not exist or has none.
func placeOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, placeName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// namePlace gives a directory an id, unless another process just does.
func namePlace(dir, tenant string) (string, error) {
	err := durable.Create(filepath.Join(dir, placeName), []byte(tenant+" "+rand.Text()+"\n"), 0o644)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return placeOf(dir)
}
