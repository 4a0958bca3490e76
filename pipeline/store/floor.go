package store

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/ClickHouse/ch-go/proto"
)

// Floor is what `plumbline bench` measures the pipeline against: a table that
// keeps each message's sequence and bytes and nothing else, compressed and synced
// to disk as table traces is. It is for an empty database that is thrown away.
type Floor struct{ store *Store }

// OpenFloor makes the table; the DSN is an administrator's.
func OpenFloor(ctx context.Context, cfg Config) (*Floor, error) {
	s, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.conn.Exec(ctx, queryFloor); err != nil {
		return nil, errors.Join(fmt.Errorf("make table floor: %w", err), s.Close())
	}
	return &Floor{s}, nil
}

// Close ends the connections.
func (f *Floor) Close() error { return f.store.Close() }

// Insert stores a batch.
func (f *Floor) Insert(ctx context.Context, b *FloorBatch) error {
	return f.store.send(ctx, b.block, b.block.fields)
}

// Rows counts what is stored.
func (f *Floor) Rows(ctx context.Context) (rows uint64, err error) {
	ctx, cancel := f.store.readContext(ctx)
	defer cancel()
	if err := f.store.conn.QueryRow(ctx, "SELECT count() FROM floor").Scan(&rows); err != nil {
		return 0, fmt.Errorf("count table floor: %w", err)
	}
	return rows, nil
}

// FloorBatch gathers messages. The rules of TraceBatch hold.
type FloorBatch struct {
	block    *block
	sequence proto.ColumnOf[uint64]
	raw      text
}

// NewFloorBatch returns an empty batch.
func NewFloorBatch() *FloorBatch {
	sequence := newUInt64s()
	b := &FloorBatch{sequence: sequence}
	b.block = newBlock("floor", "", nil, []field{{"stream_sequence", kindUInt64, sequence}, {"raw", kindString, &b.raw}})
	return b
}

// Add appends a message.
func (b *FloorBatch) Add(sequence uint64, raw []byte) {
	b.sequence.Append(sequence)
	b.raw.add(unsafe.String(unsafe.SliceData(raw), len(raw)))
}

// Reset empties the batch for the next one.
func (b *FloorBatch) Reset() { b.block.reset() }
