package store

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// DriftBaseline is the baseline that drift compares the traces of one (agent, card) with.
type DriftBaseline struct {
	Owned
	AgentID        string        `ch:"agent_id"`
	CardID         string        `ch:"card_id"`
	BaselineID     schema.Digest `ch:"baseline_id"`
	Mode           string        `ch:"mode"` // how it was formed: first, rolling or pinned
	EngineVersion  string        `ch:"engine_version"`
	FormedAt       time.Time     `ch:"formed_at"`   // event time of the trace that completed it, or of the pin
	Received       time.Time     `ch:"received_at"` // when the broker took that trace, or when it was pinned
	Traces         uint32        `ch:"traces"`
	TraceIDs       []string      `ch:"trace_ids"`     // in order; fewer than Traces if an older engine began it
	TraceDigests   []string      `ch:"trace_digests"` // the same, in hexadecimal digits
	Features       []string      `ch:"features.name"`
	Weights        []float64     `ch:"features.weight"`
	EscalationRate float64       `ch:"escalation_rate"`
	Texts          uint32        `ch:"texts"` // number of selection reasonings that were sketched
}

// InsertDriftBaselines stores baselines. It is idempotent: duplicates collapse.
func (s *Store) InsertDriftBaselines(ctx context.Context, baselines []DriftBaseline) error {
	return insertRows(ctx, s, "drift_baselines", baselines)
}
