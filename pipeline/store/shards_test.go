package store

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/plumbline/plumbline/engine"
	"github.com/plumbline/plumbline/engine/enginetest"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/schema"
)

// openShards returns the DSNs of a migrated, empty database, one DSN for each shard. All tests
// share this database, and each call empties it. If all tests run on shards, each gets a database
// of its own, which it may change.
func openShards(t testing.TB) []string {
	t.Helper()
	if enginetest.Sharded() {
		return enginetest.MigratedShards(t, onTestShards.Migrate)
	}
	dsns := enginetest.MigratedOnce(t, onTestShards.Migrate)
	for _, dsn := range dsns {
		s := openDSN(t, dsn)
		for _, table := range one[[]string](t, s, "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND endsWith(name, '_local') AND total_rows > 0") {
			exec(t, s, "TRUNCATE TABLE "+table)
		}
	}
	return dsns
}

// onTestShards is the cluster of the engines of enginetest.Shards.
var onTestShards = database.Cluster{Name: enginetest.Cluster, WithoutKeeper: true}

// What is written and read through one server is also correct over two shards. These are a few of
// the tests; `make shards` runs all of them there.
func TestOnShards(t *testing.T) {
	if onShards {
		t.Skip("all tests are on shards")
	}
	onShards = true
	defer func() { onShards = false }()
	t.Run("round trip", TestTraceRoundTrip)
	t.Run("duplicates", TestEarliestOfDuplicatesIsKept)
	t.Run("redelivery", TestRedeliveryCompletesHalfABatch)
}

// agentTraces returns traces of several agents.
func agentTraces(t testing.TB, agents, each int) (traces []*schema.Trace) {
	t.Helper()
	for a := range agents {
		for n := range each {
			traces = append(traces, simple(t, fmt.Sprintf("tr-%d-%d", a, n), fmt.Sprintf("agent-%d", a), fmt.Sprintf("s-%d", n%3), "because"))
		}
	}
	return traces
}

