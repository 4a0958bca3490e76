package store

import (
	"testing"
	"time"
)

// Retention removes the rows whose time has passed. It keeps rows with a later time, and rows
// without one.
func TestRetentionRemovesWhatIsDueAlone(t *testing.T) {
	s, dsn := open(t)
	b := s.NewTraceBatch()
	for id, until := range map[string]time.Time{
		"due": time.Now().Add(-time.Hour), "to come": time.Now().Add(time.Hour), "for ever": {},
	} {
		trace := simple(t, id, "agent", "s", "because")
		m := meta(trace, uint64(len(id)))
		m.RetainUntil = until
		b.Add(trace, m, cleanVerdict(trace))
	}
	insert(t, s, b)
	for _, server := range servers(t, dsn) {
		for _, table := range []string{"traces", "verdicts"} {
			exec(t, server, "OPTIMIZE TABLE "+local(table)+" FINAL")
		}
	}
	for _, table := range []string{"traces", "verdicts"} {
		if got := one[string](t, s, "SELECT arrayStringConcat(arraySort(groupArray(trace_id)), ', ') FROM "+table); got != "for ever, to come" {
			t.Errorf("%s has %s", table, got)
		}
	}
}
