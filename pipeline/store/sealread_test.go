package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Reading the sessions that are sealed together reads few rows of the other sessions of their
// hour: otherwise the cost of a seal grows with the traces of the hour, and sealing falls
// behind. A part with 14 granules of ended sessions precedes one with 200 sessions that end now.
func TestSealingReadsFewOtherRows(t *testing.T) {
	s, _ := open(t)
	const agents, length, ended, ending = 200, 20, 30 * 200 * 20, 200 * 20
	add := func(first, n int) {
		for table, columns := range map[string][2]string{
			"traces":   {"digest, raw", "SHA256(toString(number)), '{}'"},
			"verdicts": {"trace_digest, card_digest, engine_version, profile, status, verified_at", "SHA256(toString(number)), SHA256('card'), '1', 'spec', 'judged', now64(9)"},
		} {
			exec(t, s, fmt.Sprintf("INSERT INTO %[1]s (event_hour, tenant, agent_id, trace_id, session_id, event_time, received_at, retain_until, stream_created, stream_sequence, %[2]s) "+
				"SELECT %[3]d, 'default', 'did:web:'||toString(number %% %[4]d), lower(hex(MD5(toString(number)))), 's-'||toString(number %% %[4]d)||'-'||toString(intDiv(number, %[5]d)), "+
				"toDateTime64('%[6]s', 9, 'UTC'), now64(9), now() + 86400, now64(9), number, %[7]s FROM numbers(%[8]d, %[9]d) "+
				"SETTINGS distributed_foreground_insert = 1, max_insert_block_size = 1000000, min_insert_block_size_rows = 1000000, max_block_size = 1000000",
				table, columns[0], eventHour(firstEvent), agents, agents*length, firstEvent.Format(time.DateTime), columns[1], first, n))
		}
	}
	for _, table := range []string{"traces", "verdicts"} {
		exec(t, s, "SYSTEM STOP MERGES "+local(table))
	}
	add(0, ended)
	add(ended, ending)
	q := SessionQuery{From: firstEvent, To: firstEvent}
	for agent := range agents {
		q.Sessions = append(q.Sessions, SessionKey{AgentID: fmt.Sprintf("did:web:%d", agent), SessionID: fmt.Sprintf("s-%d-%d", agent, ended/(agents*length))})
	}
	var read atomic.Uint64
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { read.Add(p.Rows) }))
	found := 0
	for _, err := range s.SessionTraces(ctx, q) {
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
