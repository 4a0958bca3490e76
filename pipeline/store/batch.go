package store

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/plumbline/plumbline/schema"
)

// Meta is what the broker and the pipeline know about a trace in addition to its bytes.
type Meta struct {
	Received      time.Time // when the broker took the message: unchanged by a redelivery
	StreamCreated time.Time // creation time of the stream that Sequence belongs to
	Sequence      uint64
	Partition     int
	SessionID     string    // schema.SessionID of the trace
	RetainUntil   time.Time // zero: forever
	OTelTraceID   string    // of the publisher's span, hexadecimal; empty if it gave none
	OTelSpanID    string
	Redelivered   bool // the message was delivered before: its rows may already be stored
}

// TraceBatch collects traces and their verdicts column by column. It is reused between batches
// (Reset), and is not safe for concurrent use.
//
// Add copies slices but not strings. The strings of a decoded trace alias the message, so its
// bytes must not change until Reset.
type TraceBatch struct {
	tenant   string
	columns  *traceColumns
	traces   *block
	verdicts VerdictBatch
	bytes    int
}

// NewTraceBatch returns an empty batch for this store's tenant.
func (w Writer) NewTraceBatch() *TraceBatch {
	columns := new(traceColumns)
	return &TraceBatch{tenant: w.tenant, columns: columns, traces: newBlock("traces", queryDeliveredTraces, columns, columns), verdicts: *w.NewVerdictBatch()}
}

// Add appends a trace with its verdict. The caller may reuse t and v afterwards.
func (b *TraceBatch) Add(t *schema.Trace, m Meta, v *schema.Verdict) {
	if m.Redelivered {
		b.traces.suspects = append(b.traces.suspects, b.Len())
	}
	b.columns.add(b.tenant, t, &m)
	b.verdicts.Add(t, m, v)
	b.bytes += len(t.Raw) + rowOverhead
}

// LeaveOut keeps a row of the batch from being stored. Call it before InsertTraces.
func (b *TraceBatch) LeaveOut(row int) {
	b.traces.leaveOut(row)
	b.verdicts.block.leaveOut(row)
}

// LeftOut reports whether a row is kept from being stored.
func (b *TraceBatch) LeftOut(row int) bool { return b.traces.leftOut(row) }

// Stored returns how many rows are not kept from being stored.
func (b *TraceBatch) Stored() int { return b.Len() - len(b.traces.left) }

// VerdictID returns the VerdictID of a row's verdict.
func (b *TraceBatch) VerdictID(row int) schema.Digest {
	key := b.verdicts.columns.key(row)
	id := VerdictKey{TraceDigest: key.Digest, CardDigest: key.Card, EngineVersion: key.Engine, Profile: key.Profile, RevokedAt: time.Unix(0, key.Revoked)}
	return id.ID()
}

// rowOverhead is the approximate size of a row's other columns on the wire.
const rowOverhead = 512

func (b *TraceBatch) Len() int { return b.columns.len() }

// ID returns the identity of a row of the batch.
func (b *TraceBatch) ID(row int) RowID { return b.verdicts.ID(row) }

// Bytes returns the approximate size of the batch in memory and on the wire.
func (b *TraceBatch) Bytes() int { return b.bytes }

// Reset empties the batch for reuse. It keeps the batch's memory and releases the messages.
func (b *TraceBatch) Reset() {
	b.traces.reset()
	b.verdicts.Reset()
	b.bytes = 0
}

// VerdictBatch collects verdicts on traces that are already stored. It follows the rules of
// TraceBatch.
type VerdictBatch struct {
	tenant  string
	columns *verdictColumns
	block   *block
}

// NewVerdictBatch returns an empty batch for this store's tenant.
func (w Writer) NewVerdictBatch() *VerdictBatch {
	columns := new(verdictColumns)
	return &VerdictBatch{tenant: w.tenant, columns: columns, block: newBlock("verdicts", queryDeliveredVerdicts, columns, columns)}
}

// Add appends a verdict on t. If t was read from the store, m is what the store returned.
func (b *VerdictBatch) Add(t *schema.Trace, m Meta, v *schema.Verdict) {
	if m.Redelivered {
		b.block.suspects = append(b.block.suspects, b.Len())
	}
	b.columns.add(b.tenant, t, &m, v)
}

func (b *VerdictBatch) Len() int { return b.columns.len() }

// RowID identifies the rows of a trace and of its verdict.
type RowID struct {
	Sequence uint64
	Digest   schema.Digest // of the trace
	Card     schema.Digest // the card of the verdict; zero if it was unknown
}

