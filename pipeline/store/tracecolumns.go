package store

import (
	"unsafe"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/plumbline/plumbline/schema"
)

// traceColumns are the columns of table traces.
type traceColumns struct {
	eventHour    *native[uint32]
	tenant       *native[string]
	agentID      text
	traceID      text
	digest       digests
	eventTime    *native[int64]
	receivedAt   *native[int64]
	retainUntil  *native[uint32]
	streamAt     *native[int64]
	sequence     *native[uint64]
	partition    *native[uint16]
	cardID       text
	sessionID    text
	sessionEnd   *native[bool]
	sequenceNo   *native[proto.Nullable[uint64]]
	actionType   *native[string]
	actionName   *native[string]
	category     *native[string]
	selected     text
	valuesUsed   lists[string]
	confidence   *native[proto.Nullable[float64]]
	escalation   *native[bool]
	evaluated    *native[bool]
	required     *native[bool]
	escalationID text
	status       *native[string]
	turn         *native[proto.Nullable[int64]]
	priorIDs     lists[string]
	execution    *native[bool]
	toolName     *native[string]
	costCents    *native[int64]
	execError    text
	raw          text
}

func newTraceColumns() *traceColumns {
	return &traceColumns{
		eventHour: newUInt32s(), tenant: newWords(), digest: newDigests(),
		eventTime: newInt64s(), receivedAt: newInt64s(), retainUntil: newUInt32s(),
		streamAt: newInt64s(), sequence: newUInt64s(), partition: newUInt16s(),
		sessionEnd: newBools(), sequenceNo: newMaybe(func() proto.ColumnOf[uint64] { return new(proto.ColUInt64) }),
		actionType: newWords(), actionName: newWords(), category: newWords(),
		valuesUsed: newLists(newWordItems), confidence: newMaybe(newFloatItems),
		escalation: newBools(), evaluated: newBools(), required: newBools(), status: newWords(),
		turn:     newMaybe(func() proto.ColumnOf[int64] { return new(proto.ColInt64) }),
		priorIDs: newLists(func() proto.ColumnOf[string] { return new(proto.ColStr) }),

		execution: newBools(), toolName: newWords(), costCents: newInt64s(),
	}
}

func (c *traceColumns) fields() []field {
	return []field{
		{"event_hour", kindUInt32, c.eventHour}, {"tenant", kindWord, c.tenant},
		{"agent_id", kindString, &c.agentID}, {"trace_id", kindString, &c.traceID}, {"digest", kindDigest, c.digest},
		{"event_time", kindTime, c.eventTime}, {"received_at", kindTime, c.receivedAt}, {"retain_until", kindSeconds, c.retainUntil},
		{"stream_created", kindTime, c.streamAt}, {"stream_sequence", kindUInt64, c.sequence}, {"stream_partition", kindUInt16, c.partition},
		{"card_id", kindString, &c.cardID}, {"session_id", kindString, &c.sessionID}, {"session_end", kindBool, c.sessionEnd},
		{"sequence_number", kindMaybeUInt64, c.sequenceNo},
		{"action_type", kindWord, c.actionType}, {"action_name", kindWord, c.actionName}, {"action_category", kindWord, c.category},
		{"selected", kindString, &c.selected}, {"values_applied", kindWords, c.valuesUsed}, {"confidence", kindMaybeFloat, c.confidence},
		{"has_escalation", kindBool, c.escalation}, {"escalation_evaluated", kindBool, c.evaluated},
		{"escalation_required", kindBool, c.required}, {"escalation_id", kindString, &c.escalationID}, {"escalation_status", kindWord, c.status},
		{"conversation_turn", kindMaybeInt64, c.turn}, {"prior_trace_ids", kindStrings, c.priorIDs},
		{"has_execution", kindBool, c.execution}, {"tool_name", kindWord, c.toolName},
		{"cost_cents", kindInt64, c.costCents}, {"execution_error", kindString, &c.execError},
		{"raw", kindString, &c.raw},
	}
}

func (c *traceColumns) add(tenant string, t *schema.Trace, m *Meta) {
	c.eventHour.Append(EventHour(t.Timestamp))
	c.tenant.Append(tenant)
	c.agentID.add(t.AgentID)
	c.traceID.add(t.TraceID)
	c.digest.add(&t.Digest)
	c.eventTime.Append(nanoseconds(t.Timestamp))
	c.receivedAt.Append(nanoseconds(m.Received))
	c.retainUntil.Append(retention(m.RetainUntil))
	c.streamAt.Append(nanoseconds(m.StreamCreated))
	c.sequence.Append(m.Sequence)
	c.partition.Append(uint16(m.Partition))
	c.cardID.add(t.CardID)
	c.sessionID.add(m.SessionID)
	c.actionType.Append(string(t.Action.Type))
	c.actionName.Append(t.Action.Name)
	c.category.Append(string(t.Action.Category))
	c.selected.add(t.Decision.Selected)
	c.valuesUsed.Append(t.Decision.ValuesApplied)
	c.confidence.Append(maybe(t.Decision.Confidence, t.Decision.HasConfidence))
	c.addEscalation(&t.Escalation)
	c.addContext(&t.Context)
	// Nothing writes to the record's bytes, so a string may share them.
	c.raw.add(unsafe.String(unsafe.SliceData(t.Raw), len(t.Raw)))
}

func (c *traceColumns) addEscalation(e *schema.Escalation) {
	c.escalation.Append(e.Present)
	c.evaluated.Append(e.Evaluated)
	c.required.Append(e.Required)
	c.escalationID.add(e.EscalationID)
	c.status.Append(string(e.Status))
}

func (c *traceColumns) addContext(x *schema.Context) {
	c.sessionEnd.Append(x.SessionEnd)
	c.sequenceNo.Append(maybe(x.SequenceNumber, x.HasSequenceNumber))
	c.turn.Append(maybe(x.ConversationTurn, x.HasTurn))
	c.priorIDs.Append(x.PriorTraceIDs)
	c.execution.Append(x.Execution.Present)
	c.toolName.Append(x.Execution.ToolName)
	c.costCents.Append(x.Execution.CostCents)
	c.execError.add(x.Execution.Error)
}

func (c *traceColumns) len() int { return c.sequence.Rows() }

func (c *traceColumns) hour(row int) uint32 { return c.eventHour.Row(row) }

func (c *traceColumns) key(row int) rowKey {
	return rowKey{streamCreated: c.streamAt.Row(row), sequence: c.sequence.Row(row), digest: c.digest.at(row)}
}
