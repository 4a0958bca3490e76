package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/plumbline/plumbline/schema"
)

// DriftPoint is what drift detection measured for one trace (AAP section 8.2).
type DriftPoint struct {
	Owned
	EventHour     uint32        `ch:"event_hour"` // only of a stored point
	AgentID       string        `ch:"agent_id"`
	CardID        string        `ch:"card_id"`
	TraceID       string        `ch:"trace_id"`
	TraceDigest   schema.Digest `ch:"trace_digest"`
	EngineVersion string        `ch:"engine_version"`
	EventTime     time.Time     `ch:"event_time"`
	Received      time.Time     `ch:"received_at"`
	RetainUntil   RetainUntil   `ch:"retain_until"`
	StreamCreated time.Time     `ch:"stream_created"`
	Sequence      uint64        `ch:"stream_sequence"`
	SessionID     string        `ch:"session_id"`
	Status        string        `ch:"status"`     // a status of aap/drift, or "late", "conflict"
	Similarity    *float64      `ch:"similarity"` // nil if the trace was not compared
	Threshold     float64       `ch:"threshold"`
	Streak        uint32        `ch:"streak"`
	Methodology   string        `ch:"methodology"` // why the thresholds are not those of section 8.3
	Mode          string        `ch:"mode"`        // a mode of aap/drift
	BaselineID    schema.Digest `ch:"baseline_id"` // zero if the trace was not compared
}

// pointColumns are the columns of table drift_points, with their types. There is a row for each
// trace, so they are filled without reflection.
type pointColumns struct {
	originColumns
	TraceDigest   *native[[]byte]                  `ch:"trace_digest FixedString(32)"`
	EngineVersion *native[string]                  `ch:"engine_version LowCardinality(String)"`
	Status        *native[string]                  `ch:"status LowCardinality(String)"`
	Similarity    *native[proto.Nullable[float64]] `ch:"similarity Nullable(Float64)"`
	Threshold     *native[float64]                 `ch:"threshold Float64"`
	Streak        *native[uint32]                  `ch:"streak UInt32"`
	Methodology   *native[string]                  `ch:"methodology LowCardinality(String)"`
	Mode          *native[string]                  `ch:"mode LowCardinality(String)"`
	BaselineID    *native[[]byte]                  `ch:"baseline_id FixedString(32)"`
}

func (c *pointColumns) add(tenant string, p *DriftPoint) {
	c.originColumns.add(tenant, p.AgentID, p.CardID, p.TraceID, p.EventTime, &Meta{
		Received: p.Received, StreamCreated: p.StreamCreated, Sequence: p.Sequence, SessionID: p.SessionID, RetainUntil: time.Time(p.RetainUntil),
	})
	c.TraceDigest.Append(p.TraceDigest[:])
	c.EngineVersion.Append(p.EngineVersion)
	c.Status.Append(p.Status)
	var similarity proto.Nullable[float64]
	if p.Similarity != nil {
		similarity = nullable(*p.Similarity, true)
	}
	c.Similarity.Append(similarity)
	c.Threshold.Append(p.Threshold)
	c.Streak.Append(p.Streak)
	c.Methodology.Append(p.Methodology)
	c.Mode.Append(p.Mode)
	c.BaselineID.Append(p.BaselineID[:])
}

// pointBlock is the memory of one insert of points, which the next one uses again.
type pointBlock struct {
	columns pointColumns
	*block
}

var pointBlocks = sync.Pool{New: func() any {
	b := new(pointBlock)
	b.block = newBlock("drift_points", "", nil, &b.columns) // nothing looks points up before it sends them again
	return b
}}

// InsertDriftPoints stores points. A point that is stored again is visible once.
func (w Writer) InsertDriftPoints(ctx context.Context, points []DriftPoint) error {
	if len(points) == 0 {
		return nil
	}
	b := pointBlocks.Get().(*pointBlock)
	defer pointBlocks.Put(b)
	defer b.reset()
	for i := range points {
		b.columns.add(w.tenant, &points[i])
	}
	if err := w.send(ctx, b.block, b.fields); err != nil {
		return fmt.Errorf("insert %d rows into drift_points: %w", len(points), err)
	}
	return nil
}
