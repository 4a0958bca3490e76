package checker

import (
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/walk"
)

// readAll returns every message of a stream.
func (k *checker) readAll(name string) (all []stream.Message) {
	k.Helper()
	state, err := k.Client.StreamState(k.Context(), name)
	if err != nil {
		k.Fatal(err)
	}
	for m, err := range walk.Messages(k.Context(), k.Client, name, state) {
		if err != nil {
			k.Fatal(err)
		}
		all = append(all, *m)
	}
	return all
}

// readTraces returns every stored trace with its current verdict, in the order of
// the stream.
func (k *checker) readTraces() []*store.StoredTrace {
	k.Helper()
	var traces []*store.StoredTrace
	for query := range slices.Chunk(k.sessions(), 200) {
		ask := store.SessionQuery{From: query[0].first, To: query[0].last}
		for _, s := range query {
			ask.Sessions = append(ask.Sessions, s.key)
			if s.first.Before(ask.From) {
				ask.From = s.first
			}
			if s.last.After(ask.To) {
				ask.To = s.last
			}
		}
		for trace, err := range k.Store.SessionTraces(k.Context(), ask) {
			if err != nil {
				k.Fatal(err)
			}
			traces = append(traces, trace)
		}
	}
	slices.SortFunc(traces, func(a, b *store.StoredTrace) int { return compareSequence(a, b) })
	return traces
}

// extent is a session and the time span of its traces.
type extent struct {
	key         store.SessionKey
	first, last time.Time
}

func (k *checker) sessions() (all []extent) {
	k.Helper()
	k.query("SELECT agent_id, session_id, min(event_time), max(event_time) FROM traces GROUP BY agent_id, session_id ORDER BY min(event_time)",
		func(row []any) {
			all = append(all, extent{
				key:   store.SessionKey{AgentID: row[0].(string), SessionID: row[1].(string)},
				first: row[2].(time.Time), last: row[3].(time.Time),
			})
		})
	return all
}

// query runs a statement and calls f with every row.
func (k *checker) query(statement string, f func(row []any)) {
	k.Helper()
	result, err := k.Store.Query(k.Context(), statement)
	if err != nil {
		k.Fatal(err)
	}
	for row, err := range result.Rows {
		if err != nil {
			k.Fatal(err)
		}
		f(row)
	}
}

// number runs a statement whose result is one count.
func (k *checker) number(statement string) (n int) {
	k.Helper()
	k.query(statement, func(row []any) { n = int(row[0].(uint64)) })
	return n
}

// readCards returns a registry of all cards.
func (k *checker) readCards() *cards.Registry {
	k.Helper()
	registry, err := cards.Open(k.Context(), k.Client, config.DefaultCardCacheBytes)
	if err != nil {
		k.Fatal(err)
	}
	err = registry.Load(k.Context(), func(err error) { k.Errorf("a registered card cannot be read: %v", err) })
	if err != nil {
		k.Fatal(err)
	}
	return registry
}
