package store

import (
	"context"
	"errors"
	"fmt"
	"unsafe"
)

// Floor is the baseline that `plumbline bench` compares the pipeline with: a table that stores
// only each message's sequence and bytes, compressed and synced to disk in the same way as table
// traces. Use it with an empty database that is thrown away afterwards.
type Floor struct{ store *Store }

// OpenFloor creates the table. The DSN must be an administrator's.
func OpenFloor(ctx context.Context, cfg Config) (*Floor, error) {
	s, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.db.Exec(ctx, queryFloor); err != nil {
		return nil, errors.Join(fmt.Errorf("create table floor: %w", err), s.Close())
	}
	return &Floor{s}, nil
}

func (f *Floor) Close() error { return f.store.Close() }

func (f *Floor) Insert(ctx context.Context, b *FloorBatch) error {
	return f.store.send(ctx, b.block, b.block.fields)
}

func (f *Floor) Rows(ctx context.Context) (rows uint64, err error) {
	ctx, cancel := f.store.db.ReadContext(ctx)
	defer cancel()
	if err := f.store.db.QueryRow(ctx, "SELECT count() FROM floor").Scan(&rows); err != nil {
		return 0, fmt.Errorf("count the rows of table floor: %w", err)
	}
	return rows, nil
}

// FloorBatch collects messages. It follows the rules of TraceBatch.
type FloorBatch struct {
	block   *block
	columns struct {
		Sequence *native[uint64] `ch:"stream_sequence UInt64"`
		Raw      *text           `ch:"raw String"`
	}
}

func NewFloorBatch() *FloorBatch {
	b := new(FloorBatch)
	b.block = newBlock("floor", "", nil, &b.columns)
	return b
}

func (b *FloorBatch) Add(sequence uint64, raw []byte) {
	b.columns.Sequence.Append(sequence)
	b.columns.Raw.add(unsafe.String(unsafe.SliceData(raw), len(raw)))
}

func (b *FloorBatch) Reset() { b.block.reset() }