// All rows of an agent are on one shard, and both shards hold agents. INSERT SELECT moves the
// rows of a single server there, and runs again if it is interrupted. Every view then shows what
// it showed before.
func TestRowsOfOneServerMoveToShards(t *testing.T) {
	source := enginetest.Migrated(t, database.Migrate)
	from := openDSN(t, source)
	insert(t, from, batchOf(from, agentTraces(t, 30, 7)...))
	first, second := simple(t, "same", "agent-1", "s", "one reason"), simple(t, "same", "agent-1", "s", "another")
	insert(t, from, batchOf(from, first, second, numbered(t, 1)))
	fillRows(t, from)

	dsns := openShards(t)
	to := openConfig(t, Config{DSN: dsns[0], Stage: "test", Cluster: enginetest.Cluster})
	for range 2 {
		for _, table := range database.Tables {
			exec(t, to, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s SETTINGS insert_distributed_sync = 1", table, remoteTable(t, source, table)))
		}
	}
	for _, view := range views(t, from) {
		if want, got := content(t, from, view), content(t, to, view); got != want {
			t.Errorf("view %s shows on shards\n%s\nand on one server\n%s", view, got, want)
		}
	}
	if want, got := counts(t, from), counts(t, to); got.Traces != want.Traces || got.Verdicts != want.Verdicts {
		t.Errorf("on shards %+v, on one server %+v", got, want)
	}
	byShard := one[[]uint64](t, to, "SELECT arraySort(groupArray(c)) FROM (SELECT uniqExact(agent_id) AS c FROM traces GROUP BY _shard_num)")
	if len(byShard) != 2 || byShard[0] < 5 || byShard[0]+byShard[1] != one[uint64](t, to, "SELECT uniqExact(agent_id) FROM traces") {
		t.Errorf("numbers of agents on the shards: %v, want at least 5 on each", byShard)
	}
}

// remoteTable returns a table function for a table of another server.
func remoteTable(t testing.TB, dsn, table string) string {
	t.Helper()
	o, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("remote('%s', '%s', '%s', '%s', '%s')", o.Addr[0], o.Auth.Database, table, o.Auth.Username, o.Auth.Password)
}

// content returns everything that a view shows.
func content(t testing.TB, s *Store, view string) string {
	t.Helper()
	return one[string](t, s, "SELECT arrayStringConcat(arraySort(groupArray(toString(tuple(*)))), '\\n') FROM "+view)
}

// fillRows stores one row for each kind of data that belongs to no trace.
func fillRows(t testing.TB, s *Store) {
	t.Helper()
	bundle := Bundle{AgentID: "agent-1", SessionID: "s-1", Part: 1, SHA256: schema.DigestOf([]byte("bundle")), ExportedAt: firstReceived, TraceCount: 3}
	letter := DeadLetter{Stage: "verifier", OriginCreated: streamCreated, OriginSequence: 9, Received: firstReceived, AgentID: "a", Reason: "invalid_json", Raw: []byte(nasty)}
	alert := DriftAlert{Received: firstReceived, DriftAlert: schema.DriftAlert{
		AlertID: schema.DigestOf([]byte("alert")), AgentID: "agent-1", CardID: "ac-1", DetectionTimestamp: firstEvent, BaselineID: schema.DigestOf([]byte("baseline")),
		Mode: "first", State: schema.AlertOpened, Revision: 1, OpenedAt: firstEvent, LastTraceID: "tr-1", Count: 3, Measures: []string{"similarity"}, Summary: "a summary",
	}}
	for _, err := range []error{
		s.InsertDriftAlerts(t.Context(), []DriftAlert{alert}),
		s.InsertBundles(t.Context(), []Bundle{bundle}),
		s.InsertBundleCopies(t.Context(), []BundleCopy{{Destination: "nats:bundles", Path: "a", SHA256: bundle.SHA256, DeliveredAt: firstReceived}}),
		s.InsertSessions(t.Context(), []Session{{AgentID: "agent-1", SessionID: "s-1", Version: 1, Status: SessionSealed, UpdatedAt: firstReceived}}),
		s.InsertDeadLetters(t.Context(), []DeadLetter{letter}),
		s.InsertCoherenceResults(t.Context(), []CoherenceResult{handshake("r", firstReceived)}),
		s.InsertLedger(t.Context(), []LedgerEntry{{Ledger: "agent-1", StreamCreated: streamCreated, Sequence: 1, Type: "x", At: firstReceived}, {File: 1, StreamCreated: streamCreated, Type: "y", At: firstReceived}}),
		s.InsertDriftPoints(t.Context(), []DriftPoint{{AgentID: "agent-1", CardID: "ac-1", TraceID: "tr-1", EventTime: firstEvent, Received: firstReceived, Status: "baseline"}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A shard is killed while rows arrive, and restarts: each row is stored once. Each shard is
// killed until the kill has interrupted an insert.
func TestKilledShardLosesAndDoublesNothing(t *testing.T) {
	dsns := openShards(t)
	s := openConfig(t, Config{DSN: dsns[0], Stage: "test", Cluster: enginetest.Cluster})
	const agents, each = 40, 20
	batches, met := 0, 0
	for ; met < 2; batches++ {
		n, traces := batches, agentTraces(t, agents, each)
		b := s.NewTraceBatch()
		for i, trace := range traces {
			trace = simple(t, fmt.Sprintf("%s-%d", trace.TraceID, n), trace.AgentID, trace.Context.SessionID, "because")
			b.Add(trace, meta(trace, uint64(n*len(traces)+i+1)), cleanVerdict(trace))
		}
		if n > 0 {
			kill(t, enginetest.Shards(t)[met])
			if err := s.InsertTraces(t.Context(), b); err != nil {
				t.Logf("batch %d: %v", n, err)
				met++
			}
		}
		retry(t, s, b)
	}
	want := uint64(batches * agents * each)
	if c := counts(t, s); c.Traces != want || c.TraceRows != want || c.Verdicts != want || c.Conflicts != 0 {
		t.Errorf("%+v, want %d traces in as many rows", c, want)
	}
}

// kill ends an engine. Its supervisor restarts it.
func kill(t testing.TB, e *engine.Engine) {
	t.Helper()
	pid := e.Pid()
	if pid <= 0 {
		t.Fatal("the engine does not run")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Views and the statements of `plumbline sql` that use two tables return the same as on one
// server. A client with its own joins must request all shards.
func TestStatementsOverTwoTables(t *testing.T) {
	dsns := openShards(t)
	s := openConfig(t, Config{DSN: dsns[0], Stage: "test", Cluster: enginetest.Cluster})
	insert(t, s, batchOf(s, agentTraces(t, 10, 3)...))
	for _, statement := range []string{
		"SELECT count() FROM visible_traces WHERE digest IN (SELECT digest FROM current_verdicts)",
		"SELECT count() FROM traces JOIN verdicts ON traces.digest = verdicts.trace_digest SETTINGS distributed_product_mode = 'global'",
	} {
		if joined := one[uint64](t, s, statement); joined != 30 {
			t.Errorf("%s: %d, want 30", statement, joined)
		}
	}
	result, err := s.Query(t.Context(), "SELECT count() FROM traces WHERE digest IN (SELECT trace_digest FROM verdicts)")
	if err != nil {
		t.Fatal(err)
	}
	for values, err := range result.Rows {
		if err != nil || values[0] != uint64(30) {
			t.Errorf("%v %v", values, err)
		}
	}
}
