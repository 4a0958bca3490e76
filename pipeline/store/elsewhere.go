package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/aap/session"
	"github.com/plumbline/plumbline/schema"
)

// NumberQuestion is a question of session verification about the sequence numbers of one agent.
type NumberQuestion struct {
	AgentID string
	session.NumberQuestion
}

// NumberedTraces answers all questions about sequence numbers with one query. For each question
// it returns the traces of the agent, in whole hours, at most session.MaxNumbers.
func (s *Store) NumberedTraces(ctx context.Context, questions []NumberQuestion) ([][]session.NumberedTrace, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	type row struct {
		Owned
		Question  uint32    `ch:"question"` // from 1
		SessionID string    `ch:"session_id"`
		Number    uint64    `ch:"number"`
		Earliest  time.Time `ch:"earliest"`
	}
	answers := make([][]session.NumberedTrace, len(questions))
	for r, err := range eachRow[row](ctx, s, queryNumberedTraces, numberArgs(questions)...) {
		if err != nil {
			return nil, fmt.Errorf("read the numbered traces of %d agents: %w", len(questions), err)
		}
		at := r.Question - 1
		answers[at] = append(answers[at], session.NumberedTrace{SessionID: r.SessionID, Number: r.Number, At: r.Earliest})
	}
	return answers, nil
}

// PrecedingQuestion asks for the trace that precedes a session by its agent's counter.
type PrecedingQuestion struct {
	AgentID   string
	SessionID string // traces of this session are left out
	session.NumberQuestion
}

// PrecedingNumbers answers all questions with one query. For each question it returns the trace
// with the greatest matching number, or nil if there is none.
func (s *Store) PrecedingNumbers(ctx context.Context, questions []PrecedingQuestion) ([]*session.NumberedTrace, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	type row struct {
		Owned
		Question  uint32    `ch:"question"` // from 1
		SessionID string    `ch:"last_session"`
		Number    uint64    `ch:"last_number"`
		At        time.Time `ch:"last_time"`
	}
	answers := make([]*session.NumberedTrace, len(questions))
	for r, err := range eachRow[row](ctx, s, queryPrecedingNumbers, precedingArgs(questions)...) {
		if err != nil {
			return nil, fmt.Errorf("read what went before %d sessions: %w", len(questions), err)
		}
		answers[r.Question-1] = &session.NumberedTrace{SessionID: r.SessionID, Number: r.Number, At: r.At}
	}
	return answers, nil
}

func precedingArgs(questions []PrecedingQuestion) []any {
	numbers := make([]NumberQuestion, len(questions))
	sessions, until := make([]string, len(questions)), make([]int64, len(questions))
	for i, q := range questions {
		numbers[i] = NumberQuestion{AgentID: q.AgentID, NumberQuestion: q.NumberQuestion}
		sessions[i], until[i] = q.SessionID, within(q.To).UnixNano()
	}
	return append(numberArgs(numbers), clickhouse.Named("sessions", sessions), clickhouse.Named("until", until))
}

func numberArgs(questions []NumberQuestion) []any {
	agents := make([]string, len(questions))
	least, greatest := make([]uint64, len(questions)), make([]uint64, len(questions))
	from, to := make([]uint32, len(questions)), make([]uint32, len(questions))
	for i, q := range questions {
		agents[i], least[i], greatest[i] = q.AgentID, q.Least, q.Greatest
		from[i], to[i] = EventHour(within(q.From)), EventHour(within(q.To))
	}
	return []any{
		clickhouse.Named("agents", agents), clickhouse.Named("least", least), clickhouse.Named("greatest", greatest),
		clickhouse.Named("hours_from", from), clickhouse.Named("hours_to", to), clickhouse.Named("limit", session.MaxNumbers),
	}
}

// within clamps a time to the range in which traces can be.
func within(t time.Time) time.Time {
	switch {
	case t.Before(schema.EarliestTime):
		return schema.EarliestTime
	case t.After(schema.LatestTime):
		return schema.LatestTime
	}
	return t
}

// PriorTraces returns, for each stored id among traceIDs, the agents that have it, each with the
// earliest event time.
func (s *Store) PriorTraces(ctx context.Context, traceIDs []string) ([]session.PriorTrace, error) {
	if len(traceIDs) == 0 {
		return nil, nil
	}
	type row struct {
		Owned
		TraceID  string    `ch:"trace_id"`
		AgentID  string    `ch:"agent_id"`
		Earliest time.Time `ch:"earliest"`
	}
	var found []session.PriorTrace
	for r, err := range eachRow[row](ctx, s, queryPriorTraces, clickhouse.Named("traces", traceIDs)) {
		if err != nil {
			return nil, fmt.Errorf("look for %d prior traces: %w", len(traceIDs), err)
		}
		found = append(found, session.PriorTrace{TraceID: r.TraceID, AgentID: r.AgentID, At: r.Earliest})
	}
	return found, nil
}
