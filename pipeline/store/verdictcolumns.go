package store

import (
	"github.com/ClickHouse/ch-go/proto"

	"github.com/plumbline/plumbline/schema"
)

// verdictColumns are the columns of table verdicts.
type verdictColumns struct {
	eventHour    *native[uint32]
	tenant       *native[string]
	agentID      text
	traceID      text
	traceDigest  digests
	cardDigest   digests
	engine       *native[string]
	profile      *native[string]
	revokedAt    *native[int64]
	verifiedAt   *native[int64]
	eventTime    *native[int64]
	receivedAt   *native[int64]
	retainUntil  *native[uint32]
	streamAt     *native[int64]
	sequence     *native[uint64]
	sessionID    text
	cardID       text
	status       *native[string]
	verified     *native[bool]
	recommended  *native[string]
	violations   remarkColumns
	warnings     remarkColumns
	findings     remarkColumns
	similarity   *native[float64]
	similarities lists[float64]
	mean         *native[float64]
	trend        *native[float64]
	algorithm    *native[string]
	checks       lists[string]
	absent       lists[uint16]
	grounded     *native[uint32]
	inferred     *native[uint32]
	methodology  *native[string]
}

// remarkColumns are the columns of one kind of remarks: violations, findings or warnings.
type remarkColumns struct {
	types, severities, descriptions, fields lists[string]
}

func newWordItems() proto.ColumnOf[string]   { return new(proto.ColStr).LowCardinality() }
func newTextItems() proto.ColumnOf[string]   { return new(proto.ColStr) }
func newFloatItems() proto.ColumnOf[float64] { return new(proto.ColFloat64) }

func newRemarkColumns() remarkColumns {
	return remarkColumns{newLists(newWordItems), newLists(newWordItems), newLists(newTextItems), newLists(newTextItems)}
}

func newVerdictColumns() *verdictColumns {
	return &verdictColumns{
		eventHour: newUInt32s(), tenant: newWords(), traceDigest: newDigests(), cardDigest: newDigests(),
		engine: newWords(), profile: newWords(), revokedAt: newInt64s(), verifiedAt: newInt64s(), eventTime: newInt64s(), receivedAt: newInt64s(),
		retainUntil: newUInt32s(), streamAt: newInt64s(), sequence: newUInt64s(),
		status: newWords(), verified: newBools(), recommended: newWords(),
		violations: newRemarkColumns(), warnings: newRemarkColumns(), findings: newRemarkColumns(),
		similarity: newFloats(), similarities: newLists(newFloatItems), mean: newFloats(), trend: newFloats(),
		algorithm: newWords(), checks: newLists(newWordItems),
		absent:   newLists(func() proto.ColumnOf[uint16] { return new(proto.ColUInt16) }),
		grounded: newUInt32s(), inferred: newUInt32s(), methodology: newWords(),
	}
}

func (c *verdictColumns) fields() []field {
	all := []field{
		{"event_hour", kindUInt32, c.eventHour}, {"tenant", kindWord, c.tenant},
		{"agent_id", kindString, &c.agentID}, {"trace_id", kindString, &c.traceID},
		{"trace_digest", kindDigest, c.traceDigest}, {"card_digest", kindDigest, c.cardDigest},
		{"engine_version", kindWord, c.engine}, {"profile", kindWord, c.profile},
		{"revoked_at", kindTime, c.revokedAt},
		{"verified_at", kindTime, c.verifiedAt}, {"event_time", kindTime, c.eventTime},
		{"received_at", kindTime, c.receivedAt}, {"retain_until", kindSeconds, c.retainUntil},
		{"stream_created", kindTime, c.streamAt}, {"stream_sequence", kindUInt64, c.sequence},
		{"session_id", kindString, &c.sessionID}, {"card_id", kindString, &c.cardID},
		{"status", kindWord, c.status}, {"verified", kindBool, c.verified}, {"recommended_action", kindWord, c.recommended},
		{"similarity_score", kindFloat64, c.similarity}, {"similarities", kindFloats, c.similarities},
		{"mean_similarity", kindFloat64, c.mean}, {"trend", kindFloat64, c.trend},
		{"algorithm_version", kindWord, c.algorithm}, {"checks_performed", kindWords, c.checks},
		{"absent_triggers", kindUInt16s, c.absent},
		{"grounded_claims", kindUInt32, c.grounded}, {"inferred_claims", kindUInt32, c.inferred},
		{"methodology", kindWord, c.methodology},
	}
	all = append(all, c.violations.list("violations")...)
	all = append(all, c.warnings.list("warnings")...)
	return append(all, c.findings.list("findings")...)
}

