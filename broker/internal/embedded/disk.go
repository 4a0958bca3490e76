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
	// watchEvery is how often the server's disk is checked.
	watchEvery = 2 * time.Second
	// roomToGoOn is how much must be free before a store that met a full disk is reopened:
	// twice the largest message.
	roomToGoOn = 2 * maxPayload
)

// ErrStuck is returned by Watch when the store must be reopened.
var ErrStuck = errors.New("the store failed to write and must be reopened; its disk has free space now")

// limitOf returns how large a store may become that holds so many bytes now.
func limitOf(dir string, held int64) (int64, error) {
	free, whole, err := durable.Space(dir)
	if err != nil {
		return 0, err
	}
	return share(held, free, whole), nil
}

// share returns how large the store may become. It holds held bytes now, on a disk of whole
// bytes of which free bytes are free. An eighth of the disk, at most 16 GiB, is left for
// the database and the bundles, which may be on the same disk. If other data has almost
// filled the disk, the store gets half of the free space: with none it would accept nothing.
func share(held, free, whole int64) int64 {
	available := held + free
	return max(held, available-min(whole/8, 16<<30, available/2))
}

// heldIn returns the total size in bytes of the files below a directory.
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

// Watch raises the store's limit when space is freed or the disk grows, until ctx ends. A
// store that once failed to write refuses every message until it is reopened, even
// with free space: Watch then returns ErrStuck as soon as there is room.
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
			s.log.Warn("failed to raise the limit of the broker's store", "error", err)
		}
	}
}

// raiseLimit raises the limit of a store that is close to it. For that, the server closes the
// connections of its clients, which reconnect at once; so raiseLimit ignores small gains. It
// never lowers the limit of a running server.
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
	s.log.Info("the broker's disk has more free space: the limit of its store is raised", "bytes", higher)
	return nil
}
