package integration_test

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/database"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// TestStartOfManyAgents measures drift and verifier where the cards of many agents are registered:
// the time from a start to the first trace measured or judged, and the resident memory then; where
// all cards are rows, and where nothing says so, as at the first start of a version that records
// it. Then the verifier makes all cards rows again, and that is measured, too.
func TestStartOfManyAgents(t *testing.T) {
	if *manyAgents == 0 {
		t.Skip("a measurement of some minutes: make agents, or -agents N")
	}
	s := newServers(t, place{})
	if err := database.Migrate(t.Context(), s.engine.AdminDSN()); err != nil {
		t.Fatal(err)
	}
	if err := s.client.EnsureTopology(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.registerMany(*manyAgents)
	program(t, "drift") // builds the programs, which is no part of a start
	published := 0
	starts := func(when, name, metric string) *service {
		t.Helper()
		var records []stream.Record
		for range 20 {
			agent := numberedAgent(published * 7 % *manyAgents)
			records = append(records, pipelinetest.Trace(fmt.Sprintf("tr-%d", published), agent, "ac-of-"+agent, "s", "2026-02-01T00:00:00Z", "search"))
			published++
		}
		s.publishRecords(records)
		began := time.Now()
		service := s.service(name)
		pipelinetest.AwaitWithin(t, minutes, name+" to be ready", service.ready)
		ready := time.Since(began)
		pipelinetest.AwaitWithin(t, minutes, "the first trace", func() bool { return metricOf(t, service, metric) > 0 })
		t.Logf("%s, with %d cards: %s ready after %s, its first trace stored after %s", when, *manyAgents, name,
			ready.Round(time.Second/10), time.Since(began).Round(time.Second/10))
		s.resident(when, service)
		return service
	}
	const points, judged = "plumbline_drift_points_total", "plumbline_verifier_traces_total"
	starts("all cards are rows", "drift", points).terminate()
	starts("all cards are rows", "verifier", judged).terminate()
	s.settledThrough(0)
	starts("no position", "drift", points).terminate()
	verifier := starts("no position", "verifier", judged)
	began := time.Now()
	pipelinetest.AwaitWithin(t, minutes, "a row for every card", func() bool {
		return strings.Contains(metricsOf(t, verifier), `plumbline_backlog_messages{consumer="cards",stage="verifier"} 0`)
	})
	t.Logf("every card a row %s later", time.Since(began).Round(time.Second/10))
	s.resident("every card a row", verifier)
	verifier.terminate()
}

func numberedAgent(i int) string { return fmt.Sprintf("did:web:agent-%08d.shop.example", i) }

// registerMany registers a card for each of many agents, copies of a card of the fleet, which are
// never in memory together.
func (s *site) registerMany(agents int) {
	s.t.Helper()
	example := fleet.New(fleet.Config{Seed: 1, Agents: 1, Traces: 1, Start: time.Now()}).Cards()[0]
	s.settleCards(func(yield func(fleet.Card) bool) {
		for i := range agents {
			card := fleet.Card{AgentID: numberedAgent(i), CardID: "ac-of-" + numberedAgent(i)}
			card.Raw = bytes.ReplaceAll(bytes.ReplaceAll(example.Raw, []byte(example.CardID), []byte(card.CardID)), []byte(example.AgentID), []byte(card.AgentID))
			if !yield(card) {
				return
			}
		}
	})
}

// settleCards writes cards into the bucket and the table, and records that every card is a row, as
// the verifier does.
func (s *site) settleCards(cards iter.Seq[fleet.Card]) {
	s.t.Helper()
	bucket, err := s.client.Bucket(s.t.Context(), stream.Cards)
	if err != nil {
		s.t.Fatal(err)
	}
	began, count, size := time.Now(), 0, 0
	var writes []stream.Write
	var rows []*schema.Card
	flush := func() {
		if _, err := bucket.WriteAll(s.t.Context(), writes); err != nil {
			s.t.Fatal(err)
		}
		if err := s.store.InsertCards(s.t.Context(), time.Now(), rows); err != nil {
			s.t.Fatal(err)
		}
		writes, rows = writes[:0], rows[:0]
	}
	for registered := range cards {
		card, err := schema.DecodeCard(registered.Raw)
		if err != nil {
			s.t.Fatal(err)
		}
		writes = append(writes, stream.Write{Key: subject.Token(registered.CardID), Value: registered.Raw})
		rows = append(rows, card)
		count, size = count+1, size+len(registered.Raw)
		if len(writes) == 5000 {
			flush()
		}
	}
	flush()
	state, err := s.client.StreamState(s.t.Context(), stream.CardRecords)
	if err != nil {
		s.t.Fatal(err)
	}
	s.settledThrough(state.LastSequence)
	s.t.Logf("%d cards of %d bytes registered in %s", count, size/count, time.Since(began).Round(time.Second))
}

// settledThrough records up to which revision of the bucket every card is a row.
func (s *site) settledThrough(revision uint64) {
	s.t.Helper()
	state, err := s.client.StreamState(s.t.Context(), stream.CardRecords)
	if err == nil {
		err = s.store.InsertCardPosition(s.t.Context(), state.Created, revision)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
