package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
)

// ledgerCheck compares the ledger's files with stream LEDGER, the rows of the ledger, and the
// bundles that it claims.
type ledgerCheck struct {
	*check
	until   stream.State // of stream LEDGER: later events are not compared
	settled bool         // all events up to until are chained
	rows    *cursor[store.LedgerEntry]
	events  *cursor[stream.Message]
	first   uint64          // first event that the stream holds
	claimed map[string]bool // SHA-256 of bundles
}

// checkLedger checks the ledger. Every event of the stream is an entry, in order, and every entry
// is a row; the chain of the files is valid; every bundle has its CLAIM, and every CLAIM a
// bundle.
func (c *check) checkLedger(ctx context.Context) error {
	there, err := isDir(c.Ledger)
	if err != nil || !there {
		c.skip("ledger: the directory is not here")
		return err
	}
	l := &ledgerCheck{check: c, claimed: map[string]bool{}}
	if err := l.settle(ctx); err != nil {
		return err
	}
	if l.rows, err = open(c.Store.OperatorEntries(ctx), placeOfRow); err != nil {
		return err
	}
	defer l.rows.close()
	source, err := openReader(ctx, c.Client, stream.Ledger, l.until)
	if err != nil {
		return err
	}
	defer source.close()
	if l.events, err = open(source.all(ctx), func(m *stream.Message) place { return place{sequence: m.Sequence} }); err != nil {
		return err
	}
	defer l.events.close()
	if l.events.head != nil {
		l.first = l.events.head.Sequence
	}
	return l.walk()
}

// settle waits until the events that the stream holds now are chained and stored.
func (l *ledgerCheck) settle(ctx context.Context) (err error) {
	if l.until, err = l.Client.StreamState(ctx, stream.Ledger); err != nil {
		return err
	}
	l.settled, err = l.await(ctx, func() (bool, error) {
		reached, err := l.Store.LedgerReached(ctx, l.until.Created)
		return reached >= l.until.LastSequence, err
	})
	if err == nil && !l.settled {
		l.skip("ledger: its newest events are not in the database yet: is the exporter running?")
	}
	return err
}

// placeOfRow returns a place that orders rows as the files order entries: the number of the file
// replaces the stream.
func placeOfRow(r *store.LedgerEntry) place { return placeInFiles(r.File, r.Seq) }

func placeInFiles(file, seq uint64) place {
	return place{time.Unix(int64(file), 0), seq} // the number of a file
}

func (l *ledgerCheck) walk() error {
	var told []error
	err := opledger.Walk(l.Ledger, l.entry, func(file string, fault error) {
		told = append(told, l.differ(Difference{Kind: LedgerBroken, File: file}, "%v", fault))
	})
	if err = errors.Join(append(told, err)...); err != nil {
		return err
	}
	if err := l.rows.rest(l.foreignRow); err != nil {
		return err
	}
	if err := l.events.rest(l.unchained); err != nil {
		return err
	}
	return l.unclaimed()
}

// entry compares one entry of the files.
func (l *ledgerCheck) entry(e *opledger.Placed) error {
	l.count().LedgerEntries++
	if err := l.compareRow(e); err != nil || e.Type == ledger.Genesis {
		return err
	}
	event, err := e.Event()
	if err != nil {
		return nil // the file's fault is reported
	}
	if err := l.compareEvent(e, &event); err != nil {
		return err
	}
	switch e.Type {
	case ledger.Claim:
		return l.claim(e, &event)
	case ledger.Meta:
		if err := l.announcedKey(e, &event); err != nil {
			return err
		}
		return l.announcedHead(&event)
	}
	return nil
}

func aboutEntry(kind Kind, e *opledger.Placed) Difference {
	return Difference{Kind: kind, Sequence: e.Position.Sequence}
}

