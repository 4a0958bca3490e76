package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/plumbline/plumbline/pipeline/durable"
)

const (
	// watchEvery is how often the server's disk is looked at.
	watchEvery = 2 * time.Second
	// roomToGoOn is what must be free before a store that met a full disk is opened
	// again: the largest message, twice.
	roomToGoOn = 2 * maxPayload
)

// ErrStuck is the end of Watch where the store must be opened again.
var ErrStuck = errors.New("the store could not write, takes nothing more until it is opened again, and has room now")

// limitOf returns how large a store may become that holds so many bytes.
func limitOf(dir string, held int64) (int64, error) {
	free, whole, err := durable.Space(dir)
	if err != nil {
		return 0, err
	}
	return share(held, free, whole), nil
}

// share is how large the store may become of which held bytes are there, on a disk of
// whole bytes of which some are free. An eighth of the disk, 16 GiB at most, is left for
// the database and the bundles, which may share it. On a disk that others have nearly
// filled the store gets half of what they have left: with nothing it would take nothing.
func share(held, free, whole int64) int64 {
	available := held + free
	return max(held, available-min(whole/8, 16<<30, available/2))
}

// heldIn returns how many bytes the files below a directory have.
func heldIn(dir string) (held int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			held += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measure the store in %s: %w", dir, err)
	}
	return held, nil
}

// Watch raises the store's limit as space is freed or its disk grows, until ctx ends. A
// store that once failed to write refuses every message until it is opened again, even
// with space: Watch then returns ErrStuck as soon as there is room.
func (s *Server) Watch(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if s.failed.Load() || !s.nats.JetStreamEnabled() {
			free, _, err := durable.Space(s.dir)
			if err == nil && free >= roomToGoOn {
				return ErrStuck
			}
			continue
		}
		if err := s.raiseLimit(); err != nil {
			s.log.Warn("the limit of the broker's store stays as it is", "error", err)
		}
	}
}

// raiseLimit lets a store become larger that comes near its limit. The server ends the
// connections of its clients for that, which come back at once, so it is not done for
// little. It does not lower a limit while it runs.
func (s *Server) raiseLimit() error {
	info, err := s.nats.Jsz(&server.JSzOptions{Config: true})
	if err != nil {
		return fmt.Errorf("ask for the size of the store: %w", err)
	}
	held, limit := int64(info.Store), info.Config.MaxStore // a number of bytes
	if held < limit/4*3 {
		return nil
	}
	higher, err := limitOf(s.dir, held)
	if err != nil || higher < limit+limit/16 {
		return err
	}
	opts := s.options.Clone()
	opts.JetStreamMaxStore = higher
	if err := s.nats.ReloadOptions(opts); err != nil {
		return fmt.Errorf("raise the limit of the store to %d bytes: %w", higher, err)
	}
	s.log.Info("the broker's disk has more room: its store may become larger", "bytes", higher)
	return nil
}
