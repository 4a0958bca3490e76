package store

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// DriftBaseline is what drift compared the traces of one (agent, card) with.
type DriftBaseline struct {
	Owned
	AgentID        string        `ch:"agent_id"`
	CardID         string        `ch:"card_id"`
	BaselineID     schema.Digest `ch:"baseline_id"`
	Mode           string        `ch:"mode"` // how it came about: first, rolling or pinned
	EngineVersion  string        `ch:"engine_version"`
	FormedAt       time.Time     `ch:"formed_at"`   // event time of the trace that completed it; of a pin, when it was pinned
	Received       time.Time     `ch:"received_at"` // of that trace, by the broker; of a pin, when it was pinned
	Traces         uint32        `ch:"traces"`
	TraceIDs       []string      `ch:"trace_ids"`     // in the order applied; fewer than Traces where a state of an older engine began it
	TraceDigests   []string      `ch:"trace_digests"` // likewise, in hexadecimal digits
	Features       []string      `ch:"features.name"`
	Weights        []float64     `ch:"features.weight"`
	EscalationRate float64       `ch:"escalation_rate"`
	Texts          uint32        `ch:"texts"` // selection reasonings that were sketched
}

// InsertDriftBaselines stores baselines. The same baseline again vanishes.
func (s *Store) InsertDriftBaselines(ctx context.Context, baselines []DriftBaseline) error {
	return insertRows(ctx, s, "drift_baselines", baselines)
}
