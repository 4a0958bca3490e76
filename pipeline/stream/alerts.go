package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// Alert is one message of stream ALERTS.
type Alert struct {
	Kind  subject.AlertKind
	Agent string
	ID    string // of the verdict or alert, unchanged by replays
	Data  []byte // JSON
}

// PublishAlerts returns when all alerts are stored. An alert that is published again within the
// duplicate window is stored once.
func (c *Client) PublishAlerts(ctx context.Context, alerts []Alert) error {
	entries := make([]entry, len(alerts))
	for i, a := range alerts {
		entries[i] = entry{subject: subject.Alert(a.Kind, a.Agent), id: a.ID, data: a.Data}
	}
	if err := c.publish(ctx, entries); err != nil {
		return fmt.Errorf("publish %d alerts: %w", len(alerts), err)
	}
	return nil
}

// AppendLedger returns when the events are stored, in few batches. After an error some of them
// may be stored.
func (c *Client) AppendLedger(ctx context.Context, events ...ledger.Event) error {
	entries := make([]entry, len(events))
	for i, e := range events {
		kind := string(e.Type)
		entries[i] = entry{subject: ledgerSubject + kind, id: kind + "." + e.ID, data: e.Data}
	}
	err := c.unlessRefused(ctx, func(ctx context.Context) error { return c.publish(ctx, entries) }, ledgerSubject)
	if err != nil {
		return fmt.Errorf("append %d events to the ledger stream: %w", len(events), err)
	}
	return nil
}

// ParseLedgerEvent decodes a message of stream LEDGER.
func ParseLedgerEvent(m *Message) (ledger.Event, error) {
	kind, ok := strings.CutPrefix(m.Subject, ledgerSubject)
	if !ok || kind == "" {
		return ledger.Event{}, fmt.Errorf("%q is not the subject of a ledger event", m.Subject)
	}
	id, ok := strings.CutPrefix(m.ID(), kind+".")
	if !ok {
		return ledger.Event{}, errors.New("a ledger event without its id")
	}
	return ledger.Event{Type: ledger.Type(kind), ID: id, Data: m.Data}, nil
}

const bundleSubject = "aap.bundle.sealed"

// AnnounceBundle publishes a sealed bundle (JSON) on aap.bundle.sealed. The announcement is only
// a hint and may be lost. Table bundles is the record.
func (c *Client) AnnounceBundle(data []byte) error {
	if err := c.conn.Publish(bundleSubject, data); err != nil {
		return fmt.Errorf("announce a bundle: %w", classify(err))
	}
	return nil
}
