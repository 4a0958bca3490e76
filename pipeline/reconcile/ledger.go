package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/events"
	"github.com/plumbline/plumbline/pipeline/keystore"
	"github.com/plumbline/plumbline/pipeline/opledger"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/walk"
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
		c.skip(fmt.Sprintf("ledger: there is no directory %s", c.Ledger))
		return err
	}
	l := &ledgerCheck{check: c, claimed: map[string]bool{}}
	if l.until, err = c.Client.StreamState(ctx, stream.Ledger); err != nil {
		return err
	}
	l.settled, err = c.await(ctx, func() (bool, error) {
		reached, err := c.Store.LedgerReached(ctx, l.until.Created)
		return reached >= l.until.LastSequence, err
	})
	if err != nil {
		return err
	}
	if !l.settled {
		c.skip("ledger: its newest events are not in the database yet: is the exporter running?")
	}
	l.rows = open(c, c.Store.OperatorEntries(ctx), func(r *store.LedgerEntry) place { return placeInFiles(r.File, r.Seq) })
	defer l.rows.close()
	l.events = open(c, walk.Messages(ctx, c.Client, stream.Ledger, l.until), func(m *stream.Message) place { return place{sequence: m.Sequence} })
	defer l.events.close()
	if l.events.head != nil {
		l.first = l.events.head.Sequence
	}
	err = opledger.Walk(c.Ledger, l.entry, func(file string, fault error) {
		c.differ(Difference{Kind: LedgerBroken, File: file}, "%v", fault)
	})
	if err != nil {
		return err
	}
	l.rows.rest(l.foreignRow)
	l.events.rest(l.unchained)
	l.checkUnclaimed()
	return nil
}

// placeInFiles returns a place that orders rows as the files order entries: the number of the file
// replaces the stream.
func placeInFiles(file, seq uint64) place {
	return place{time.Unix(int64(file), 0), seq}
}

func (l *ledgerCheck) entry(e *opledger.Placed) error {
	l.count().LedgerEntries++
	l.compareRow(e)
	if e.Type == ledger.Genesis {
		return l.failed
	}
	event, err := e.Event()
	if err != nil {
		return l.failed // the file's fault is reported
	}
	l.compareEvent(e, &event)
	switch e.Type {
	case ledger.Claim:
		l.claim(e, &event)
	case ledger.Meta:
		l.announcedKey(e, &event)
		l.fail(l.announcedHead(&event))
	}
	return l.failed
}

func aboutEntry(kind Kind, e *opledger.Placed) Difference {
	return Difference{Kind: kind, Sequence: e.Position.Sequence}
}

func (l *ledgerCheck) compareRow(e *opledger.Placed) {
	rows := l.rows.take(placeInFiles(e.File, e.Seq), l.foreignRow)
	switch {
	case len(rows) > 0:
	case !l.settled || e.At.After(l.until.LastReceived):
		l.count().UnderWay++
	default:
		l.differ(aboutEntry(LedgerRow, e), "entry %d of file %d has no row", e.Seq, e.File)
	}
	for _, r := range rows {
		l.count().LedgerRows++
		if r.Type != string(e.Type) || r.Data != string(e.Data) || r.Hash != e.Hash.String() || r.Sequence != e.Position.Sequence || !r.At.Equal(e.At) {
			l.differ(aboutEntry(LedgerRow, e), "the row of entry %d of file %d is a %s with the hash %.64s, the file has a %s with %s",
				e.Seq, e.File, r.Type, r.Hash, e.Type, e.Hash)
		}
	}
}

func (l *ledgerCheck) foreignRow(r *store.LedgerEntry) {
	l.count().LedgerRows++
	l.differ(Difference{Kind: LedgerRow, Sequence: r.Sequence}, "a row says entry %d of file %d is a %s, and no file has it", r.Seq, r.File, r.Type)
}

// compareEvent compares an entry with its message. An entry from an earlier stream, or of an
// event that the stream no longer holds, has none.
func (l *ledgerCheck) compareEvent(e *opledger.Placed, event *opledger.Event) {
	if !event.Stream.Equal(l.until.Created) || event.Sequence < l.first || event.Sequence > l.until.LastSequence {
		return
	}
	messages := l.events.take(place{sequence: event.Sequence}, l.unchained)
	if len(messages) == 0 {
		l.differ(aboutEntry(LedgerEvent, e), "entry %d of file %d is of an event that the stream does not hold there", e.Seq, e.File)
		return
	}
	l.count().LedgerEvents++
	said, err := eventOf(messages[0], event.Stream)
	if err == nil {
		said.Data, err = ledger.Canonical(said.Data)
	}
	if err != nil || said.Type != event.Type || said.ID != event.ID || !said.Received.Equal(event.Received) || !bytes.Equal(said.Data, event.Data) {
		l.differ(aboutEntry(LedgerEvent, e), "entry %d of file %d differs from its event", e.Seq, e.File)
	}
}

