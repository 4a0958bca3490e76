package seal

import (
	"bytes"
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aap"
	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// BenchmarkPart makes the bundles of the simulated fleet's sessions from their stored traces, without
// database, broker and files. It reports its figures per trace.
func BenchmarkPart(b *testing.B) {
	parts, traces := fleetParts(b)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	var buffer bytes.Buffer
	b.ReportAllocs()
	compressed := int64(0)
	for b.Loop() {
		compressed = 0
		for i := range parts {
			part := &parts[i]
			contents, judge, err := Read(part, Order(part.Traces), redact.DefaultOutputLimit, redact.AllRules)
			if err != nil {
				b.Fatal(err)
			}
			part.Verdict, _ = judge.Finish(nil, time.Unix(part.Plan.ExportedAt, 0))
			in, err := Compose(part, contents, "Plumbline", "https://github.com/plumbline/plumbline")
			if err != nil {
				b.Fatal(err)
			}
			buffer.Reset()
			bundle, err := aivs.Write(&buffer, in, key)
			if err != nil {
				b.Fatal(err)
			}
			compressed += bundle.Size
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*traces), "ns/trace")
	b.ReportMetric(float64(compressed)/float64(traces), "bytes/trace")
}

// fleetParts returns the sessions of a small fleet with their verdicts, and the number of their traces.
func fleetParts(b testing.TB) (parts []Part, traces int) {
	f := fleet.New(fleet.Config{Seed: 1, Agents: 50, Traces: 3000, Start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)})
	judge, err := aap.NewJudge(aap.DefaultThresholds())
	if err != nil {
		b.Fatal(err)
	}
	cards := map[string]*aap.Compiled{}
	for _, card := range f.Cards() {
		if cards[card.CardID], err = aap.Register(card.Raw); err != nil {
			b.Fatal(err)
		}
	}
	places := map[store.SessionKey]int{}
	for line := range f.Lines() {
		trace, err := schema.Admit(line.Agent, line.Raw)
		if err != nil {
			continue // planted
		}
		key := store.SessionKey{AgentID: trace.AgentID, SessionID: schema.SessionID(trace)}
		at, known := places[key]
		if !known {
			at, places[key] = len(parts), len(parts)
			parts = append(parts, Part{AgentID: key.AgentID, SessionID: key.SessionID, Cards: map[string][]byte{},
				Plan: Record{Part: 1, LastPart: true, ExportedAt: 1772323200}})
		}
		row := &store.StoredTrace{
			AgentID: trace.AgentID, TraceID: trace.TraceID, Digest: trace.Digest, CardID: trace.CardID, SessionID: key.SessionID,
			SessionEnd: trace.Context.SessionEnd, EventTime: trace.Timestamp, Sequence: uint64(traces), Raw: trace.Raw, Verdict: new(schema.Verdict),
		}
		if trace.Context.HasSequenceNumber {
			row.SequenceNumber = &trace.Context.SequenceNumber
		}
		judge.Verify(trace, cards[trace.CardID], aap.Facts{Received: trace.Timestamp}, trace.Timestamp, row.Verdict)
		parts[at].Traces = append(parts[at].Traces, row)
		parts[at].Cards[trace.CardID] = cards[trace.CardID].Card.Raw
		traces++
	}
	return parts, traces
}
