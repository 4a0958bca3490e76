// Package events defines what services write to the operator's ledger: for each kind of event the
// type of its entry (message-integrity RFC, section 3.1), its data and its id.
//
// It is a package of its own, apart from opledger, because ingest, keys and the tool write such
// events without linking the clients of the broker and the database, as opledger does.
//
// It owns these formats; docs/LEDGER.md lists them for readers. It does not own how an event
// reaches the ledger (pipeline/stream) or how it is chained (pipeline/opledger).
//
// Invariants: the same event has the same id, so it is stored once when it is published again
// within the broker's duplicate window; no event is larger than the broker's largest message.
package events

import (
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Kinds of VERIFY and META entries. Each of the two types has several.
const (
	KindDecisions  = "decisions"
	KindFindings   = "findings"
	KindSelfCheck  = "self_check"
	KindSigningKey = "signing_key"
	KindLogHead    = "log_head"

	KindWebhookGivenUp = "webhook_given_up"

	KindSessionEnd  = "session_end"
	KindDeadLetters = "dead_letters"
)

// Boot is the start of a service. It shows readers of the ledger when the processes that wrote it
// changed.
type Boot struct {
	Service   string    `json:"service"`
	StartedAt time.Time `json:"started_at"`
	Version   string    `json:"version"`
}

func (b Boot) Event() (ledger.Event, error) {
	b.StartedAt = b.StartedAt.UTC()
	return event(ledger.Boot, b.Service+"."+b.StartedAt.Format(time.RFC3339Nano), b)
}

// Claim describes a sealed bundle.
type Claim struct {
	AgentID   string `json:"agent_id"`
	SessionID string `json:"session_id"`
	Part      int64  `json:"part"`
	File      string `json:"file"`
	SHA256    string `json:"sha256"` // of the .tar.gz
}

func (c Claim) Event() (ledger.Event, error) { return event(ledger.Claim, c.SHA256, c.Shown()) }

// Shown returns the claim in the form that the public ledger holds: without the secrets that an
// id may contain.
func (c Claim) Shown() Claim {
	c.AgentID, _ = redact.AllRules.Text(c.AgentID)
	c.SessionID, _ = redact.AllRules.Text(c.SessionID)
	return c
}

// Decisions are the decisions on messages during about a second.
type Decisions struct {
	Kind   string          `json:"kind"` // KindDecisions
	Count  int             `json:"count"`
	SHA256 []schema.Digest `json:"sha256"` // of each decision's record
}

func (d Decisions) Event() (ledger.Event, error) {
	d.Kind, d.Count = KindDecisions, len(d.SHA256)
	return verify(d)
}

// Findings are the alerts of about a second by the verifier, drift and the exporter.
type Findings struct {
	Kind   string    `json:"kind"` // KindFindings
	Count  int       `json:"count"`
	Stream time.Time `json:"stream"` // creation time of stream ALERTS
	Alerts []Alert   `json:"alerts"`
}

// Alert is one message of stream ALERTS.
type Alert struct {
	Sequence uint64        `json:"sequence"` // in the stream
	ID       string        `json:"id"`
	SHA256   schema.Digest `json:"sha256"` // of its bytes
}

func (f Findings) Event() (ledger.Event, error) {
	f.Kind, f.Count, f.Stream = KindFindings, len(f.Alerts), f.Stream.UTC()
	return verify(f)
}

// SelfCheck is the result of a comparison of stream, rows, bundles and ledger.
type SelfCheck struct {
	Kind       string        `json:"kind"` // KindSelfCheck
	StartedAt  time.Time     `json:"started_at"`
	FinishedAt time.Time     `json:"finished_at"`
	Good       bool          `json:"good"`
	Faults     int           `json:"faults"`
	SHA256     schema.Digest `json:"sha256"` // of the report as printed with --json
}

func (c SelfCheck) Event() (ledger.Event, error) {
	c.Kind, c.StartedAt, c.FinishedAt = KindSelfCheck, c.StartedAt.UTC(), c.FinishedAt.UTC()
	return verify(c)
}

// Retract is a card that was revoked.
type Retract struct{ schema.Revocation }

func (r Retract) Event() (ledger.Event, error) {
	r.Reason, _ = redact.AllRules.Text(r.Reason)
	return event(ledger.Retract, "card."+subject.Token(r.CardID), r.Revocation)
}

// SigningKey is a key that a service signs with from now on.
type SigningKey struct {
	Kind      string `json:"kind"` // KindSigningKey
	Purpose   string `json:"purpose"`
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"` // 64 hexadecimal digits
}

func (k SigningKey) Event() (ledger.Event, error) {
	k.Kind = KindSigningKey
	return event(ledger.Meta, "key."+k.Purpose+"."+k.KeyID, k)
}

// LogHead is the size and root of the transparency log. To remove the end or the whole of the log
// without notice, an attacker has to change this entry, too.
type LogHead struct {
	Kind   string `json:"kind"`   // KindLogHead
	Origin string `json:"origin"` // the log's name
	Size   int64  `json:"size"`   // leaves
	Root   string `json:"root"`   // base64, as in a checkpoint
}

// LogHeadOf returns the head that a checkpoint states.
func LogHeadOf(c *anchor.Checkpoint) LogHead {
	return LogHead{Kind: KindLogHead, Origin: c.Origin, Size: c.Size, Root: c.Root.String()}
}

// Checkpoint is the inverse of LogHeadOf.
func (h LogHead) Checkpoint() (*anchor.Checkpoint, error) {
	root, err := tlog.ParseHash(h.Root)
	if err != nil || h.Size < 0 || h.Origin == "" {
		return nil, fmt.Errorf("head of a transparency log: origin %.80q, size %d, root %.80q", h.Origin, h.Size, h.Root)
	}
	return &anchor.Checkpoint{Origin: h.Origin, Size: h.Size, Root: root}, nil
}

func (h LogHead) Event() (ledger.Event, error) {
	h.Kind = KindLogHead
	return digested(ledger.Meta, "log.", h)
}

// WebhookGivenUp is an alert that an endpoint of webhooks did not get, and that is not tried again.
type WebhookGivenUp struct {
	Kind      string        `json:"kind"`     // KindWebhookGivenUp
	Endpoint  string        `json:"endpoint"` // its name
	WebhookID string        `json:"webhook_id"`
	Stream    time.Time     `json:"stream"`   // creation time of stream ALERTS
	Sequence  uint64        `json:"sequence"` // in the stream
	SHA256    schema.Digest `json:"sha256"`   // of the alert's bytes
	Attempts  int           `json:"attempts"` // of the process that gave it up
	Reason    string        `json:"reason"`   // "refused", "unavailable" or "unreadable"
}

func (w WebhookGivenUp) Event() (ledger.Event, error) {
	w.Kind, w.Stream = KindWebhookGivenUp, w.Stream.UTC()
	return event(ledger.Meta, fmt.Sprintf("webhook.%s.%d.%d", w.Endpoint, w.Stream.UnixNano(), w.Sequence), w)
}

// verify returns an event whose id is its data's digest.
func verify(data any) (ledger.Event, error) { return digested(ledger.Verify, "", data) }

// digested returns an event whose id is a prefix and its data's digest.
func digested(kind ledger.Type, prefix string, data any) (ledger.Event, error) {
	e, err := event(kind, "", data)
	e.ID = prefix + schema.DigestOf(e.Data).String()
	return e, err
}

func event(kind ledger.Type, id string, data any) (ledger.Event, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return ledger.Event{}, fmt.Errorf("encode a %s event for the ledger: %w", kind, err)
	}
	return ledger.Event{Type: kind, ID: id, Data: text}, nil
}
