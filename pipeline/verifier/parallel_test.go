package verifier

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// stumbling is a registry that fails at every hundredth look-up, if it may.
type stumbling struct {
	Registry
	unknown       string // a card that it does not know
	fails         bool
	calls, failed atomic.Int64
}

func (r *stumbling) Lookup(ctx context.Context, cardID string) (*cards.Card, error) {
	if r.calls.Add(1)%100 == 0 && r.fails {
		r.failed.Add(1)
		return nil, errors.New("no answer")
	}
	if cardID == r.unknown {
		return nil, cards.ErrUnknown
	}
	return r.Registry.Lookup(ctx, cardID)
}

// Several goroutines that judge one slice give the batch that one gives: each message in its place, with the same
// verdict. That holds as well if look-ups fail and are repeated.
func TestSeveralJudgesGiveTheBatchOfOne(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	f := fleet.New(fleet.Config{Seed: 5, Agents: 50, Traces: sliceRows, Start: start})
	registry := cards.New(growing{}, growing{}, config.DefaultCardCacheBytes)
	for _, card := range f.Cards() {
		if _, _, err := registry.Put(t.Context(), card.Raw); err != nil {
			t.Fatal(err)
		}
	}
	var unknown schema.Trace
	inbox := make([]stream.Message, 0, sliceRows)
	for line := range f.Lines() {
		if len(inbox)%50 == 7 {
			line.Raw = line.Raw[:len(line.Raw)/2]
		}
		inbox = append(inbox, stream.Message{Agent: line.Agent, Data: line.Raw, Received: start, Sequence: uint64(len(inbox) + 1), Partition: len(inbox) % 16})
		if len(inbox) == cap(inbox) {
			break
		}
	}
	if err := new(schema.Decoder).Admit(&unknown, inbox[0].Agent, inbox[0].Data); err != nil {
		t.Fatal(err)
	}
	one, first := judgeSlice(t, &stumbling{Registry: registry, unknown: unknown.CardID}, 1, inbox)
	if len(first.dead) < 10 || len(first.unknown) == 0 || len(first.alerts) == 0 || first.rows.Len() < 900 {
		t.Fatalf("%d dead letters, %d unknown cards, %d alerts, %d rows: too few for this test", len(first.dead), len(first.unknown), len(first.alerts), first.rows.Len())
	}
	stumbles := &stumbling{Registry: registry, unknown: unknown.CardID, fails: true}
	several, second := judgeSlice(t, stumbles, maxJudges, inbox)
	for i := range one.judgements { // of the last messages
		if a, b := &one.judgements[i], &several.judgements[i]; !reflect.DeepEqual(a, b) {
			t.Fatalf("judgement %d\nby one %+v\nby several %+v", i, a, b)
		}
	}
	for row := range first.rows.Len() {
		if a, b := first.rows.ID(row), second.rows.ID(row); a != b || first.rowOf[row] != second.rowOf[row] {
			t.Fatalf("row %d is %v of message %d, and with several %v of %d", row, a, first.rowOf[row], b, second.rowOf[row])
		}
	}
	if !reflect.DeepEqual(first.receipts, second.receipts) || !reflect.DeepEqual(first.dead, second.dead) || !reflect.DeepEqual(first.alerts, second.alerts) ||
		!reflect.DeepEqual(first.messages, second.messages) || !maps.Equal(first.unknown, second.unknown) {
		t.Error("several judges give another batch than one")
	}
	if stumbles.failed.Load() < 5 {
		t.Errorf("%d look-ups failed: too few for this test", stumbles.failed.Load())
	}
}

// judgeSlice judges a slice with so many goroutines.
func judgeSlice(t *testing.T, registry Registry, judges int, inbox []stream.Message) (*verifier, *batch) {
	t.Helper()
	env := pipelinetest.Env(t, "verifier")
	v := &verifier{env: env, metrics: newMetrics(env.Metrics), source: created{}, inbox: inbox,
		late: &lateCards{registry: cards.New(growing{}, growing{}, 0)}}
	for range judges {
		v.workspaces = append(v.workspaces, newBench(t, registry))
	}
	b := &batch{rows: new(store.Store).NewTraceBatch(), unknown: map[string]bool{}}
	if err := v.judgeAll(t.Context(), b, inbox[0].Received); err != nil {
		t.Fatal(err)
	}
	return v, b
}

// created is a source that only knows when its stream was created.
type created struct{ Source }

func (created) StreamCreated() time.Time { return time.Unix(0, 0) }
