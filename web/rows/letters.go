package rows

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// The queries of dead letters.
var (
	queryDeadLetters = query("dead_letters")
	queryLettersOf   = query("letters_of")
)

// LetterQuery selects dead letters. An empty member selects any.
type LetterQuery struct {
	Agents          store.Agents // a letter without an agent is for readers of every agent
	AgentID, Reason string
	All             bool         // also those that were resolved or replayed
	Sizes           bool         // takes the right to read their bytes
	After           ProblemPlace // only letters that come after this place
	Limit           int
}

// Letter is a dead letter without its bytes. Long texts are cut.
type Letter struct {
	SHA256   string    `ch:"digest_hex"`
	Received time.Time `ch:"received_at"`
	Stage    string    `ch:"stage"`
	Reason   string    `ch:"reason"`
	AgentID  string    `ch:"agent_id"`
	Subject  string    `ch:"subject_name"`
	TraceID  string    `ch:"trace"`
	Pointer  string    `ch:"pointer"` // of the first fault
	Fault    string    `ch:"fault"`
	Faults   uint64    `ch:"all_faults"`
	Bytes    uint64    `ch:"bytes"` // 0 without the right to read them
	Place    uint64    `ch:"place"`
	State    string    `ch:"state"` // open, or the mark
	MarkedBy string    `ch:"marked_by"`
	Handled  bool      `ch:"handled"`
}

// ListLetters returns the first Limit letters of a query, the newest first.
func (r *Reader) ListLetters(ctx context.Context, q LetterQuery) ([]Letter, error) {
	all := uint8(0)
	if q.All {
		all = 1
	}
	return read[Letter](ctx, r, "dead letters", queryDeadLetters, append(within(q.Agents), argument("agent", q.AgentID), argument("reason", q.Reason), argument("all", all),
		argument("raw", q.Sizes), argument("after_time", q.After.At), argument("after_place", q.After.Place), argument("limit", q.Limit))...)
}

// LettersOf returns the letters of some agents whose bytes have a SHA-256, in hexadecimal digits: the same bytes may
// have been refused several times. raw chooses whether their bytes are included.
func (r *Reader) LettersOf(ctx context.Context, agents store.Agents, sha256 string, raw bool) ([]store.MarkedLetter, error) {
	return read[store.MarkedLetter](ctx, r, "dead letters", queryLettersOf, append(within(agents), argument("sha256", sha256), argument("raw", raw))...)
}
