package verifier

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// growing is a bucket that accepts every card.
type growing struct{ cards.Bucket }

func (growing) Create(context.Context, string, []byte) (uint64, error) { return 1, nil }

// BenchmarkJudge measures a trace from its bytes to its verdict, with its card in memory.
func BenchmarkJudge(b *testing.B) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	f := fleet.New(fleet.Config{Seed: 1, Agents: 2000, Traces: 20_000, Start: start})
	registry := cards.New(growing{}, growing{}, config.DefaultCardCacheBytes)
	for _, card := range f.Cards() {
		if _, _, err := registry.Put(b.Context(), card.Raw); err != nil {
			b.Fatal(err)
		}
	}
	rules := DefaultRules()
	judging, err := newWorkspace(registry, nil, &rules)
	if err != nil {
		b.Fatal(err)
	}
	var messages []stream.Message
	for line := range f.Lines() {
		messages = append(messages, stream.Message{Agent: line.Agent, Data: line.Raw, Received: start})
	}
	var judged judgement
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		from := i % len(messages)
		if from%sliceRows == 0 {
			judging.warm(b.Context(), messages[from:min(from+sliceRows, len(messages))])
		}
		if err := judging.judge(b.Context(), &judged, &messages[from], start, start); err != nil {
			b.Fatal(err)
		}
	}
}
