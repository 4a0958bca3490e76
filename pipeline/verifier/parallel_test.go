package verifier

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
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

// Judging long traces together takes little memory at a time, and none of it stays: an element of a list takes sixteen
// times the bytes of "{},".
func TestLongTracesLeaveNoMemory(t *testing.T) {
	long := []byte(`{"trace_id":"t","agent_id":"a","card_id":"c","timestamp":"2026-03-01T00:00:00Z","action":{"type":"execute","name":"pay","category":"bounded"},` +
		`"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"r","values_applied":[]},` +
		`"escalation":{"triggers_checked":[{}` + strings.Repeat(",{}", 20_000) + `]}}`)
	inbox := make([]stream.Message, 64)
	for i := range inbox {
		inbox[i] = stream.Message{Agent: "a", Data: long, Received: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Sequence: uint64(i + 1)}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v, b := judgeSlice(t, &stumbling{Registry: cards.New(growing{}, growing{}, 0), unknown: "c"}, maxJudges, inbox)
	if b.rows.Len() != len(inbox) {
		t.Fatalf("%d of %d traces are valid", b.rows.Len(), len(inbox))
	}
	for i := range v.inbox {
		if v.inbox[i].Data != nil {
			t.Fatalf("message %d stays in the inbox", i)
		}
	}
	b = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	if stays := int64(after.HeapAlloc) - int64(before.HeapAlloc); stays > 8<<20 {
		t.Errorf("%d MiB stay after %d traces of %d KiB", stays>>20, len(inbox), len(long)>>10)
	}
	runtime.KeepAlive(v)
}

// Messages are judged together up to a number and a size.
func TestTogether(t *testing.T) {
	for _, c := range []struct{ size, messages, want int }{
		{1, 3, 3}, {1, judgedTogether + 1, judgedTogether}, {judgedBytes / 4, 9, 4}, {judgedBytes/4 + 1, 9, 3}, {judgedBytes + 1, 2, 1},
	} {
		messages := slices.Repeat([]stream.Message{message(c.size)}, c.messages)
		if got := together(messages); got != c.want {
			t.Errorf("of %d messages of %d bytes %d are judged together, want %d", c.messages, c.size, got, c.want)
		}
	}
}

// judgeSlice judges a slice with so many goroutines.
func judgeSlice(t *testing.T, registry Registry, judges int, inbox []stream.Message) (*verifier, *batch) {
	t.Helper()
	env := pipelinetest.Env(t, "verifier")
	v := &verifier{env: env, metrics: newMetrics(env.Metrics), source: created{}, inbox: slices.Clone(inbox),
		late: &lateCards{registry: cards.New(growing{}, growing{}, 0)}, sliceRows: sliceRows, aheadRows: aheadRows}
	for range judges {
		v.workspaces = append(v.workspaces, newBench(t, registry))
	}
	b := &batch{rows: new(store.Store).NewTraceBatch(), unknown: map[string]bool{}}
	if err := v.judgeAll(t.Context(), b, v.inbox, inbox[0].Received); err != nil {
		t.Fatal(err)
	}
	return v, b
}

// created is a source that only knows when its stream was created.
type created struct{ Source }

func (created) StreamCreated() time.Time { return time.Unix(0, 0) }

// endless is a source that always has the same message.
type endless struct {
	created
	message stream.Message
}

func (e endless) Fetch(_ context.Context, into []stream.Message, _, _ int, _ time.Duration) ([]stream.Message, error) {
	return append(into, e.message), nil
}

// Only the first batch after a start counts as the first.
func TestFirstBatch(t *testing.T) {
	m := stream.Message{Agent: "a", Data: []byte("{}"), Sequence: 1}
	v, b := judgeSlice(t, cards.New(growing{}, growing{}, 0), 1, []stream.Message{m})
	v.source, v.cfg = endless{message: m}, &Config{BatchRows: 1, BatchBytes: 1 << 20, BatchAge: time.Minute}
	ctx, stop := context.WithCancel(t.Context())
	free, full := make(chan *batch, 1), make(chan *batch)
	ended := make(chan error)
	go func() { ended <- v.collect(ctx, ctx, free, full) }()
	for i := range 3 {
		b.reset()
		free <- b
		if b = <-full; b.first != (i == 0) {
			t.Errorf("batch %d: first is %t", i, b.first)
		}
	}
	stop()
	free <- b // collect may wait for it
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
