// Package store writes the pipeline's results to ClickHouse, and reads them: traces, verdicts,
// drift, sessions, bundles, cards, revocations, dead letters, ledgers, the results of handshakes
// and tasks, and decisions about messages.
//
// It owns the rows, their queries (sql), and the way rows are written so none is lost or visible
// twice. It does not own the tables, the connections and the classes of errors
// (pipeline/database). It does not judge traces, does not seal sessions and does not use the
// broker: what it needs to know about a message arrives as values (Meta).
//
// Invariants: rows are inserted, and never altered or deleted. Every row carries its tenant.
// Nothing depends on ClickHouse's insert deduplication: rows that may already be stored are looked
// up before they are sent again.
//
// It is one package of more than 1,800 lines because it has the rows of 20 tables, and most of them
// are written and read with the same struct. The methods of Writer and Reader keep the two apart.
package store

import (
	"context"
	"embed"
	"fmt"
	"iter"
	"strings"

	"github.com/plumbline/plumbline/pipeline/database"
)

// Config configures the connections to the database.
type Config = database.Config

// Store reads and writes the rows of one tenant. It is safe for concurrent use.
type Store struct {
	Writer
	Reader
	db *database.DB
}

// Writer inserts rows of one tenant. Every method may be repeated with the same rows: duplicates
// collapse.
type Writer struct {
	db     *database.DB
	tenant string
}

// Reader reads rows of one tenant.
type Reader struct{ db *database.DB }

// Open prepares the connections. The first one is made on demand, so a stage can start before its
// ClickHouse. Ping reports whether ClickHouse answers.
func Open(_ context.Context, cfg Config) (*Store, error) {
	db, err := database.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Store{Writer{db, db.Config().Tenant}, Reader{db}, db}, nil
}

// Close ends the connections. A server waits for them when it stops, so call Close before
// stopping the server.
func (s *Store) Close() error { return s.db.Close() }

// Ping returns nil if ClickHouse answers: in a cluster, every shard.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Ready returns nil if ClickHouse answers and has every table.
func (s *Store) Ready(ctx context.Context) error { return s.db.Ready(ctx) }

// Inspect checks whether the database meets the durability requirement. It changes nothing.
func (s *Store) Inspect(ctx context.Context) (database.Inspection, error) { return s.db.Inspect(ctx) }

// Tenant returns the tenant whose rows this store reads and writes.
func (s *Store) Tenant() string { return s.tenant }

