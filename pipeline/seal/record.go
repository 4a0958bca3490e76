package seal

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// State is how far the sealing of one part has come.
type State string

// The two states of a Record.
const (
	Planned State = "planned" // the plan is fixed; file and rows may be missing
	Sealed  State = "sealed"  // the bundle exists and its digest is final
)

// Why a session is sealed.
const (
	ReasonEnded     = "ended"     // a trace said so
	ReasonRequested = "requested" // somebody asked
	ReasonIdle      = "idle"
	ReasonSchedule  = "schedule"
	ReasonRotation  = "rotation" // too many rows, or too old
)

// Record is the newest part of a session in bucket seals. Writing it with
// compare-and-swap is the one commit point of sealing.
type Record struct {
	State         State     `json:"state"`
	Part          int64     `json:"part"`           // from 1
	StreamCreated time.Time `json:"stream_created"` // which stream the sequences count in
	After         uint64    `json:"after"`          // the part holds the session's traces above this sequence
	Cut           uint64    `json:"cut"`            // up to this one
	Traces        int64     `json:"traces"`
	ExportedAt    int64     `json:"exported_at"` // Unix seconds
	KeyID         string    `json:"key_id"`
	Previous      string    `json:"previous,omitempty"` // SHA-256 of the part before
	LastPart      bool      `json:"last_part"`
	Reason        string    `json:"reason"`
	File          string    `json:"file"`             // below the bundle directory
	SHA256        string    `json:"sha256,omitempty"` // of the file, once sealed
	Session       Session   `json:"session,omitzero"`
}

// Session is what the verdict on a part rests on beside its traces. It is fixed
// with the plan, because looking again could find something else. Its size is
// bounded by package session.
type Session struct {
	Carry   *session.Carry   `json:"carry,omitempty"`   // from the part before; once sealed: for the next
	Answers *session.Answers `json:"answers,omitempty"` // nil in a plan that was made before there were any
}

// Key is the key of a session in bucket seals.
func Key(agentID, sessionID string) string {
	return subject.Token(agentID) + "." + subject.Token(sessionID)
}

// LogKey is the key in bucket seals under which the transparency log's head is kept
// (events.LogHead). No session has a key without a dot.
const LogKey = "log"

// SignerKey is the key in bucket seals under which the id of the key is kept that signs
// bundles.
const SignerKey = "signer"

// Encode writes a record.
func (r *Record) Encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a seal: %w", err)
	}
	return data, nil
}

// Decode reads a record.
func Decode(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("decode a seal: %w", err)
	}
	return r, nil
}

// Covered is the highest sequence that earlier parts of the same stream hold.
func (r *Record) Covered(streamCreated time.Time) uint64 {
	if !r.StreamCreated.Equal(streamCreated) {
		return 0
	}
	if r.State == Sealed {
		return r.Cut
	}
	return r.After
}
