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

// checkLeases: the exporter that keeps log and ledger is a process that has the lease and answers.
func (k *checker) checkLeases() {
	lease, err := k.Client.Acquire(k.Context(), stream.Holder{Stage: "exporter", Host: "the checker"})
	if err == nil {
		lease.Release(k.Context())
		err = stream.ErrNotFound
	}
	if !errors.Is(err, stream.ErrLeaseHeld) {
		k.Errorf("owners: the lease of the exporter: %v", err)
	}
}

// checkShares: each partition of drift, and of the exporter, is owned by a process that answers.
func (k *checker) checkShares() {
	for record, stage := range map[string]string{stream.DriftOwners: "drift", stream.ExporterOwners: "the exporter"} {
		shares, err := k.Client.Shares(k.Context(), record)
		if err != nil {
			k.Fatal(err)
		}
		answers := map[string]bool{}
		for i := range shares.Members {
			answers[shares.Members[i].ID] = k.Client.Reach(k.Context(), &shares.Members[i]) == nil
		}
		for p := range shares.Partitions {
			if !answers[shares.Partitions[p].Owner] {
				k.Errorf("owners: no process owns partition %d of %s, or it does not answer", p, stage)
				break
			}
		}
	}
}