// ID returns the identity of a row of the batch.
func (b *VerdictBatch) ID(row int) RowID {
	key := b.columns.key(row)
	return RowID{Sequence: key.Sequence, Digest: key.Digest, Card: key.Card}
}

func (b *VerdictBatch) Reset() { b.block.reset() }

// block holds the rows of one table that are sent as one INSERT, and the state of that INSERT. It
// is reused from batch to batch.
type block struct {
	table  string
	stored string // the query that looks rows up, from sql
	fields []field
	rows   rowKeys

	statement string
	suspects  []int // rows that may already be stored: their messages were redelivered
	left      []int // rows that are not to be stored, in rising order
	id        string
	attempts  int
	doubt     bool // an attempt failed: any row may already be stored
	unwritten bool // an attempt ended with ErrUnwritten: rows found by a lookup may be lost again
	done      bool
}

// rowKeys identifies the rows of a block in the database.
type rowKeys interface {
	len() int
	key(row int) rowKey
	hour(row int) uint32
}

// rowKey identifies one row of one message. A redelivered message has the same keys. The last
// four members belong to a verdict.
type rowKey struct {
	StreamCreated int64         `ch:"created"` // Unix nanoseconds
	Sequence      uint64        `ch:"stream_sequence"`
	Digest        schema.Digest `ch:"digest"` // of the trace

	Card    schema.Digest `ch:"card_digest"`
	Engine  string        `ch:"engine_version"`
	Profile string        `ch:"profile"`
	Revoked int64         `ch:"revoked"` // Unix nanoseconds
}

// newBlock creates the columns of a table (see makeFields), and a block for them.
func newBlock(table, stored string, rows rowKeys, columns any) *block {
	b := &block{table: table, stored: stored, rows: rows, fields: makeFields(reflect.ValueOf(columns).Elem())}
	b.statement = "INSERT INTO " + table + " (" + strings.Join(b.names(), ", ") + ")"
	return b
}

// names returns the names of the columns.
func (b *block) names() []string {
	names := make([]string, len(b.fields))
	for i := range b.fields {
		names[i] = b.fields[i].name
	}
	return names
}

func (b *block) reset() {
	for i := range b.fields {
		b.fields[i].reset()
	}
	b.suspects, b.left = b.suspects[:0], b.left[:0]
	b.id, b.attempts, b.doubt, b.unwritten, b.done = "", 0, false, false, false
}

func (b *block) leaveOut(row int) {
	at, _ := slices.BinarySearch(b.left, row)
	b.left = slices.Insert(b.left, at, row)
}

func (b *block) leftOut(row int) bool {
	_, left := slices.BinarySearch(b.left, row)
	return left
}

// pick returns the fields with only the given rows. A nil list means all rows.
func (b *block) pick(rows []int) []field {
	if rows == nil {
		return b.fields
	}
	out := make([]field, len(b.fields))
	for i, f := range b.fields {
		out[i] = field{name: f.name, kind: f.kind, values: f.pick(rows)}
	}
	return out
}

// originColumns are the columns that a trace, its verdict and its drift point share: whose row it is,
// and from which message it comes.
type originColumns struct {
	EventHour     *native[uint32] `ch:"event_hour UInt32"`
	Tenant        *native[string] `ch:"tenant LowCardinality(String)"`
	AgentID       *text           `ch:"agent_id String"`
	TraceID       *text           `ch:"trace_id String"`
	EventTime     *native[int64]  `ch:"event_time DateTime64(9, 'UTC')"`
	Received      *native[int64]  `ch:"received_at DateTime64(9, 'UTC')"`
	RetainUntil   *native[uint32] `ch:"retain_until DateTime('UTC')"`
	StreamCreated *native[int64]  `ch:"stream_created DateTime64(9, 'UTC')"`
	Sequence      *native[uint64] `ch:"stream_sequence UInt64"`
	CardID        *text           `ch:"card_id String"`
	SessionID     *text           `ch:"session_id String"`
}

func (c *originColumns) add(tenant, agentID, cardID, traceID string, event time.Time, m *Meta) {
	c.EventHour.Append(eventHour(event))
	c.Tenant.Append(tenant)
	c.AgentID.add(agentID)
	c.TraceID.add(traceID)
	c.EventTime.Append(nanoseconds(event))
	c.Received.Append(nanoseconds(m.Received))
	c.RetainUntil.Append(retention(m.RetainUntil))
	c.StreamCreated.Append(nanoseconds(m.StreamCreated))
	c.Sequence.Append(m.Sequence)
	c.CardID.add(cardID)
	c.SessionID.add(m.SessionID)
}

func (c *originColumns) len() int { return c.Sequence.Rows() }

