package seal

import (
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// ColumnsAgree reports whether the columns of a row agree with its record t on the values that
// determine the session of the row, its place in it, and the names that are reported.
func ColumnsAgree(t *schema.Trace, row *store.StoredTrace) bool {
	number, numbered := row.SequenceNumber, t.Context.HasSequenceNumber
	return row.TraceID == t.TraceID && row.AgentID == t.AgentID && row.CardID == t.CardID && row.SessionID == schema.SessionID(t) &&
		row.SessionEnd == t.Context.SessionEnd && row.EventTime.Equal(t.Timestamp) &&
		(number != nil) == numbered && (!numbered || *number == t.Context.SequenceNumber)
}
