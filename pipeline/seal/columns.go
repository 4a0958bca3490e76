package seal

import (
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// ColumnsAgree tells whether the columns of a row say the same as its record t of
// what decides the session of the row, its place in it, and the names that are told
// of it.
func ColumnsAgree(t *schema.Trace, row *store.StoredTrace) bool {
	number, numbered := row.SequenceNumber, t.Context.HasSequenceNumber
	return row.TraceID == t.TraceID && row.AgentID == t.AgentID && row.CardID == t.CardID && row.SessionID == schema.SessionID(t) &&
		row.SessionEnd == t.Context.SessionEnd && row.EventTime.Equal(t.Timestamp) &&
		(number != nil) == numbered && (!numbered || *number == t.Context.SequenceNumber)
}
