package opledger

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// What an entry that does not follow may be, in addition to the kinds of ledger.Fault.
const (
	FaultRepeat = "repeat" // a valid entry was delivered again: harmless
	FaultFork   = "fork"   // another valid entry has its number
)

// doubt is an entry that was parsed but does not follow the chain.
type doubt struct {
	row    int // index in the batch
	entry  *ledger.Entry
	behind bool // the chain already has its number
}

// explain determines for entries that do not follow whether they repeat a valid entry or fork the
// ledger.
func (a *Auditor) explain(ctx context.Context, rows []store.LedgerEntry, doubtful []doubt) error {
	if len(doubtful) == 0 {
		return nil
	}
	places := make([]store.LedgerPlace, len(doubtful))
	for i, d := range doubtful {
		places[i] = store.LedgerPlace{Ledger: rows[d.row].Ledger, Seq: d.entry.Seq}
	}
	stored, err := a.Rows.LedgerEntriesAt(ctx, a.source.StreamCreated(), places)
	if err != nil {
		return err
	}
	held := make(map[store.LedgerPlace][]store.HeldEntry, len(places))
	for _, e := range stored {
		place := store.LedgerPlace{Ledger: e.Ledger, Seq: e.Seq}
		held[place] = append(held[place], e)
	}
	done := 0
	for i, d := range doubtful {
		for ; done < d.row; done++ { // those of this batch are not stored yet
			if r := &rows[done]; r.Fault == "" {
				place := store.LedgerPlace{Ledger: r.Ledger, Seq: r.Seq}
				held[place] = append(held[place], store.HeldEntry{Type: r.Type, DataSHA256: schema.DigestOf([]byte(r.Data)).String(), Hash: r.Hash})
			}
		}
		if fault := d.among(held[places[i]]); fault != "" {
			rows[d.row].Fault = fault
		}
	}
	return nil
}

// among compares the entry with held, the valid entries that have its number, the newest last. It
// returns a fault of kind FaultRepeat or FaultFork, or "" where it is neither.
func (d *doubt) among(held []store.HeldEntry) string {
	e := d.entry
	for _, h := range held {
		if h.Hash == e.Hash.String() && h.Type == string(e.Type) && h.DataSHA256 == schema.DigestOf(e.Data).String() {
			return fmt.Sprintf("%s: seq %d is there already, the same", FaultRepeat, e.Seq)
		}
	}
	if !d.behind || len(held) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: seq %d is there already with hash %s, this one has %s", FaultFork, e.Seq, held[len(held)-1].Hash, e.Hash)
}
