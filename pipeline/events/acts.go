package events

import (
	"time"

	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/ledger"
	"github.com/plumbline/plumbline/schema"
)

// What people and their programs ask for is in the ledger before it is done: a crash between the two steps leaves an
// entry of a request that was not carried out, and never a change without an entry. Who asked gets no answer then, and
// asks again, which is another entry.

// Asked says who asked, when, and from where.
type Asked struct {
	By   string    `json:"by"`   // name of the token; "open" where none is needed
	From string    `json:"from"` // FromAPI or FromConsole, as the request itself says
	At   time.Time `json:"at"`   // when ingest received the request
}

// Where a request comes from.
const (
	FromAPI     = "api"
	FromConsole = "console"
)

// SessionEnd is a request to seal a session with the traces up to a place in stream TRACES.
type SessionEnd struct {
	Kind            string `json:"kind"` // KindSessionEnd
	AgentID         string `json:"agent_id"`
	SessionID       string `json:"session_id"`
	ThroughSequence uint64 `json:"through_sequence"`
	Asked
}

func (s SessionEnd) Event() (ledger.Event, error) {
	s.Kind, s.At = KindSessionEnd, s.At.UTC()
	s.AgentID, _ = redact.AllRules.Text(s.AgentID)
	s.SessionID, _ = redact.AllRules.Text(s.SessionID)
	return digested(ledger.Meta, "end.", s)
}

// DeadLetters is what an operator does about dead letters: a mark of package wire. Those that are being replayed have
// an entry before their bytes are sent again, and another one before they are marked as replayed.
type DeadLetters struct {
	Kind   string          `json:"kind"` // KindDeadLetters
	Mark   string          `json:"mark"`
	SHA256 []schema.Digest `json:"sha256"` // of the letters' bytes
	Note   string          `json:"note,omitempty"`
	Asked
}

func (d DeadLetters) Event() (ledger.Event, error) {
	d.Kind, d.At = KindDeadLetters, d.At.UTC()
	d.Note, _ = redact.AllRules.Text(d.Note)
	return digested(ledger.Meta, "letters.", d)
}
