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

// placeName is the file in a directory with the directory's id. All exporters of a tenant use the same data
// directory and the same bundle directory, under any path.
const placeName = ".directory"

// sharedDirs returns the directories that all exporters of a tenant share. The keeper's log, ledgers and
// queues are in the first one, so another exporter can keep them on.
func (c *Config) sharedDirs() []string { return []string{c.DataDir, c.bundleDir()} }

// enter creates the directories where they are missing, and returns their ids, and a lock that keeps out
// exporters of earlier versions, which work alone. If exporters of the tenant work in other directories, or
// the key that signed the tenant's bundles is not there, it creates nothing.
func enter(ctx context.Context, cfg *Config, env *service.Env, broker *stream.Client) (place string, lock *durable.Lock, err error) {
	if place, err = placeOf(cfg); err != nil {
		return "", nil, err
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
	for _, dir := range cfg.sharedDirs() {
		if err := durable.MkdirAll(dir, 0o755); err != nil {
			return "", nil, err
		}
	}
	if lock, err = durable.Share(filepath.Join(cfg.bundleDir(), ".lock"), "exporter"); err != nil {
		return "", nil, fmt.Errorf("bundle directory: %w", err)
	}
	if err = cfg.namePlaces(); err == nil {
		place, err = placeOf(cfg)
	}
	if err != nil {
		return "", nil, errors.Join(err, lock.Release())
	}
	return place, lock, nil
}

// placeOf returns the ids of the directories that exporters share, "" if one of them is missing or has none.
func placeOf(cfg *Config) (string, error) {
	var ids []string
	for _, dir := range cfg.sharedDirs() {
		id, err := idOf(dir)
		if id == "" || err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, ", "), nil
}

func idOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, placeName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// namePlaces gives an id to each directory that has none. Another process may just do the same.
func (c *Config) namePlaces() error {
	for _, dir := range c.sharedDirs() {
		id, err := idOf(dir)
		if id == "" && err == nil {
			err = durable.CreateWhereLinked(filepath.Join(dir, placeName), []byte(c.Tenant+" "+rand.Text()+"\n"), 0o644)
			if err == nil || errors.Is(err, fs.ErrExist) {
				id, err = idOf(dir)
			}
		}
		if err != nil {
			return err
		}
		if tenant, _, _ := strings.Cut(id, " "); tenant != c.Tenant {
			return fmt.Errorf("directory %s: its file %s names tenant %q: use another directory, or remove the file if no exporter of that tenant works there", dir, placeName, tenant)
		}
	}
	return nil
}
