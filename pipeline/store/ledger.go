package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// OperatorLedger is the name of the ledger that the services write. Every other ledger belongs to
// an agent, and its name is the agent id.
const OperatorLedger = ""

// LedgerEntry is one entry of an integrity ledger (message-integrity RFC, section 3.1).
type LedgerEntry struct {
	Owned
	Ledger        string    `ch:"ledger"`         // OperatorLedger, or an agent id
	File          uint64    `ch:"file"`           // number of the operator's file, from 1; 0 for an agent's
	StreamCreated time.Time `ch:"stream_created"` // creation time of the stream that Sequence belongs to
	Sequence      uint64    `ch:"sequence"`       // 0 for the beginning of an operator's file
	Seq           uint64    `ch:"seq"`
	Type          string    `ch:"type"`
	Data          string    `ch:"data"`  // canonical JSON; the received bytes if the entry could not be read
	Hash          string    `ch:"hash"`  // hexadecimal
	At            time.Time `ch:"at"`    // by the broker's clock
	Fault         string    `ch:"fault"` // why the entry is not valid; empty if it is
}

func (w Writer) InsertLedger(ctx context.Context, entries []LedgerEntry) error {
	return insertRows(ctx, w, "ledger", entries)
}

// LedgerHead is how far an agent's ledger was read, and its newest valid entry.
type LedgerHead struct {
	AgentID  string `ch:"agent_id"`
	Sequence uint64 `ch:"last_sequence"` // of the last message of the stream, valid or not; 0 if it has none
	Entries  uint64 `ch:"entries"`       // number of valid entries
	Seq      uint64 `ch:"last_seq"`      // of the newest valid entry; meaningless if Entries is 0
	Hash     string `ch:"last_hash"`     // the same
}

// LedgerHeads returns the heads of all agents' ledgers, with the sequences of the stream that was
// created at the given time. The newest entry of a ledger that has none in this stream is that of an
// earlier stream: the stream may have been created again, and the ledger goes on.
func (r Reader) LedgerHeads(ctx context.Context, streamCreated time.Time) ([]LedgerHead, error) {
	return read[LedgerHead](ctx, r.db, "the heads of agents' ledgers", queryLedgerHeads, clickhouse.Named("created", streamCreated.UnixNano()))
}

// LedgerPlace is a position in an agent's ledger.
type LedgerPlace struct {
	Ledger string
	Seq    uint64
}

// HeldEntry is a valid entry, reduced to what identifies it.
type HeldEntry struct {
	Owned
	Ledger     string `ch:"ledger"`
	Sequence   uint64 `ch:"sequence"` // of its message
	Seq        uint64 `ch:"seq"`
	Type       string `ch:"type"`
	DataSHA256 string `ch:"data_sha256"`
	Hash       string `ch:"hash"`
}

// LedgerEntriesAt returns the valid entries at the given places, in order of arrival, also those of
// earlier streams. A place has one entry for each file of the ledger.
func (r Reader) LedgerEntriesAt(ctx context.Context, places []LedgerPlace) ([]HeldEntry, error) {
	ledgers, seqs := make([]string, len(places)), make([]uint64, len(places))
	for i, p := range places {
		ledgers[i], seqs[i] = p.Ledger, p.Seq
	}
	return read[HeldEntry](ctx, r.db, "entries of agents' ledgers", queryLedgerEntriesAt,
		clickhouse.Named("ledgers", ledgers), clickhouse.Named("seqs", seqs))
}
