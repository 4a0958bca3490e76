package reading

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// A query that would read too many rows is refused, and says how to narrow it.
func TestQueriesAreBoundedInRows(t *testing.T) {
	r := start(t, func(cfg *Config) { cfg.QueryRows = 20 })
	r.store(r.rows, trace(t, "a", "t", "s", 0, "x"))
	many := r.rows.NewTraceBatch()
	for i := range 30 {
		other := trace(t, "b", fmt.Sprint("t-", i), "s", 30*3600, "x")
		many.Add(other, store.Meta{Received: at, StreamCreated: at, Sequence: uint64(100 + i), SessionID: "s"}, verdictOn(other))
	}
	if err := r.rows.InsertTraces(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if p := r.refused("/v1/traces", http.StatusBadRequest, "too_broad"); p.Message == "" {
		t.Error("no message")
	}
	if page := r.traces("/v1/traces?agent_id=a&to=2026-11-20T13:00:00Z"); len(page.Traces) != 1 {
		t.Errorf("one hour of one agent: %+v", page)
	}
}

// Requests to a database that hangs end in time, only a few wait for it, and look-ups for ingest cost
// their time once.
func TestSlowDatabase(t *testing.T) {
	var wire *brokertest.Wire
	r := start(t, func(cfg *Config) {
		wire = brokertest.NewWire(t, cfg.ClickHouse.DSN)
		cfg.ClickHouse.DSN, cfg.QueryTime, cfg.DuplicateLookup = wire.URL(), 4*time.Second, time.Second
	})
	asked, ask := 0, r.reading.stored
	r.reading.stored = func(ctx context.Context, at []time.Time, digests []schema.Digest) (map[schema.Digest]uint64, error) {
		asked++
		return ask(ctx, at, digests)
	}
	stored := trace(t, "a", "t", "s", 0, "x")
	r.store(r.rows, stored)
	times, digests := []time.Time{stored.Timestamp, at}, []schema.Digest{stored.Digest, schema.DigestOf(nil)}
	lookUp := func() uint64 {
		began := time.Now()
		found := r.reading.Sequences(t.Context(), times, digests)[0]
		if took := time.Since(began); took >= r.reading.cfg.QueryTime {
			t.Errorf("a look-up took %v, as long as a query may", took)
		}
		return found
	}
	wire.Freeze()
	if got := lookUp(); got != 0 || asked != 1 {
		t.Errorf("a look-up over a new connection to a database that hangs: %d, asked %d times", got, asked)
	}
	if got := lookUp(); got != 0 || asked != 1 {
		t.Errorf("the next look-up: %d, asked %d times, want not again", got, asked)
	}
	wire.Thaw()
	r.reading.paused.Store(0)
	if got := lookUp(); got != 1 {
		t.Errorf("sequence %d, want 1", got)
	}
	r.traces("/v1/traces")
	wire.Freeze()
	if got := lookUp(); got != 0 || asked != 3 {
		t.Errorf("a look-up over an open connection to a database that hangs: %d, asked %d times", got, asked)
	}
	began := time.Now()
	var group sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for range 2 * atOnce {
		group.Go(func() {
			code, text := r.get("/v1/traces")
			mu.Lock()
			defer mu.Unlock()
			if answers[text]++; code != http.StatusServiceUnavailable {
				t.Errorf("%d %s", code, text)
			}
		})
	}
	group.Wait()
	if took := time.Since(began); len(answers) > 2 || took > 3*r.reading.cfg.QueryTime {
		t.Errorf("after %v: %v, want that some waited for the database and the others had no room", took, answers)
	}
	wire.Thaw()
	r.traces("/v1/traces")
	for range atOnce {
		r.reading.readers <- struct{}{}
	}
	if code, text := r.get("/v1/traces"); code != http.StatusServiceUnavailable || !strings.Contains(text, "requests read at this time") {
		t.Errorf("while all that may read do: %d %s", code, text)
	}
	for range atOnce {
		<-r.reading.readers
	}
	r.traces("/v1/traces")
}

// A row counts as an earlier copy only for its tenant and while it is kept for another day. Of several
// copies the newest counts: the stream is most likely to have its message.
func TestSequences(t *testing.T) {
	r := start(t, nil)
	stored, foreign, ending := trace(t, "a", "t-1", "s", 0, "x"), trace(t, "a", "t-2", "s", 1, "x"), trace(t, "a", "t-3", "s", 2, "x")
	r.store(r.rows, stored)
	r.store(r.rows, stored)
	r.store(r.tenant("other"), foreign)
	r.storeFor(r.rows, ending, verdictOn(ending), time.Hour)
	got := r.reading.Sequences(t.Context(), []time.Time{stored.Timestamp, foreign.Timestamp, ending.Timestamp}, []schema.Digest{stored.Digest, foreign.Digest, ending.Digest})
	if got[0] != 2 || got[1] != 0 || got[2] != 0 {
		t.Errorf("sequences %d, want 2, 0 and 0", got)
	}
	r.reading.lookups <- struct{}{}
	r.reading.lookups <- struct{}{}
	if got := r.reading.Sequences(t.Context(), []time.Time{stored.Timestamp}, []schema.Digest{stored.Digest}); got[0] != 0 {
		t.Errorf("a third look-up at a time: %d", got)
	}
}