func (c *remarkColumns) list(name string) []field {
	return []field{
		{name + ".type", kindWords, c.types}, {name + ".severity", kindWords, c.severities},
		{name + ".description", kindStrings, c.descriptions}, {name + ".trace_field", kindStrings, c.fields},
	}
}

func (c *remarkColumns) add(remarks []schema.Remark) {
	for i := range remarks {
		c.types.addItem(remarks[i].Type)
		c.severities.addItem(string(remarks[i].Severity))
		c.descriptions.addItem(remarks[i].Description)
		c.fields.addItem(remarks[i].Field)
	}
	c.types.endRow()
	c.severities.endRow()
	c.descriptions.endRow()
	c.fields.endRow()
}

func (c *verdictColumns) add(tenant string, t *schema.Trace, m *Meta, v *schema.Verdict) {
	c.eventHour.Append(EventHour(t.Timestamp))
	c.tenant.Append(tenant)
	c.agentID.add(t.AgentID)
	c.traceID.add(t.TraceID)
	c.traceDigest.add(&t.Digest)
	c.eventTime.Append(nanoseconds(t.Timestamp))
	c.receivedAt.Append(nanoseconds(m.Received))
	c.retainUntil.Append(retention(m.RetainUntil))
	c.streamAt.Append(nanoseconds(m.StreamCreated))
	c.sequence.Append(m.Sequence)
	c.sessionID.add(m.SessionID)
	c.cardID.add(t.CardID)
	c.verifiedAt.Append(nanoseconds(v.Timestamp))
	c.status.Append(string(v.Status))
	c.verified.Append(v.Verified)
	c.recommended.Append(string(v.RecommendedAction))
	c.violations.add(v.Violations)
	c.warnings.add(v.Warnings)
	c.findings.add(v.Findings)
	c.similarity.Append(v.SimilarityScore)
	c.addMetadata(&v.Metadata)
}

func (c *verdictColumns) addMetadata(d *schema.Metadata) {
	c.cardDigest.add(&d.CardDigest)
	c.engine.Append(d.EngineVersion)
	c.profile.Append(d.Profile)
	c.revokedAt.Append(nanoseconds(d.CardRevokedAt))
	c.algorithm.Append(d.AlgorithmVersion)
	c.checks.Append(d.ChecksPerformed)
	c.similarities.Append(d.Similarity.Similarities)
	c.mean.Append(d.Similarity.MeanSimilarity)
	c.trend.Append(d.Similarity.Trend)
	for _, index := range d.AbsentTriggers {
		c.absent.addItem(uint16(index))
	}
	c.absent.endRow()
	c.grounded.Append(uint32(d.GroundedClaims))
	c.inferred.Append(uint32(d.InferredClaims))
	c.methodology.Append(d.Methodology)
}

func (c *verdictColumns) len() int { return c.sequence.Rows() }

func (c *verdictColumns) hour(row int) uint32 { return c.eventHour.Row(row) }

func (c *verdictColumns) key(row int) rowKey {
	return rowKey{
		streamCreated: c.streamAt.Row(row), sequence: c.sequence.Row(row), digest: c.traceDigest.at(row),
		card: c.cardDigest.at(row), engine: c.engine.Row(row), profile: c.profile.Row(row),
		revoked: c.revokedAt.Row(row),
	}
}
