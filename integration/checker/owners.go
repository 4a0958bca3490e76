package checker

// owned are what belongs to one owner: a record to one trace of one agent's session, its
// measurement to one course, a course to one partition.
var owned = []struct{ what, of, owner, table string }{
	{"record", "lower(hex(digest))", "agent_id, session_id, trace_id, stream_partition", "traces"},
	{"drift point of record", "lower(hex(trace_digest))", "agent_id, card_id, session_id, trace_id", "drift_points"},
	{"agent", "agent_id", "stream_partition", "traces"},
	{"drift's state of agent and card", "concat(toString(stream_created), ' ', agent_id, ' ', card_id)", "stream_partition", "drift_state"},
}

// checkOwners: nothing is under two owners.
func (w *walk) checkOwners() {
	for _, o := range owned {
		statement := "SELECT " + o.of + " AS what, uniqExact(" + o.owner + ") AS owners FROM " + o.table +
			" GROUP BY tenant, what HAVING owners > 1"
		w.query(statement, func(row []any) {
			w.seen.Doubled++
			w.Errorf("owners: %s %s has %d: %s", o.what, row[0], row[1], o.owner)
		})
	}
}