// each yields the rows of a query that selects the columns of T. It ends after the first error,
// which contains what was read.
func each[T any](ctx context.Context, db *database.DB, what, query string, args ...any) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for row, err := range database.Each[T](ctx, db, query, args...) {
			if err != nil {
				yield(nil, fmt.Errorf("read %s: %w", what, err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// read returns the rows of a query that selects the columns of T.
func read[T any](ctx context.Context, db *database.DB, what, query string, args ...any) (rows []T, err error) {
	for row, err := range each[T](ctx, db, what, query, args...) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, *row)
	}
	return rows, nil
}

//go:embed sql/*.sql
var querySQL embed.FS

// The queries of this package, one file of sql each. Values reach them only as bound parameters.
// Several queries read one kind of row: trace_rows, verdict_rows and session_verdict_rows have its
// columns, and the queries continue them.
var (
	queryAccountedLetters    = mustQuery("accounted_letters")
	queryAccountedTraces     = mustQuery("accounted_traces")
	queryAgentCards          = mustQuery("agent_cards")
	queryAgentDriftBaselines = mustQuery("agent_drift_baselines")
	queryAgentDriftPoints    = mustQuery("agent_drift_points")
	queryAgentDriftStates    = mustQuery("agent_drift_states")
	queryAgentTraces         = mustQuery("agent_traces")
	queryBundleCopies        = mustQuery("bundle_copies")
	queryBundles             = mustQuery("bundles")
	queryCardFacts           = mustQuery("card_facts")
	queryCardPosition        = mustQuery("card_position")
	queryConflicts           = mustQuery("conflicts")
	queryCounts              = mustQuery("counts")
	queryDeadLetters         = mustQuery("dead_letters")
	queryDeliveredTraces     = mustQuery("delivered_traces")
	queryDeliveredVerdicts   = mustQuery("delivered_verdicts")
	queryDriftAlerts         = mustQuery("drift_alerts")
	queryDriftStates         = mustQuery("drift_states")
	queryDriftStatesOf       = mustQuery("drift_states_of")
	queryEarlierBundles      = mustQuery("earlier_bundles")
	queryFailedWrites        = mustQuery("failed_writes")
	queryHeldSessions        = mustQuery("held_sessions")
	queryJudgedTraces        = mustQuery("judged_traces")
	queryLedgerEntriesAt     = mustQuery("ledger_entries_at")
	queryLedgerHeads         = mustQuery("ledger_heads")
	queryLedgerReached       = mustQuery("ledger_reached")
	queryListedBundles       = mustQuery("listed_bundles")
	queryListedDriftAlerts   = mustQuery("listed_drift_alerts")
	queryListedPartVerdicts  = mustQuery("session_verdict_rows", "listed_part_verdicts")
	queryListedRecords       = mustQuery("trace_rows", "listed_records")
	queryListedSessions      = mustQuery("listed_sessions")
	queryListedSizes         = mustQuery("listed_sizes")
	queryListedTraces        = fmt.Sprintf(mustQuery("listed_traces"), "")
	queryListedVerdicts      = mustQuery("verdict_rows", "listed_verdicts")
	queryListedViolations    = fmt.Sprintf(mustQuery("listed_traces"), mustQuery("listed_violations"))
	queryLoopAlerts          = mustQuery("loop_alerts")
	queryLookupDriftAlerts   = mustQuery("lookup_drift_alerts")
	queryLookupDriftPoints   = mustQuery("lookup_drift_points")
	queryFirstMeasured       = mustQuery("first_measured")
	queryLookupLetters       = mustQuery("lookup_letters")
	queryLookupTraces        = mustQuery("lookup_traces")
	queryLookupVerdicts      = mustQuery("lookup_verdicts")
	queryMarkedLetters       = mustQuery("marked_letters")
	queryMeasuredTraces      = mustQuery("measured_traces")
	queryNumberedTraces      = fmt.Sprintf(mustQuery("numbered_traces"), mustQuery("asked_numbers"))
	queryOpenLetters         = mustQuery("open_letters")
	queryOperatorLedger      = mustQuery("operator_ledger")
	queryPartTraces          = mustQuery("trace_rows", "part_traces")
	queryPartVerdicts        = mustQuery("verdict_rows", "part_verdicts")
	queryPrecedingNumbers    = fmt.Sprintf(mustQuery("preceding_numbers"), mustQuery("asked_numbers"))
	queryPriorTraces         = mustQuery("prior_traces")
	queryRecordedSessions    = mustQuery("recorded_sessions")
	queryRegisteredCards     = mustQuery("registered_cards")
	queryRemarks             = mustQuery("remarks")
	queryRevokedCardTraces   = mustQuery("revoked_card_traces")
	queryRunning             = mustQuery("running")
	querySealedVerdicts      = mustQuery("session_verdict_rows", "sealed_verdicts")
	querySessionPlaces       = mustQuery("session_places")
	querySessionTraces       = mustQuery("trace_rows", "session_traces")
	querySessionVerdicts     = mustQuery("verdict_rows", "session_verdicts")
	queryStoredDigests       = mustQuery("stored_digests")
	queryStoredSequences     = mustQuery("stored_sequences")
	queryTrace               = mustQuery("trace")
	queryTraceDigests        = mustQuery("trace_digests")
	queryTraceDriftPoints    = mustQuery("trace_drift_points")
	queryTraceVerdicts       = mustQuery("verdict_rows", "trace_verdicts")
	queryTracesByDigest      = mustQuery("traces_by_digest")
	queryUnknownCardTraces   = mustQuery("unknown_card_traces")
	queryUnsealedTraces      = mustQuery("unsealed_traces")
	queryVerdictsOn          = mustQuery("verdict_rows", "verdicts_on")
)

// mustQuery reads a query from one or more embedded files. A missing file panics when the program
// starts, so every test would find it.
func mustQuery(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		part, err := querySQL.ReadFile("sql/" + name + ".sql")
		if err != nil {
			panic("store: " + err.Error())
		}
		text.Write(part)
	}
	return text.String()
}
