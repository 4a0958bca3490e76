package store

import "embed"

//go:embed sql/queries/*.sql
var querySQL embed.FS

// The queries of this package, one file of sql/queries each. Values reach them only as bound
// parameters.
var (
	queryAgentCards          = mustQuery("agent_cards")
	queryAgentDriftAlerts    = mustQuery("agent_drift_alerts")
	queryAgentDriftBaselines = mustQuery("agent_drift_baselines")
	queryAgentDriftPoints    = mustQuery("agent_drift_points")
	queryAgentDriftStates    = mustQuery("agent_drift_states")
	queryAgentTraces         = mustQuery("agent_traces")
	queryBundleCopies        = mustQuery("bundle_copies")
	queryBundles             = mustQuery("bundles")
	queryConflicts           = mustQuery("conflicts")
	queryCounts              = mustQuery("counts")
	queryDeadLetters         = mustQuery("dead_letters")
	queryMarkedLetters       = mustQuery("marked_letters")
	queryDriftAlerts         = mustQuery("drift_alerts")
	queryDriftStates         = mustQuery("drift_states")
	queryFindings            = mustQuery("findings")
	queryFloor               = mustQuery("floor")
	queryLedgerHeads         = mustQuery("ledger_heads")
	queryLedgerEntriesAt     = mustQuery("ledger_entries_at")
	queryNumberedTraces      = mustQuery("numbered_traces")
	queryPartTraces          = mustQuery("part_traces")
	queryPartVerdicts        = mustQuery("part_verdicts")
	queryPrecedingNumbers    = mustQuery("preceding_numbers")
	queryPresentTraces       = mustQuery("present_traces")
	queryPresentVerdicts     = mustQuery("present_verdicts")
	queryPriorTraces         = mustQuery("prior_traces")
	queryRevokedCardTraces   = mustQuery("revoked_card_traces")
	queryRunning             = mustQuery("running")
	queryFailedWrites        = mustQuery("failed_writes")
	querySealedVerdicts      = mustQuery("sealed_verdicts")
	querySessionTraces       = mustQuery("session_traces")
	querySessionVerdicts     = mustQuery("session_verdicts")
	queryTables              = mustQuery("tables")
	queryTrace               = mustQuery("trace")
	queryTraceDigests        = mustQuery("trace_digests")
	queryTraceDriftPoints    = mustQuery("trace_drift_points")
	queryTraceVerdicts       = mustQuery("trace_verdicts")
	queryUnknownCardTraces   = mustQuery("unknown_card_traces")
	queryViolations          = mustQuery("violations")
	queryWarnings            = mustQuery("warnings")
)

// mustQuery reads an embedded file. A missing file panics when the program starts, so every test
// would find it.
func mustQuery(name string) string {
	b, err := querySQL.ReadFile("sql/queries/" + name + ".sql")
	if err != nil {
		panic("store: " + err.Error())
	}
	return string(b)
}
