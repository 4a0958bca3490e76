package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// OperatorLedger is the name of the ledger that the services write; every other
// one is an agent's, by its agent id.
const OperatorLedger = ""

// LedgerEntry is one entry of an integrity ledger (message-integrity RFC, section
// 3.1).
type LedgerEntry struct {
	Owned
	Ledger        string    `ch:"ledger"`         // OperatorLedger, or an agent id
	File          uint64    `ch:"file"`           // number of the operator's file, from 1; 0 for an agent's
	StreamCreated time.Time `ch:"stream_created"` // which stream Sequence counts in
	Sequence      uint64    `ch:"sequence"`       // in that stream; 0 for the beginning of an operator's file
	Seq           uint64    `ch:"seq"`
	Type          string    `ch:"type"`
	Data          string    `ch:"data"`  // canonical JSON; of an entry that could not be read, the bytes received
	Hash          string    `ch:"hash"`  // hexadecimal
	At            time.Time `ch:"at"`    // by the broker's clock
	Fault         string    `ch:"fault"` // why the entry does not hold; empty when it does
}

// InsertLedger stores entries. The same one again vanishes.
func (s *Store) InsertLedger(ctx context.Context, entries []LedgerEntry) error {
	return insertRows(ctx, s, "ledger", entries)
}

// LedgerHead is how far an agent's ledger was read, and its newest entry that
// holds.
type LedgerHead struct {
	AgentID  string `ch:"agent_id"`
	Sequence uint64 `ch:"last_sequence"` // of the last message, whatever it was
	Entries  uint64 `ch:"entries"`       // that hold
	Seq      uint64 `ch:"last_seq"`      // of the newest one; meaningless without entries
	Hash     string `ch:"last_hash"`     // likewise
}

// LedgerHeads returns the heads of all agents' ledgers that were read from the
// stream made at that time.
func (s *Store) LedgerHeads(ctx context.Context, streamCreated time.Time) ([]LedgerHead, error) {
	heads, err := readRows[LedgerHead](ctx, s, queryLedgerHeads, clickhouse.Named("created", streamCreated.UnixNano()))
	if err != nil {
		return nil, fmt.Errorf("read the heads of agents' ledgers: %w", err)
	}
	return heads, nil
}

// LedgerPlace is a number in an agent's ledger.
type LedgerPlace struct {
	Ledger string
	Seq    uint64
}

// HeldEntry is an entry that holds, as far as it takes to know it again.
type HeldEntry struct {
	Owned
	Ledger     string `ch:"ledger"`
	Sequence   uint64 `ch:"sequence"` // of its message
	Seq        uint64 `ch:"seq"`
	Type       string `ch:"type"`
	DataSHA256 string `ch:"data_sha256"`
	Hash       string `ch:"hash"`
}

// LedgerEntriesAt returns the entries at some places that hold, in the order in which
// they came, of the stream made at that time: one for each file of the ledger.
func (s *Store) LedgerEntriesAt(ctx context.Context, streamCreated time.Time, places []LedgerPlace) ([]HeldEntry, error) {
	ledgers, seqs := make([]string, len(places)), make([]uint64, len(places))
	for i, p := range places {
		ledgers[i], seqs[i] = p.Ledger, p.Seq
	}
	found, err := readRows[HeldEntry](ctx, s, queryLedgerEntriesAt, clickhouse.Named("created", streamCreated.UnixNano()),
		clickhouse.Named("ledgers", ledgers), clickhouse.Named("seqs", seqs))
	if err != nil {
		return nil, fmt.Errorf("read entries of agents' ledgers: %w", err)
	}
	return found, nil
}