func (c *originColumns) hour(row int) uint32 { return c.EventHour.Row(row) }

// traceColumns are the columns of table traces, with their types.
type traceColumns struct {
	originColumns
	Digest           *native[[]byte]                  `ch:"digest FixedString(32)"`
	Partition        *native[uint16]                  `ch:"stream_partition UInt16"`
	SessionEnd       *native[bool]                    `ch:"session_end Bool"`
	SequenceNumber   *native[proto.Nullable[uint64]]  `ch:"sequence_number Nullable(UInt64)"`
	ActionType       *native[string]                  `ch:"action_type LowCardinality(String)"`
	ActionName       *native[string]                  `ch:"action_name LowCardinality(String)"`
	ActionCategory   *native[string]                  `ch:"action_category LowCardinality(String)"`
	Selected         *text                            `ch:"selected String"`
	ValuesApplied    *list[string]                    `ch:"values_applied Array(LowCardinality(String))"`
	Confidence       *native[proto.Nullable[float64]] `ch:"confidence Nullable(Float64)"`
	HasEscalation    *native[bool]                    `ch:"has_escalation Bool"`
	Evaluated        *native[bool]                    `ch:"escalation_evaluated Bool"`
	Required         *native[bool]                    `ch:"escalation_required Bool"`
	EscalationID     *text                            `ch:"escalation_id String"`
	EscalationStatus *native[string]                  `ch:"escalation_status LowCardinality(String)"`
	Turn             *native[proto.Nullable[int64]]   `ch:"conversation_turn Nullable(Int64)"`
	PriorTraceIDs    *list[string]                    `ch:"prior_trace_ids Array(String)"`
	HasExecution     *native[bool]                    `ch:"has_execution Bool"`
	ToolName         *native[string]                  `ch:"tool_name LowCardinality(String)"`
	CostCents        *native[int64]                   `ch:"cost_cents Int64"`
	ExecutionError   *text                            `ch:"execution_error String"`
	OTelTraceID      *text                            `ch:"otel_trace_id String"`
	OTelSpanID       *text                            `ch:"otel_span_id String"`
	Raw              *text                            `ch:"raw String"`
}

func (c *traceColumns) add(tenant string, t *schema.Trace, m *Meta) {
	c.originColumns.add(tenant, t.AgentID, t.CardID, t.TraceID, t.Timestamp, m)
	c.Digest.Append(t.Digest[:])
	c.Partition.Append(uint16(m.Partition))
	c.SessionEnd.Append(t.Context.SessionEnd)
	c.SequenceNumber.Append(nullable(t.Context.SequenceNumber, t.Context.HasSequenceNumber))
	c.ActionType.Append(string(t.Action.Type))
	c.ActionName.Append(t.Action.Name)
	c.ActionCategory.Append(string(t.Action.Category))
	c.Selected.add(t.Decision.Selected)
	c.ValuesApplied.Append(t.Decision.ValuesApplied)
	c.Confidence.Append(nullable(t.Decision.Confidence, t.Decision.HasConfidence))
	c.HasEscalation.Append(t.Escalation.Present)
	c.Evaluated.Append(t.Escalation.Evaluated)
	c.Required.Append(t.Escalation.Required)
	c.EscalationID.add(t.Escalation.EscalationID)
	c.EscalationStatus.Append(string(t.Escalation.Status))
	c.Turn.Append(nullable(t.Context.ConversationTurn, t.Context.HasTurn))
	c.PriorTraceIDs.Append(t.Context.PriorTraceIDs)
	c.HasExecution.Append(t.Context.Execution.Present)
	c.ToolName.Append(t.Context.Execution.ToolName)
	c.CostCents.Append(t.Context.Execution.CostCents)
	c.ExecutionError.add(t.Context.Execution.Error)
	c.OTelTraceID.add(m.OTelTraceID)
	c.OTelSpanID.add(m.OTelSpanID)
	// Nothing writes to the record's bytes, so a string may share them.
	c.Raw.add(unsafe.String(unsafe.SliceData(t.Raw), len(t.Raw)))
}

func (c *traceColumns) key(row int) rowKey {
	return rowKey{StreamCreated: c.StreamCreated.Row(row), Sequence: c.Sequence.Row(row), Digest: schema.Digest(c.Digest.Row(row))}
}

