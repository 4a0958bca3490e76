package store

import "embed"

//go:embed sql/*.sql
var querySQL embed.FS

// The queries of this package, one file of sql each. Values reach them only as bound parameters.
var (
	queryAccountedLetters     = mustQuery("accounted_letters")
	queryAccountedTraces      = mustQuery("accounted_traces")
	queryAgentCards           = mustQuery("agent_cards")
	queryAgentDriftAlerts     = mustQuery("agent_drift_alerts")
	queryAgentDriftBaselines  = mustQuery("agent_drift_baselines")
	queryAgentDriftPoints     = mustQuery("agent_drift_points")
	queryAgentDriftStates     = mustQuery("agent_drift_states")
	queryAgentTraces          = mustQuery("agent_traces")
	queryBundleCopies         = mustQuery("bundle_copies")
	queryBundles              = mustQuery("bundles")
	queryConflicts            = mustQuery("conflicts")
	queryCounts               = mustQuery("counts")
	queryDeadLetters          = mustQuery("dead_letters")
	queryDeliveredTraces      = mustQuery("delivered_traces")
	queryDeliveredVerdicts    = mustQuery("delivered_verdicts")
	queryDriftAlerts          = mustQuery("drift_alerts")
	queryDriftStates          = mustQuery("drift_states")
	queryFailedWrites         = mustQuery("failed_writes")
	queryFindings             = mustQuery("findings")
	queryFloor                = mustQuery("floor")
	queryJudgedDigests        = mustQuery("judged_digests")
	queryJudgedTraces         = mustQuery("judged_traces")
	queryLedgerEntriesAt      = mustQuery("ledger_entries_at")
	queryLedgerHeads          = mustQuery("ledger_heads")
	queryLedgerReached        = mustQuery("ledger_reached")
	queryLookupDriftAlerts    = mustQuery("lookup_drift_alerts")
	queryLookupDriftBaselines = mustQuery("lookup_drift_baselines")
	queryLookupDriftPoints    = mustQuery("lookup_drift_points")
	queryLookupLetters        = mustQuery("lookup_letters")
	queryLookupTraces         = mustQuery("lookup_traces")
	queryLookupVerdicts       = mustQuery("lookup_verdicts")
	queryMarkedLetters        = mustQuery("marked_letters")
	queryMeasuredDigests      = mustQuery("measured_digests")
	queryMeasuredTraces       = mustQuery("measured_traces")
	queryNumberedTraces       = mustQuery("numbered_traces")
	queryOperatorLedger       = mustQuery("operator_ledger")
	queryPartTraces           = mustQuery("part_traces")
	queryPartVerdicts         = mustQuery("part_verdicts")
	queryPrecedingNumbers     = mustQuery("preceding_numbers")
	queryPriorTraces          = mustQuery("prior_traces")
	queryRecordedSessions     = mustQuery("recorded_sessions")
	queryRevokedCardTraces    = mustQuery("revoked_card_traces")
	queryRunning              = mustQuery("running")
	querySealedVerdicts       = mustQuery("sealed_verdicts")
	querySessionPlaces        = mustQuery("session_places")
	querySessionTraces        = mustQuery("session_traces")
	querySessionVerdicts      = mustQuery("session_verdicts")
	queryTrace                = mustQuery("trace")
	queryTraceDigests         = mustQuery("trace_digests")
	queryTraceDriftPoints     = mustQuery("trace_drift_points")
	queryTraceVerdicts        = mustQuery("trace_verdicts")
	queryTracesByDigest       = mustQuery("traces_by_digest")
	queryUnknownCardTraces    = mustQuery("unknown_card_traces")
	queryViolations           = mustQuery("violations")
	queryWarnings             = mustQuery("warnings")
)

// mustQuery reads an embedded file. A missing file panics when the program starts, so every test
// would find it.
func mustQuery(name string) string {
	b, err := querySQL.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic("store: " + err.Error())
	}
	return string(b)
}