func eventOf(m *stream.Message, created time.Time) (*opledger.Event, error) {
	parsed, err := wire.ParseEvent(m.Subject, m.ID(), m.Data)
	if err != nil {
		return nil, err
	}
	event := &opledger.Event{Type: parsed.Type, ID: parsed.ID, Data: parsed.Data, Stream: created, Sequence: m.Sequence, Received: m.Received}
	return event, event.Check()
}

// unchained reports a message without an entry.
func (l *ledgerCheck) unchained(m *stream.Message) {
	l.count().LedgerEvents++
	event, err := eventOf(m, l.until.Created)
	switch {
	case err != nil: // it is not an event, so it is never chained
	case !l.settled:
		l.count().UnderWay++
	default:
		l.differ(Difference{Kind: LedgerEvent, Sequence: m.Sequence}, "event %s %q of the stream is not in the ledger", event.Type, event.ID)
	}
}

// claim compares a CLAIM with the bundle's row.
func (l *ledgerCheck) claim(e *opledger.Placed, event *opledger.Event) {
	l.count().Claims++
	var claim events.Claim
	if err := json.Unmarshal(event.Data, &claim); err != nil {
		l.differ(aboutEntry(ClaimForeign, e), "entry %d of file %d does not claim a bundle: %v", e.Seq, e.File, err)
		return
	}
	d := Difference{Kind: ClaimForeign, AgentID: claim.AgentID, SessionID: claim.SessionID, Part: claim.Part, File: claim.File, Sequence: e.Position.Sequence}
	row := l.recorded[claim.SHA256]
	switch {
	case row == nil && e.At.After(l.summary.StartedAt):
		l.count().UnderWay++
	case row == nil:
		l.differ(d, "bundle %.64s is claimed, and has no row", claim.SHA256)
		return
	case row.Shown() != claim.Shown():
		l.differ(d, "bundle %s is recorded as part %d of session %q of agent %q in %q", claim.SHA256, row.Part, row.SessionID, row.AgentID, row.File)
		return
	}
	l.claimed[claim.SHA256] = true
}

// checkUnclaimed reports bundles without a CLAIM entry.
func (l *ledgerCheck) checkUnclaimed() {
	if !l.settled {
		return
	}
	for _, row := range slices.SortedFunc(maps.Values(l.recorded), func(a, b *events.Claim) int {
		return cmp.Or(cmp.Compare(a.AgentID, b.AgentID), cmp.Compare(a.SessionID, b.SessionID), cmp.Compare(a.Part, b.Part), cmp.Compare(a.SHA256, b.SHA256))
	}) {
		switch {
		case l.claimed[row.SHA256]:
		case row.Part > l.sessionOf(row.AgentID, row.SessionID).settled():
			l.count().UnderWay++
		default:
			l.differ(Difference{Kind: ClaimMissing, AgentID: row.AgentID, SessionID: row.SessionID, Part: row.Part, File: row.File},
				"no entry of the ledger claims bundle %s", row.SHA256)
		}
	}
}

// readKeys reads the key list and checks all its lines.
func (c *check) readKeys(context.Context) error {
	if c.KeyList == "" {
		return nil
	}
	ring, err := keystore.ReadList(c.KeyList)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		c.differ(Difference{Kind: KeyListBroken, File: keystore.ListName}, "%v", err)
	default:
		c.keys, c.count().Keys = ring, uint64(len(ring.Keys()))
	}
	return nil
}

// announcedKey compares the key that an entry of the ledger announces with the list. A key of any
// purpose is on the list before the entry is written, and stays on it.
func (l *ledgerCheck) announcedKey(e *opledger.Placed, event *opledger.Event) {
	var said events.SigningKey
	if json.Unmarshal(event.Data, &said) != nil || said.Kind != events.KindSigningKey {
		return
	}
	if e.At.After(l.summary.StartedAt) { // the list was read before
		l.count().UnderWay++
		return
	}
	d := aboutEntry(KeyUnlisted, e)
	d.File = keystore.ListName
	if l.keys == nil {
		if l.summary.ByKind[KeyListBroken] == 0 && l.KeyList != "" {
			l.differ(d, "the ledger announces the %s key %s, and there is no key list", said.Purpose, said.KeyID)
		}
		return
	}
	for _, key := range l.keys.Keys() {
		if key.KeyID != said.KeyID {
			continue
		}
		if string(key.Purpose) != said.Purpose || !strings.EqualFold(key.PublicKey, said.PublicKey) {
			l.differ(d, "the ledger announces key %s for %s, the key list has it for %s", said.KeyID, said.Purpose, key.Purpose)
		}
		return
	}
	l.differ(d, "the ledger announces the %s key %s, and the key list does not contain it", said.Purpose, said.KeyID)
}
