package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// unstored lists the rows of a block that are to be sent; nil means all of
// them. First deliveries need no look-up; a redelivered message's row, or any
// row after an attempt that failed, is sent only if it is not there. After an attempt whose
// writes failed, what is there does not count.
func (s *Store) unstored(ctx context.Context, b *block) ([]int, error) {
	if b.unwritten || (!b.doubt && len(b.suspects) == 0) {
		return nil, nil
	}
	began := time.Now()
	if b.doubt {
		if err := s.settled(ctx, b); err != nil {
			return nil, err
		}
		missing, err := s.absent(ctx, b, every(b.rows.len()))
		return missing, errors.Join(err, s.written(ctx, began))
	}
	missing, err := s.absent(ctx, b, b.suspects)
	if err = errors.Join(err, s.written(ctx, began)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(every(b.rows.len()), func(row int) bool {
		_, suspect := slices.BinarySearch(b.suspects, row)
		_, absent := slices.BinarySearch(missing, row)
		return suspect && !absent
	}), nil
}

// settled makes sure that no earlier attempt at a block is still running: its
// rows would not be seen yet.
func (s *Store) settled(ctx context.Context, b *block) error {
	if b.attempts == 0 {
		return nil
	}
	ctx, cancel := s.readContext(ctx)
	defer cancel()
	var running uint64
	if err := s.conn.QueryRow(ctx, queryRunning, clickhouse.Named("prefix", b.id+"-")).Scan(&running); err != nil {
		return err
	}
	if running > 0 {
		return ErrInFlight
	}
	return nil
}

// embedded is the name that the embedded library gives itself (engine/config.xml.tmpl).
const embedded = "plumbline"

// written makes sure that what was looked up since a moment is on the disk. Of the embedded
// library (see attempt) it may be rows whose writes failed, until the library is started again.
func (s *Store) written(ctx context.Context, since time.Time) error {
	server, err := s.conn.ServerVersion()
	if err != nil || server.DisplayName != embedded {
		return err
	}
	ctx, cancel := s.readContext(ctx)
	defer cancel()
	var failed uint64
	var uptime uint32
	if err := s.conn.QueryRow(ctx, queryFailedWrites).Scan(&failed, &uptime); err != nil {
		return err
	}
	if failed > 0 || time.Duration(uptime)*time.Second < time.Since(since) { // or it has been started again meanwhile
		return ErrUnwritten
	}
	return nil
}

// lookupRows bounds the rows of one look-up.
const lookupRows = 10_000

// absent returns those of the rows that are not stored, in the order given.
func (s *Store) absent(ctx context.Context, b *block, rows []int) ([]int, error) {
	missing := make([]int, 0, len(rows))
	for part := range slices.Chunk(rows, lookupRows) {
		stored, err := s.stored(ctx, b, part)
		if err != nil {
			return nil, err
		}
		for _, row := range part {
			if !stored[b.rows.key(row)] {
				missing = append(missing, row)
			}
		}
	}
	return missing, nil
}

// stored returns the keys of the rows' sequences that the table has.
func (s *Store) stored(ctx context.Context, b *block, rows []int) (map[rowKey]bool, error) {
	hours := make([]uint32, 0, len(rows))
	sequences := make([]uint64, 0, len(rows))
	for _, row := range rows {
		hours = append(hours, b.rows.hour(row))
		sequences = append(sequences, b.rows.key(row).sequence)
	}
	slices.Sort(hours)
	ctx, cancel := s.readContext(ctx)
	defer cancel()
	found, err := s.conn.Query(ctx, b.present, clickhouse.Named("tenant", s.cfg.Tenant),
		clickhouse.Named("hours", slices.Compact(hours)), clickhouse.Named("sequences", sequences))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	stored := make(map[rowKey]bool, len(rows))
	for found.Next() {
		key, err := scanKey(found)
		if err != nil {
			return nil, err
		}
		stored[key] = true
	}
	return stored, found.Err()
}

func scanKey(row interface{ Scan(...any) error }) (rowKey, error) {
	var k rowKey
	var digest, card schema.Digest
	err := row.Scan(&k.streamCreated, &k.sequence, &digest, &card, &k.engine, &k.profile, &k.revoked)
	k.digest, k.card = digest, card
	return k, err
}
