package store

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

var manyStates = flag.Int("states", 0, "states of TestRecallOfManyStates; 0 leaves it out")

// Reading the states of scattered series reads few others: otherwise drift, which reads the series of a
// slice that are not in memory, reads the states of a whole partition for each slice.
func TestRecallReadsFewOtherStates(t *testing.T) {
	s, _ := open(t)
	const states, wanted = 20_000, 20
	insertStates(t, s, states, 16, 200)
	limit := uint64(states / 10)
	if onShards {
		limit *= 2
	}
	for name, ask := range map[string]question{"series": bySeries, "agents": byAgents} {
		found, read := recall(t, s, ask, states, 16, wanted)
		if found != wanted || read.rows > limit {
			t.Errorf("by %s: %d states, read from %d rows; want %d from %d at most", name, found, read.rows, wanted, limit)
		}
	}
}

// question reads the states of series, or of all series of their agents.
type question func(ctx context.Context, s *Store, keys map[int][]SeriesKey) ([]DriftState, error)

func bySeries(ctx context.Context, s *Store, keys map[int][]SeriesKey) ([]DriftState, error) {
	return s.DriftStates(ctx, streamCreated, keys)
}

func byAgents(ctx context.Context, s *Store, keys map[int][]SeriesKey) ([]DriftState, error) {
	agents := map[int][]string{}
	for partition, of := range keys {
		for _, key := range of {
			agents[partition] = append(agents[partition], key.AgentID)
		}
	}
	return s.DriftStatesOf(ctx, streamCreated, agents)
}

// TestRecallOfManyStates measures the same for large slices.
func TestRecallOfManyStates(t *testing.T) {
	if *manyStates == 0 {
		t.Skip("a measurement of some minutes: -states N")
	}
	s, _ := open(t)
	const partitions, stateBytes = 16, 2500
	began := time.Now()
	insertStates(t, s, *manyStates, partitions, stateBytes)
	t.Logf("%d states of %d bytes stored in %s", *manyStates, stateBytes, time.Since(began).Round(time.Second/10))
	for _, wanted := range []int{1, 100, 1000, 1000, 1000} {
		began := time.Now()
		found, read := recall(t, s, bySeries, *manyStates, partitions, wanted)
		t.Logf("%d of %d series: %s, %d rows and %d MB read", found, wanted, time.Since(began).Round(time.Millisecond), read.rows, read.bytes>>20)
	}
}

// insertStates stores states of random bytes, in an order that is not that of the table's keys.
func insertStates(t *testing.T, s *Store, states, partitions, size int) {
	t.Helper()
	exec(t, s, fmt.Sprintf("INSERT INTO drift_state (tenant, stream_created, stream_partition, agent_id, card_id, version, applied, applied_above, last_event_time, state) "+
		"SELECT 'default', fromUnixTimestamp64Nano(%d, 'UTC'), number %% %d, 'did:web:agents.example:'||toString(number), 'ac-'||toString(number), 1, number, [], now64(9), randomString(%d) "+
		"FROM numbers(%d) SETTINGS distributed_foreground_insert = 1, max_block_size = 8192, min_insert_block_size_bytes = 134217728",
		streamCreated.UnixNano(), partitions, size, states))
}

type amount struct{ rows, bytes uint64 }

// recall reads states of all partitions, chosen at random.
func recall(t *testing.T, s *Store, ask question, states, partitions, wanted int) (found int, read amount) {
	t.Helper()
	var rows, bytes atomic.Uint64
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) {
		rows.Add(p.Rows)
		bytes.Add(p.Bytes)
	}))
	keys := map[int][]SeriesKey{}
	for _, n := range rand.Perm(states)[:wanted] {
		key := SeriesKey{AgentID: fmt.Sprintf("did:web:agents.example:%d", n), CardID: fmt.Sprintf("ac-%d", n)}
		keys[n%partitions] = append(keys[n%partitions], key)
	}
	recalled, err := ask(ctx, s, keys)
	if err != nil {
		t.Fatal(err)
	}
	return len(recalled), amount{rows.Load(), bytes.Load()}
}
