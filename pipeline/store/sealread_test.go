package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// The rows of the tests below have agents that all have a session at a time.
const sealedAgents, sealedLength = 200, 20

// addSealed adds n traces and their verdicts, from number first on, as one part of each table.
func addSealed(t *testing.T, s *Store, first, n int) {
	t.Helper()
	for table, columns := range map[string][2]string{
		"traces":   {"digest, raw", "SHA256(toString(number)), '{}'"},
		"verdicts": {"trace_digest, card_digest, engine_version, profile, status, verified_at", "SHA256(toString(number)), SHA256('card'), '1', 'spec', 'judged', now64(9)"},
	} {
		exec(t, s, "SYSTEM STOP MERGES "+local(table))
		exec(t, s, fmt.Sprintf("INSERT INTO %[1]s (event_hour, tenant, agent_id, trace_id, session_id, event_time, received_at, retain_until, stream_created, stream_sequence, %[2]s) "+
			"SELECT %[3]d, 'default', 'did:web:'||toString(number %% %[4]d), lower(hex(MD5(toString(number)))), 's-'||toString(number %% %[4]d)||'-'||toString(intDiv(number, %[5]d)), "+
			"toDateTime64('%[6]s', 9, 'UTC'), now64(9), now() + 86400, now64(9), number, %[7]s FROM numbers(%[8]d, %[9]d) "+
			"SETTINGS distributed_foreground_insert = 1, max_insert_block_size = 1000000, min_insert_block_size_rows = 1000000, max_block_size = 1000000",
			table, columns[0], eventHour(firstEvent), sealedAgents, sealedAgents*sealedLength, firstEvent.Format(time.DateTime), columns[1], first, n))
	}
}

// sealedQuery asks for one session of each agent, by its number.
func sealedQuery(number int) SessionQuery {
	q := SessionQuery{From: firstEvent, To: firstEvent}
	for agent := range sealedAgents {
		q.Sessions = append(q.Sessions, SessionKey{AgentID: fmt.Sprintf("did:web:%d", agent), SessionID: fmt.Sprintf("s-%d-%d", agent, number)})
	}
	return q
}

// Reading the sessions that are sealed together reads few rows of the other sessions of their
// hour: otherwise the cost of a seal grows with the traces of the hour, and sealing falls
// behind. A part with 14 granules of ended sessions precedes one with 200 sessions that end now.
func TestSealingReadsFewOtherRows(t *testing.T) {
	s, _ := open(t)
	const ending, ended = sealedAgents * sealedLength, 30 * sealedAgents * sealedLength
	addSealed(t, s, 0, ended)
	addSealed(t, s, ended, ending)
	var read atomic.Uint64
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { read.Add(p.Rows) }))
	found := 0
	for _, err := range s.SessionTraces(ctx, sealedQuery(ended/ending)) {
		if err != nil {
			t.Fatal(err)
		}
		found++
	}
	const stored = 2 * (ended + ending) // rows of traces and verdicts
	limit := uint64(stored / 10)
	if onShards { // each shard reads whole granules of 8,192 rows
		limit *= 2
	}
	if found != ending || read.Load() > limit {
		t.Errorf("%d traces, read from %d of %d rows; want %d from %d at most", found, read.Load(), stored, ending, limit)
	}
}

// The rows of sessions come in blocks of 128 also where parts overlap, as those of new rows do: the
// memory of a block of records grows step by step otherwise, and all steps are garbage.
func TestSealingReadsSmallBlocks(t *testing.T) {
	s, _ := open(t)
	const rows = sealedAgents * sealedLength
	addSealed(t, s, 0, rows/2)
	addSealed(t, s, rows/2, rows/2)
	var blocks atomic.Uint64
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProfileInfo(func(p *clickhouse.ProfileInfo) { blocks.Add(p.Blocks) }))
	found := 0
	for _, err := range s.SessionTraces(ctx, sealedQuery(0)) {
		if err != nil {
			t.Fatal(err)
		}
		found++
	}
	if least := uint64(rows / 128); found != rows || blocks.Load() < least {
		t.Errorf("%d rows in %d blocks, want %d in %d at least", found, blocks.Load(), rows, least)
	}
}
