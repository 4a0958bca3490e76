package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// unstored returns the rows of a block that must be sent; nil means all of them. First deliveries
// need no lookup. The row of a redelivered message, and any row after a failed attempt, is sent
// only if it is not stored. After an attempt whose writes failed, rows that a lookup would find
// do not count as stored.
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

// settled returns nil once no earlier attempt at a block is still running. The rows of a running
// attempt would not be visible yet.
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

// embedded is the name that the embedded library reports for itself (engine/config.xml.tmpl).
const embedded = "plumbline"

// written returns nil if what was looked up since a moment is on the disk. In the embedded
// library (see attempt) a lookup can find rows whose writes failed, until the library is
// restarted.
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
	if failed > 0 || time.Duration(uptime)*time.Second < time.Since(since) { // or it was restarted meanwhile
		return ErrUnwritten
	}
	return nil
}

// lookupRows is the maximum number of rows in one lookup.
const lookupRows = 10_000

// absent returns the rows that are not stored, in the order given.
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

// stored returns the keys in the table that have the sequences of these rows.
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
