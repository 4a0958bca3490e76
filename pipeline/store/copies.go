package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// BundleCopy is a file of the bundle directory that has a known copy at another destination: a
// bundle, or a file next to it.
type BundleCopy struct {
	Owned
	Destination string        `ch:"destination"` // nats:bundles, https://host/bucket/prefix
	Path        string        `ch:"path"`        // below the bundle directory, with slashes
	SHA256      schema.Digest `ch:"sha256"`
	Bytes       uint64        `ch:"bytes"`
	DeliveredAt time.Time     `ch:"delivered_at"`
}

// InsertBundleCopies stores what was delivered. If a copy is recorded twice, the earliest row
// stays.
func (s *Store) InsertBundleCopies(ctx context.Context, copies []BundleCopy) error {
	return insertRows(ctx, s, "bundle_copies", copies)
}

// BundleCopies returns where the copies of a file with these bytes are.
func (s *Store) BundleCopies(ctx context.Context, digest schema.Digest) ([]BundleCopy, error) {
	copies, err := readRows[BundleCopy](ctx, s, queryBundleCopies, clickhouse.Named("sha256", digest.String()))
	if err != nil {
		return nil, fmt.Errorf("read the copies of bundle %s: %w", digest, err)
	}
	return copies, nil
}
