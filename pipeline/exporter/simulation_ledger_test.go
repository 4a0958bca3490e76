package exporter

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/pipelinetest/sim"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// keeper returns the keeper of the ledger as Serve composes it, with small files.
func (s *simulation) keeper(p *sim.Process) *opledger.Keeper {
	rotation := ledger.DefaultRotation()
	rotation.Entries = 4
	return &opledger.Keeper{
		Env: p.Env, Dir: s.cfg.ledgerDir(), Name: "simulated", Rotation: rotation,
		Broker: ledgerBroker{p.Broker(), p, s.ledger}, Rows: &simulatedRows{s, p},
		Confirm: func(context.Context) error { return nil },
	}
}

// ledgerBroker reads stream LEDGER.
type ledgerBroker struct {
	*sim.Broker
	process *sim.Process
	ledger  *sim.Stream
}

// Read implements opledger.Broker as a client does.
func (b ledgerBroker) Read(ctx context.Context, cfg stream.ConsumerConfig) (opledger.Source, error) {
	return b.process.Read(ctx, b.ledger, cfg.From)
}

func (r *simulatedRows) InsertLedger(ctx context.Context, entries []store.LedgerEntry) error {
	key := func(e *store.LedgerEntry) string { return fmt.Sprintf("file %d from %d", e.File, e.Seq) }
	return insert(ctx, r, "ledger", entries, key, func(e *store.LedgerEntry) {
		key := [2]uint64{e.File, e.Seq}
		if known, found := r.tables.ledger[key]; found && known != e.Hash {
			r.w.Wrong("entry %d of ledger file %d is another one than before", e.Seq, e.File)
		}
		r.tables.ledger[key] = e.Hash
		r.tables.chained = max(r.tables.chained, e.Sequence)
	})
}

// checkLedger requires every event of stream LEDGER once and in order in the files, and each
// entry as a row.
func (s *simulation) checkLedger() {
	next, entries := uint64(1), 0
	err := opledger.Walk(s.cfg.ledgerDir(), func(p *opledger.Placed) error {
		entries++
		if hash := s.tables.ledger[[2]uint64{p.File, p.Seq}]; hash != p.Hash.String() {
			s.w.Wrong("entry %d of ledger file %d has hash %s, its row %q", p.Seq, p.File, p.Hash, hash)
		}
		if p.Type == ledger.Genesis {
			return nil
		}
		if p.Position.Sequence != next {
			s.w.Wrong("ledger file %d has event %d where %d is due", p.File, p.Position.Sequence, next)
		}
		next = p.Position.Sequence + 1
		return nil
	}, func(file string, err error) { s.w.Wrong("ledger file %s: %v", file, err) })
	if err != nil || next != uint64(len(s.ledger.Stored))+1 || entries != len(s.tables.ledger) {
		s.w.Wrong("the ledger has %d entries, up to event %d; %d rows, %d events; %v", entries, next-1, len(s.tables.ledger), len(s.ledger.Stored), err)
	}
}
