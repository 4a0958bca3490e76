package seal

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/pipeline/subject"
)

// State is the progress of sealing one part.
type State string

// The two states of a Record.
const (
	Planned State = "planned" // the plan is fixed; file and rows may be missing
	Sealed  State = "sealed"  // the bundle exists and its digest is final
)

// Reasons for sealing a session.
const (
	ReasonEnded     = "ended"     // a trace ended the session
	ReasonRequested = "requested" // an operator requested it
	ReasonIdle      = "idle"
	ReasonSchedule  = "schedule"
	ReasonRotation  = "rotation" // the part has too many rows, bytes or cards, or is too old
)

// Record describes the newest part of a session in bucket seals. Writing it with compare-and-swap
// is the only commit point of sealing.
type Record struct {
	State         State     `json:"state"`
	Part          int64     `json:"part"`           // from 1
	StreamCreated time.Time `json:"stream_created"` // the stream that the sequences belong to
	After         uint64    `json:"after"`          // the part holds the session's traces above this sequence
	Cut           uint64    `json:"cut"`            // up to and including this sequence
	Traces        int64     `json:"traces"`
	ExportedAt    int64     `json:"exported_at"` // Unix seconds
	KeyID         string    `json:"key_id"`
	Previous      string    `json:"previous,omitempty"` // SHA-256 of the previous part
	LastPart      bool      `json:"last_part"`
	Reason        string    `json:"reason"`
	File          string    `json:"file"`             // below the bundle directory
	SHA256        string    `json:"sha256,omitempty"` // of the file, once sealed
	Session       Session   `json:"session,omitzero"`
	RowVersion    uint64    `json:"row_version,omitempty"` // of the newest row in table sessions; while planned: of the previous part
}

// Session is the input of the verdict on a part other than its traces. It is fixed in the plan,
// because a later lookup could find something else. Package session bounds its size.
type Session struct {
	Carry   *session.NextPart `json:"carry,omitempty"`   // from the previous part; once sealed: for the next part
	Answers *session.Answers  `json:"answers,omitempty"` // nil in a plan that was made before answers existed
}

// Key returns the key of a session in bucket seals.
func Key(agentID, sessionID string) string {
	return subject.Token(agentID) + "." + subject.Token(sessionID)
}

// LogKey is the key in bucket seals of the transparency log's head (events.LogHead). It collides
// with no session, since a session's key has a dot.
const LogKey = "log"

// SignerKey is the key in bucket seals of the id of the key that signs bundles.
const SignerKey = "signer"

func (r *Record) Encode() ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a seal: %w", err)
	}
	return data, nil
}

func Decode(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("decode a seal: %w", err)
	}
	return r, nil
}

// Covered returns the highest sequence that earlier parts of the same stream contain.
func (r *Record) Covered(streamCreated time.Time) uint64 {
	if !r.StreamCreated.Equal(streamCreated) {
		return 0
	}
	if r.State == Sealed {
		return r.Cut
	}
	return r.After
}
