package drift

import (
	"time"

	aapdrift "github.com/plumbline/plumbline/aap/drift"
	"github.com/plumbline/plumbline/pipeline/store"
)

// point returns the row of a trace's point, without the result of the comparison.
func (f *fold) point(e *entry, status aapdrift.Status) store.DriftPoint {
	return store.DriftPoint{
		AgentID:       e.series.agent,
		CardID:        e.series.card,
		TraceID:       e.sample.TraceID,
		TraceDigest:   e.sample.Digest,
		EngineVersion: aapdrift.EngineVersion,
		EventTime:     e.sample.EventTime,
		Received:      e.message.Received,
		RetainUntil:   store.RetainUntil(f.retainUntil(e.series.agent, e.message.Received)),
		StreamCreated: f.created,
		Sequence:      e.message.Sequence,
		SessionID:     e.session,
		Status:        string(status),
		Threshold:     f.params.SimilarityThreshold,
		Methodology:   f.methodology,
		Mode:          string(f.params.Mode),
	}
}

// baselineRow returns the row of a baseline.
func baselineRow(of seriesKey, b *aapdrift.Formed, formed, received time.Time) store.DriftBaseline {
	row := store.DriftBaseline{
		AgentID: of.agent, CardID: of.card, BaselineID: b.ID, Mode: string(b.Mode), EngineVersion: aapdrift.EngineVersion,
		FormedAt: formed, Received: received, Traces: uint32(b.Tally.Traces),
		EscalationRate: b.Tally.EscalationRate(), Texts: uint32(b.Reasoning.Texts),
	}
	for _, t := range b.Traces {
		row.TraceIDs, row.TraceDigests = append(row.TraceIDs, t.TraceID), append(row.TraceDigests, t.Digest.String())
	}
	for _, f := range b.Features {
		row.Features, row.Weights = append(row.Features, f.Key), append(row.Weights, f.Weight)
	}
	return row
}
