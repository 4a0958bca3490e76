package checker

import "fmt"

// identities are the columns that identify the rows of a table.
var identities = []struct{ table, columns string }{
	{"traces", "tenant, agent_id, trace_id, digest"},
	{"verdicts", "tenant, agent_id, trace_id, trace_digest, card_digest, engine_version, profile, revoked_at"},
	{"drift_points", "tenant, agent_id, card_id, trace_id, trace_digest, engine_version"},
	{"drift_alerts", "tenant, agent_id, alert_id, revision"},
	{"loop_alerts", "tenant, agent_id, alert_id"},
	{"bundles", "tenant, agent_id, session_id, part"},
	{"session_verdicts", "tenant, agent_id, session_id, part, engine_version, profile"},
	{"dead_letters", "tenant, stage, origin_created, origin_sequence, digest"},
}

// checkCopies: each record is visible once, however many rows are stored for it, and the
// pipeline's own counts equal a recount.
func (k *checker) checkCopies() {
	recount := map[string]uint64{}
	for _, id := range identities {
		distinct := k.number(fmt.Sprintf("SELECT uniqExact(%s) FROM %s SETTINGS final = 0", id.columns, id.table))
		visible := k.number(fmt.Sprintf("SELECT count() FROM %s", id.table))
		if visible != distinct {
			k.seen.Doubled += max(visible-distinct, 0)
			k.Errorf("copies: %s shows %d rows of %d records", id.table, visible, distinct)
		}
		recount[id.table] = uint64(distinct)
	}
	recount["drift_alerts"] = uint64(k.number("SELECT uniqExact(tenant, agent_id, alert_id) FROM drift_alerts")) // however many events each has
	counts, err := k.Store.Counts(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	for table, n := range map[string]uint64{
		"traces": counts.Traces, "drift_points": counts.DriftPoints, "drift_alerts": counts.DriftAlerts,
		"bundles": counts.Bundles, "dead_letters": counts.DeadLetters,
	} {
		if n != recount[table] {
			k.Errorf("copies: %d are counted in %s, a recount gives %d", n, table, recount[table])
		}
	}
	// Traces and verdicts are inserted independently: if the database refuses a trace, its
	// verdict is stored, and belongs to a dead letter.
	ofLetters := k.number("SELECT count() FROM current_verdicts WHERE digest IN (SELECT lower(hex(digest)) FROM dead_letters)" +
		" AND digest NOT IN (SELECT lower(hex(digest)) FROM traces)")
	if verdicts := int(counts.Verdicts) - ofLetters; verdicts != int(counts.Traces) { // counts of rows
		k.Errorf("copies: %d current verdicts for %d traces", verdicts, counts.Traces)
	}
	k.seen.Copies = int(counts.TraceRows - counts.Traces)
	k.seen.Unjudged = int(counts.CardUnknown)
}
