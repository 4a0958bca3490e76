package checker

import (
	"slices"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// readStream returns every message of stream TRACES.
func (w *walk) readStream() []stream.Message { return w.readAll(stream.Traces) }

// readAll returns every message of a stream.
func (w *walk) readAll(name string) []stream.Message {
	w.Helper()
	state, err := w.Client.StreamState(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	reader, err := w.Client.OpenConsumer(w.Context(), stream.ConsumerConfig{Stream: name})
	if err != nil {
		w.Fatal(err)
	}
	defer reader.Close()
	var all []stream.Message
	for state.Messages > uint64(len(all)) {
		if all, err = reader.Fetch(w.Context(), all, 10_000, 0, time.Second); err != nil {
			w.Fatal(err)
		}
	}
	return all
}

// readTraces returns every stored trace with its current verdict, in the order of
// the stream.
func (w *walk) readTraces() []*store.StoredTrace {
	w.Helper()
	var traces []*store.StoredTrace
	for query := range slices.Chunk(w.sessions(), 200) {
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
		for trace, err := range w.Store.SessionTraces(w.Context(), ask) {
			if err != nil {
				w.Fatal(err)
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

func (w *walk) sessions() (all []extent) {
	w.Helper()
	w.query("SELECT agent_id, session_id, min(event_time), max(event_time) FROM traces GROUP BY agent_id, session_id ORDER BY min(event_time)",
		func(row []any) {
			all = append(all, extent{
				key:   store.SessionKey{AgentID: row[0].(string), SessionID: row[1].(string)},
				first: row[2].(time.Time), last: row[3].(time.Time),
			})
		})
	return all
}

// query runs a statement and calls f with every row.
func (w *walk) query(statement string, f func(row []any)) {
	w.Helper()
	result, err := w.Store.Query(w.Context(), statement)
	if err != nil {
		w.Fatal(err)
	}
	for row, err := range result.Rows {
		if err != nil {
			w.Fatal(err)
		}
		f(row)
	}
}

// number runs a statement whose result is one count.
func (w *walk) number(statement string) (n int) {
	w.Helper()
	w.query(statement, func(row []any) { n = int(row[0].(uint64)) })
	return n
}

// readCards returns a registry of all cards.
func (w *walk) readCards() *cards.Registry {
	w.Helper()
	registry, err := cards.Open(w.Context(), w.Client, config.DefaultCardCacheBytes)
	if err != nil {
		w.Fatal(err)
	}
	err = registry.Load(w.Context(), func(err error) { w.Errorf("a registered card cannot be read: %v", err) })
	if err != nil {
		w.Fatal(err)
	}
	return registry
}