// verdictColumns are the columns of table verdicts, with their types.
type verdictColumns struct {
	originColumns
	TraceDigest       *native[[]byte]  `ch:"trace_digest FixedString(32)"`
	CardDigest        *native[[]byte]  `ch:"card_digest FixedString(32)"`
	EngineVersion     *native[string]  `ch:"engine_version LowCardinality(String)"`
	Profile           *native[string]  `ch:"profile LowCardinality(String)"`
	RevokedAt         *native[int64]   `ch:"revoked_at DateTime64(9, 'UTC')"`
	VerifiedAt        *native[int64]   `ch:"verified_at DateTime64(9, 'UTC')"`
	Status            *native[string]  `ch:"status LowCardinality(String)"`
	Verified          *native[bool]    `ch:"verified Bool"`
	RecommendedAction *native[string]  `ch:"recommended_action LowCardinality(String)"`
	Violations        remarkColumns    `ch:"violations"`
	Warnings          remarkColumns    `ch:"warnings"`
	Findings          remarkColumns    `ch:"findings"`
	SimilarityScore   *native[float64] `ch:"similarity_score Float64"`
	Similarities      *list[float64]   `ch:"similarities Array(Float64)"`
	MeanSimilarity    *native[float64] `ch:"mean_similarity Float64"`
	Trend             *native[float64] `ch:"trend Float64"`
	AlgorithmVersion  *native[string]  `ch:"algorithm_version LowCardinality(String)"`
	ChecksPerformed   *list[string]    `ch:"checks_performed Array(LowCardinality(String))"`
	AbsentTriggers    *list[uint16]    `ch:"absent_triggers Array(UInt16)"`
	GroundedClaims    *native[uint32]  `ch:"grounded_claims UInt32"`
	InferredClaims    *native[uint32]  `ch:"inferred_claims UInt32"`
	Methodology       *native[string]  `ch:"methodology LowCardinality(String)"`
}

// remarkColumns are the columns of one kind of remarks: violations, warnings or findings.
type remarkColumns struct {
	Types        *list[string] `ch:"type Array(LowCardinality(String))"`
	Severities   *list[string] `ch:"severity Array(LowCardinality(String))"`
	Descriptions *list[string] `ch:"description Array(String)"`
	Fields       *list[string] `ch:"trace_field Array(String)"`
}

func (c *remarkColumns) add(remarks []schema.Remark) {
	for i := range remarks {
		c.Types.addItem(remarks[i].Type)
		c.Severities.addItem(string(remarks[i].Severity))
		c.Descriptions.addItem(remarks[i].Description)
		c.Fields.addItem(remarks[i].Field)
	}
	c.Types.endRow()
	c.Severities.endRow()
	c.Descriptions.endRow()
	c.Fields.endRow()
}

func (c *verdictColumns) add(tenant string, t *schema.Trace, m *Meta, v *schema.Verdict) {
	c.originColumns.add(tenant, t.AgentID, t.CardID, t.TraceID, t.Timestamp, m)
	c.TraceDigest.Append(t.Digest[:])
	c.CardDigest.Append(v.Metadata.CardDigest[:])
	c.EngineVersion.Append(v.Metadata.EngineVersion)
	c.Profile.Append(v.Metadata.Profile)
	c.RevokedAt.Append(nanoseconds(v.Metadata.CardRevokedAt))
	c.VerifiedAt.Append(nanoseconds(v.Timestamp))
	c.Status.Append(string(v.Status))
	c.Verified.Append(v.Verified)
	c.RecommendedAction.Append(string(v.RecommendedAction))
	c.Violations.add(v.Violations)
	c.Warnings.add(v.Warnings)
	c.Findings.add(v.Findings)
	c.SimilarityScore.Append(v.SimilarityScore)
	c.Similarities.Append(v.Metadata.Similarity.Similarities)
	c.MeanSimilarity.Append(v.Metadata.Similarity.MeanSimilarity)
	c.Trend.Append(v.Metadata.Similarity.Trend)
	c.AlgorithmVersion.Append(v.Metadata.AlgorithmVersion)
	c.ChecksPerformed.Append(v.Metadata.ChecksPerformed)
	for _, index := range v.Metadata.AbsentTriggers {
		c.AbsentTriggers.addItem(uint16(index))
	}
	c.AbsentTriggers.endRow()
	c.GroundedClaims.Append(uint32(v.Metadata.GroundedClaims))
	c.InferredClaims.Append(uint32(v.Metadata.InferredClaims))
	c.Methodology.Append(v.Metadata.Methodology)
}

func (c *verdictColumns) key(row int) rowKey {
	return rowKey{
		StreamCreated: c.StreamCreated.Row(row), Sequence: c.Sequence.Row(row), Digest: schema.Digest(c.TraceDigest.Row(row)),
		Card: schema.Digest(c.CardDigest.Row(row)), Engine: c.EngineVersion.Row(row), Profile: c.Profile.Row(row), Revoked: c.RevokedAt.Row(row),
	}
}
