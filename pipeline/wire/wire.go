// Package wire defines what the pipeline's stages write to one another: receipts, dead letters and
// their marks, alerts, results of handshakes, and events of the operator's ledger, each as a
// message of a stream.
//
// It owns the subject, the id, the headers and the body of these messages, and reads them again.
// It does not own the streams or the connection (pipeline/stream), how an agent is named
// (pipeline/subject), or what follows from a message. It does no I/O and links no NATS.
//
// Invariants: equal content has an equal id, and different content a different one, so a message
// that is published again is stored once. What a function here writes, its counterpart reads back
// unchanged. Receipts are read strictly: an unknown, missing or repeated member is an error.
package wire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// The beginnings of the subjects of messages that do not name an agent.
const (
	ReceiptPrefix    = "receipts."   // then the partition
	DeadLetterPrefix = "deadletter." // then the stage
	EventPrefix      = "ledger."     // then the type of the event
)

// Message is a message that will be published.
type Message struct {
	Subject string
	ID      string              // the broker stores an id once within the duplicate window
	Header  map[string][]string // in addition to the id; nil: none
	Data    []byte
}

// Alert is one message of stream ALERTS.
type Alert struct {
	Kind  subject.AlertKind
	Agent string
	ID    string // of the verdict or alert, unchanged by replays
	Data  []byte // JSON
}

// Message returns the alert as it is published.
func (a Alert) Message() (Message, error) {
	return Message{Subject: subject.Alert(a.Kind, a.Agent), ID: a.ID, Data: a.Data}, nil
}

// DriftAlertID returns the id of the message about an event of a drift alert. The message has the
// alert's own id if it was published before alerts had revisions.
func DriftAlertID(a *schema.DriftAlert) string {
	if a.Revision == 0 {
		return a.AlertID.String()
	}
	return fmt.Sprintf("%s.%d", a.AlertID, a.Revision)
}

// CoherenceResult is one message of stream COHERENCE.
type CoherenceResult struct {
	Initiator string // the agent that began the handshake
	ID        string // of the handshake, unchanged when it is published again
	Data      []byte // JSON
}

// Message returns the result as it is published.
func (r CoherenceResult) Message() (Message, error) {
	return Message{Subject: subject.Coherence(r.Initiator), ID: r.ID, Data: r.Data}, nil
}

// EventMessage returns an event of the operator's ledger as it is published on stream LEDGER.
func EventMessage(e ledger.Event) (Message, error) {
	kind := string(e.Type)
	return Message{Subject: EventPrefix + kind, ID: kind + "." + e.ID, Data: e.Data}, nil
}

// ParseEvent decodes a message of stream LEDGER.
func ParseEvent(subject, id string, data []byte) (ledger.Event, error) {
	kind, ok := strings.CutPrefix(subject, EventPrefix)
	if !ok || kind == "" {
		return ledger.Event{}, fmt.Errorf("%q is not the subject of a ledger event", subject)
	}
	if id, ok = strings.CutPrefix(id, kind+"."); !ok {
		return ledger.Event{}, errors.New("the message of a ledger event has no id")
	}
	return ledger.Event{Type: ledger.Type(kind), ID: id, Data: data}, nil
}
