package checker

import (
	"errors"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// owned lists what belongs to one owner: a record to one trace of one agent's session, its
// measurement to one series, a series to one partition.
var owned = []struct{ what, of, owner, table string }{
	{"record", "lower(hex(digest))", "agent_id, session_id, trace_id, stream_partition", "traces"},
	{"drift point of record", "lower(hex(trace_digest))", "agent_id, card_id, session_id, trace_id", "drift_points"},
	{"agent", "agent_id", "stream_partition", "traces"},
	{"drift's state of agent and card", "concat(toString(stream_created), ' ', agent_id, ' ', card_id)", "stream_partition", "drift_state"},
}

// checkOwners: nothing has two owners.
func (k *checker) checkOwners() {
	for _, o := range owned {
		statement := "SELECT " + o.of + " AS what, uniqExact(" + o.owner + ") AS owners FROM " + o.table +
			" GROUP BY tenant, what HAVING owners > 1"
		k.query(statement, func(row []any) {
			k.seen.Doubled++
			k.Errorf("owners: %s %s has %d: %s", o.what, row[0], row[1], o.owner)
		})
	}
}

// checkLeases: each stage that a tenant runs once is run by a process that has its lease and
// answers.
func (k *checker) checkLeases() {
	for _, stage := range []string{"drift", "exporter"} {
		lease, err := k.Client.Acquire(k.Context(), stream.Holder{Stage: stage, Host: "the checker"})
		switch {
		case err == nil:
			k.Errorf("owners: no process has the lease of %s", stage)
			lease.Release(k.Context())
		case !errors.Is(err, stream.ErrLeaseHeld):
			k.Errorf("owners: %v", err)
		}
	}
}
