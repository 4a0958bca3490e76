package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// The queries that look up stored drift rows.
var (
	queryKeptDriftAlerts    = mustQuery("kept_drift_alerts")
	queryKeptDriftBaselines = mustQuery("kept_drift_baselines")
	queryKeptDriftPoints    = mustQuery("kept_drift_points")
)

// PointKey identifies a drift point.
type PointKey struct {
	AgentID, CardID string
	TraceDigest     schema.Digest
	EngineVersion   string
}

// Key returns the key of the point.
func (p *DriftPoint) Key() PointKey {
	return PointKey{p.AgentID, p.CardID, p.TraceDigest, p.EngineVersion}
}

// KeptDriftPoints returns the stored rows of those points that are stored. Pass at most a few
// thousand.
func (s *Store) KeptDriftPoints(ctx context.Context, points []DriftPoint) (map[PointKey]*DriftPoint, error) {
	hours, digests := make([]uint32, len(points)), make([]schema.Digest, len(points))
	for i := range points {
		hours[i], digests[i] = EventHour(points[i].EventTime), points[i].TraceDigest
	}
	slices.Sort(hours)
	found := make(map[PointKey]*DriftPoint, len(points))
	for p, err := range eachRow[DriftPoint](ctx, s, queryKeptDriftPoints,
		clickhouse.Named("hours", slices.Compact(hours)), clickhouse.Named("digests", hexadecimal(digests))) {
		if err != nil {
			return nil, fmt.Errorf("look up %d drift points: %w", len(points), err)
		}
		found[p.Key()] = p
	}
	return found, nil
}

// KeptDriftAlerts returns which of the alerts are stored.
func (s *Store) KeptDriftAlerts(ctx context.Context, ids []schema.Digest) (map[schema.Digest]bool, error) {
	return s.keptIDs(ctx, "drift alerts", queryKeptDriftAlerts, ids)
}

// KeptDriftBaselines returns which of the baselines are stored.
func (s *Store) KeptDriftBaselines(ctx context.Context, ids []schema.Digest) (map[schema.Digest]bool, error) {
	return s.keptIDs(ctx, "drift baselines", queryKeptDriftBaselines, ids)
}

func (s *Store) keptIDs(ctx context.Context, what, query string, ids []schema.Digest) (map[schema.Digest]bool, error) {
	type row struct {
		Owned
		ID schema.Digest `ch:"id"`
	}
	found := make(map[schema.Digest]bool, len(ids))
	for r, err := range eachRow[row](ctx, s, query, clickhouse.Named("digests", hexadecimal(ids))) {
		if err != nil {
			return nil, fmt.Errorf("look up %d %s: %w", len(ids), what, err)
		}
		found[r.ID] = true
	}
	return found, nil
}
