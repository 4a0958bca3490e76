package rows

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

// The queries of the tail. A verdict on a trace that was received more than an hour before the times is not found:
// the parts of older traces are not read.
var (
	queryTail       = query("tail")
	queryTailCounts = query("tail_counts")
)

// Tail selects verdicts by when they were made: (After, Until]. An empty member selects any.
type Tail struct {
	Agents       store.Agents
	AgentID      string
	Action       string // proceed, review or deny
	Problems     bool   // only verdicts with a violation or a finding
	After, Until time.Time
}

func (t Tail) args(base time.Time) []any {
	problems := uint8(0)
	if t.Problems {
		problems = 1
	}
	return append(within(t.Agents), since(base.Add(-time.Hour)), argument("agent", t.AgentID), argument("action", t.Action), argument("problems", problems),
		argument("after", t.After.UnixNano()), argument("until", t.Until.UnixNano()), argument("base", base.UnixNano()))
}

// TailCount counts verdicts as they are stored.
type TailCount struct {
	Fresh  uint64 `ch:"fresh"`  // within (After, Until]
	Before uint64 `ch:"before"` // within (base, After]
}

// CountTail returns the counts.
func (r *Reader) CountTail(ctx context.Context, t Tail, base time.Time) (TailCount, error) {
	counts, _, err := first[TailCount](ctx, r, "the number of verdicts", queryTailCounts, t.args(base)...)
	return counts, err
}

// Judged is a verdict as the tail shows it.
type Judged struct {
	At       time.Time `ch:"verified_at" json:"at"`
	AgentID  string    `ch:"agent_id" json:"agent"`
	Session  string    `ch:"session_id" json:"session"`
	TraceID  string    `ch:"trace_id" json:"trace"`
	Said     string    `ch:"said" json:"said"`   // the recommended action, or "card unknown"
	Types    []string  `ch:"types" json:"types"` // of the first violations and findings
	AllTypes uint64    `ch:"all_types" json:"all_types"`
	Address  string    `json:"address"` // of the trace's page
}

// ReadTail returns the newest verdicts of a selection, the newest first, at most limit.
func (r *Reader) ReadTail(ctx context.Context, t Tail, limit int) ([]Judged, error) {
	return read[Judged](ctx, r, "new verdicts", queryTail, append(t.args(t.After), argument("limit", limit))...)
}
