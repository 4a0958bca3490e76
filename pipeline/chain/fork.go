package chain

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// What an entry that does not follow may turn out to be, beside the kinds of
// ledger.Fault.
const (
	FaultRepeat = "repeat" // one that holds came again: no harm is done
	FaultFork   = "fork"   // another one holds under its number
)

// doubt is an entry that could be read and does not follow.
type doubt struct {
	row    int // of the batch
	entry  *ledger.Entry
	behind bool // the chain has its number already
}

// explain tells of entries that do not follow whether they repeat one that holds, or
// fork the ledger.
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

// among names what the entry is among those that hold under its number, the newest
// last; empty where it is neither.
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
