package rows

import (
	"context"
	"math"
	"time"

	"github.com/plumbline/plumbline/pipeline/store"
)

var queryProblemList = query("problems")

// ProblemQuery selects problems. An empty member selects any.
type ProblemQuery struct {
	Agents   store.Agents
	AgentID  string // one of Agents
	Type     string
	Least    int           // severity: 2 is MEDIUM and above, 3 HIGH and above, 4 CRITICAL
	From, To time.Time     // the trace's own time, or when its session was judged, lies within [From, To)
	After    *ProblemPlace // only problems that come after this place
	Limit    int
}

// ProblemPlace is the place of a problem in the list, the newest first.
type ProblemPlace struct {
	At    int64 // Unix nanoseconds
	Place uint64
}

// ListedProblem is a problem of some agent.
type ListedProblem struct {
	Time      time.Time `ch:"time"`
	AgentID   string    `ch:"agent_id"`
	Source    string    `ch:"source"` // violation, finding or session_finding
	Type      string    `ch:"type"`
	Severity  string    `ch:"severity"`
	Message   string    `ch:"message"`
	Field     string    `ch:"field"`
	SessionID string    `ch:"session_id"`
	TraceID   string    `ch:"trace_id"`
	Place     uint64    `ch:"place"`
}

// ListProblems returns the first Limit problems of a query.
func (r *Reader) ListProblems(ctx context.Context, q ProblemQuery) ([]ListedProblem, error) {
	after := ProblemPlace{At: math.MaxInt64}
	if q.After != nil {
		after = *q.After
	}
	return read[ListedProblem](ctx, r, "problems", queryProblemList, append(within(q.Agents), argument("agent", q.AgentID), argument("type", q.Type), argument("least", uint8(q.Least)),
		argument("from", q.From.UnixNano()), argument("to", q.To.UnixNano()), argument("from_hour", hour(q.From)), argument("to_hour", hour(q.To)),
		argument("after_time", after.At), argument("after_place", after.Place), argument("limit", q.Limit))...)
}
