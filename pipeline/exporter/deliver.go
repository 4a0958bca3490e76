package exporter

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/destination"
	"github.com/plumbline/plumbline/pipeline/destination/s3"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// Kinds of destinations other than the bundle directory.
const (
	toObjectStore = "nats"
	toS3          = "s3"
)

// copies are the copiers of all configured destinations.
type copies []*destination.Copier

// openCopies opens the configured destinations, and forgets those that are no longer configured.
func (k *keeper) openCopies(ctx context.Context, broker *stream.Client) error {
	places := map[string]destination.Destination{}
	if k.cfg.Copies.ObjectStore != "" {
		err := k.env.Open(ctx, broker, func() (err error) {
			places[toObjectStore], err = broker.Objects(ctx, k.cfg.Copies.ObjectStore)
			return err
		})
		if err != nil {
			return err
		}
	}
	if k.cfg.Copies.S3.Endpoint != "" {
		bucket, err := s3.Open(&k.cfg.Copies.S3)
		if err != nil {
			return err
		}
		places[toS3] = bucket
	}
	for _, kind := range []string{toObjectStore, toS3} {
		dir, to := filepath.Join(k.cfg.DataDir, "copies", kind), places[kind]
		if to == nil {
			if err := destination.Forget(dir); err != nil {
				return err
			}
			continue
		}
		copier := &destination.Copier{
			To: to, Name: kind, Dir: dir, Bundles: k.cfg.bundleDir(), Log: k.env.Log, Record: k.recordCopies,
			Done:    func(n int) { k.metrics.delivered.WithLabelValues(kind).Add(float64(n)) },
			Failed:  k.metrics.undelivered.WithLabelValues(kind).Inc,
			Waiting: func(n int) { k.metrics.pending.WithLabelValues(kind).Set(float64(n)) },
		}
		if err := copier.Open(sealedFiles(k.cfg.bundleDir())); err != nil {
			return err
		}
		k.copies = append(k.copies, copier)
	}
	return nil
}

func (c copies) run(ctx context.Context) error {
	actors := make([]func(context.Context) error, len(c))
	for i, copier := range c {
		actors[i] = copier.Run
	}
	return service.Group(ctx, actors...)
}

func (c copies) close() error {
	var faults []error
	for _, copier := range c {
		if closer, ok := copier.To.(io.Closer); ok {
			faults = append(faults, closer.Close())
		}
	}
	return errors.Join(faults...)
}

func (c copies) add(files ...destination.Copy) error {
	var faults []error
	for _, copier := range c {
		faults = append(faults, copier.Add(files...))
	}
	return errors.Join(faults...)
}

// noteCopies adds placed bundles, and their proofs, to the lists of copies. It runs before a bundle is
// marked as sealed, so it is repeated after a crash.
func (k *keeper) noteCopies(bundles []placedBundle) error {
	var files []destination.Copy
	for _, b := range bundles {
		files = append(files, destination.Copy{File: b.File, SHA256: b.SHA256})
		if k.anchors.log != nil {
			files = append(files, destination.Copy{File: b.File + anchor.ProofSuffix})
		}
	}
	return k.copies.add(files...)
}

func (k *keeper) recordCopies(ctx context.Context, location string, delivered []destination.Copy) error {
	rows := make([]store.BundleCopy, len(delivered))
	for i, c := range delivered {
		rows[i] = store.BundleCopy{
			Destination: location, Path: filepath.ToSlash(c.File), Bytes: uint64(c.Size), DeliveredAt: c.Delivered,
		}
		if err := rows[i].SHA256.UnmarshalText([]byte(c.SHA256)); err != nil {
			return err
		}
	}
	return k.rows.InsertBundleCopies(ctx, rows)
}

// sealedFiles returns the bundles below a directory and the files next to them that are copied,
// as paths relative to the directory.
func sealedFiles(dir string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !isSealed(entry.Name()) {
				return err
			}
			file, err := filepath.Rel(dir, path)
			if err == nil && !yield(file, nil) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			yield("", err)
		}
	}
}

// isSealed reports whether a file with this name is copied. Staged files begin with a dot and are
// not.
func isSealed(name string) bool {
	for _, beside := range []string{anchor.ProofSuffix, anchor.TimestampSuffix} {
		if bundle, found := strings.CutSuffix(name, beside); found {
			return isBundle(bundle)
		}
	}
	return isBundle(name)
}

// isBundle reports whether a file with this name is a bundle.
func isBundle(name string) bool {
	return !strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tar.gz")
}
