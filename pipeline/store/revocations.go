package store

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/schema"
)

// revocationRow is a row of table revocations.
type revocationRow struct {
	Owned
	AgentID   string    `ch:"agent_id"`
	CardID    string    `ch:"card_id"`
	RevokedAt time.Time `ch:"revoked_at"`
	Reason    string    `ch:"reason"`
}

// InsertRevocations stores revocations of cards. It is idempotent: duplicates collapse.
func (s *Store) InsertRevocations(ctx context.Context, revoked []schema.Revocation) error {
	rows := make([]revocationRow, len(revoked))
	for i, r := range revoked {
		rows[i] = revocationRow{AgentID: r.AgentID, CardID: r.CardID, RevokedAt: r.RevokedAt, Reason: r.Reason}
	}
	return insertRows(ctx, s, "revocations", rows)
}

// TracesOfRevokedCards yields up to limit traces, earliest first, whose card was revoked by the
// trace's own time or by its receipt, and whose verdicts do not consider the revocation. It does
// not yield them again once such verdicts are stored (InsertVerdicts).
func (s *Store) TracesOfRevokedCards(ctx context.Context, revoked []schema.Revocation, limit int) iter.Seq2[*StoredTrace, error] {
	cards, times := make([]string, len(revoked)), make([]int64, len(revoked))
	for i, r := range revoked {
		cards[i], times[i] = r.CardID, r.RevokedAt.UnixNano()
	}
	return func(yield func(*StoredTrace, error) bool) {
		if len(revoked) == 0 {
			return
		}
		rows := eachRow[StoredTrace](ctx, s, queryRevokedCardTraces,
			clickhouse.Named("cards", cards), clickhouse.Named("revoked", times), clickhouse.Named("limit", limit))
		for t, err := range rows {
			if err != nil {
				yield(nil, fmt.Errorf("read the traces of %d revoked cards: %w", len(revoked), err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}