func (l *ledgerCheck) compareRow(e *opledger.Placed) error {
	at := placeInFiles(e.File, e.Seq)
	if err := l.rows.before(at, l.foreignRow); err != nil {
		return err
	}
	rows, err := l.rows.take(at)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		if !l.settled || e.At.After(l.until.LastReceived) {
			l.count().UnderWay++
			return nil
		}
		return l.differ(aboutEntry(LedgerRow, e), "entry %d of file %d has no row", e.Seq, e.File)
	}
	for _, r := range rows {
		l.count().LedgerRows++
		if r.Type != string(e.Type) || r.Data != string(e.Data) || r.Hash != e.Hash.String() || r.Sequence != e.Position.Sequence || !r.At.Equal(e.At) {
			if err := l.differ(aboutEntry(LedgerRow, e), "the row of entry %d of file %d is a %s with the hash %.64s, the file has a %s with %s",
				e.Seq, e.File, r.Type, r.Hash, e.Type, e.Hash); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *ledgerCheck) foreignRow(r *store.LedgerEntry) error {
	l.count().LedgerRows++
	return l.differ(Difference{Kind: LedgerRow, Sequence: r.Sequence}, "a row says entry %d of file %d is a %s, and no file has it", r.Seq, r.File, r.Type)
}

// compareEvent compares an entry with its message. An entry from an earlier stream, or of an
// event that the stream no longer holds, has none.
func (l *ledgerCheck) compareEvent(e *opledger.Placed, event *opledger.Event) error {
	if !event.Stream.Equal(l.until.Created) || event.Sequence < l.first || event.Sequence > l.until.LastSequence {
		return nil
	}
	at := place{sequence: event.Sequence}
	if err := l.events.before(at, l.unchained); err != nil {
		return err
	}
	messages, err := l.events.take(at)
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return l.differ(aboutEntry(LedgerEvent, e), "entry %d of file %d is of an event that the stream does not hold there", e.Seq, e.File)
	}
	l.count().LedgerEvents++
	if said, err := eventOf(messages[0], event.Stream); err != nil || !sameEvent(said, event) {
		return l.differ(aboutEntry(LedgerEvent, e), "entry %d of file %d does not say what its event says", e.Seq, e.File)
	}
	return nil
}

func eventOf(m *stream.Message, created time.Time) (*opledger.Event, error) {
	parsed, err := wire.ParseEvent(m.Subject, m.ID(), m.Data)
	if err != nil {
		return nil, err
	}
	event := &opledger.Event{Type: parsed.Type, ID: parsed.ID, Data: parsed.Data, Stream: created, Sequence: m.Sequence, Received: m.Received}
	return event, event.Check()
}

func sameEvent(a, b *opledger.Event) bool {
	data, err := ledger.Canonical(a.Data)
	return err == nil && a.Type == b.Type && a.ID == b.ID && a.Received.Equal(b.Received) && bytes.Equal(data, b.Data)
}

// unchained reports a message without an entry.
func (l *ledgerCheck) unchained(m *stream.Message) error {
	l.count().LedgerEvents++
	event, err := eventOf(m, l.until.Created)
	if err != nil {
		return nil // it is no event: nobody chains it
	}
	if !l.settled {
		l.count().UnderWay++
		return nil
	}
	return l.differ(Difference{Kind: LedgerEvent, Sequence: m.Sequence}, "event %s %q of the stream is not in the ledger", event.Type, event.ID)
}

// claim compares a CLAIM with the bundle's row.
func (l *ledgerCheck) claim(e *opledger.Placed, event *opledger.Event) error {
	l.count().Claims++
	var claim events.Claim
	if err := json.Unmarshal(event.Data, &claim); err != nil {
		return l.differ(aboutEntry(ClaimForeign, e), "entry %d of file %d claims no bundle: %v", e.Seq, e.File, err)
	}
	d := Difference{Kind: ClaimForeign, AgentID: claim.AgentID, SessionID: claim.SessionID, Part: claim.Part, File: claim.File, Sequence: e.Position.Sequence}
	row := l.recorded[claim.SHA256]
	switch {
	case row == nil && e.At.After(l.summary.StartedAt):
		l.count().UnderWay++
	case row == nil:
		return l.differ(d, "bundle %.64s is claimed, and there is no row of it", claim.SHA256)
	case row.Shown() != claim.Shown():
		return l.differ(d, "bundle %s is recorded as part %d of session %q of agent %q in %q", claim.SHA256, row.Part, row.SessionID, row.AgentID, row.File)
	}
	l.claimed[claim.SHA256] = true
	return nil
}

// unclaimed reports bundles without a CLAIM entry.
func (l *ledgerCheck) unclaimed() error {
	if !l.settled {
		return nil
	}
	var missing []*events.Claim
	for sha256, row := range l.recorded {
		if !l.claimed[sha256] {
			missing = append(missing, row)
		}
	}
	slices.SortFunc(missing, func(a, b *events.Claim) int {
		return cmp.Or(cmp.Compare(a.AgentID, b.AgentID), cmp.Compare(a.SessionID, b.SessionID), cmp.Compare(a.Part, b.Part), cmp.Compare(a.SHA256, b.SHA256))
	})
	for _, row := range missing {
		if row.Part > l.sessionOf(row.AgentID, row.SessionID).settled() {
			l.count().UnderWay++
			continue
		}
		d := Difference{Kind: ClaimMissing, AgentID: row.AgentID, SessionID: row.SessionID, Part: row.Part, File: row.File}
		if err := l.differ(d, "no entry of the ledger claims bundle %s", row.SHA256); err != nil {
			return err
		}
	}
	return nil
}
