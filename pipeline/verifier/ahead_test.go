package verifier

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// arrived is a source whose messages have all arrived. It calls ended when it has no more.
type arrived struct {
	created
	messages []stream.Message
	share    int // the other verifiers of a tenant own the rest: a fetch returns only one of so many
	ended    func()
}

func (s *arrived) Fetch(_ context.Context, into []stream.Message, maxMessages, maxBytes int, wait time.Duration) ([]stream.Message, error) {
	if len(s.messages) == 0 {
		s.ended()
	}
	maxMessages /= max(s.share, 1)
	for bytes := 0; maxMessages > 0 && bytes < maxBytes && len(s.messages) > 0; maxMessages-- {
		bytes += len(s.messages[0].Data)
		into, s.messages = append(into, s.messages[0]), s.messages[1:]
	}
	if maxMessages > 0 && len(s.messages) == 0 {
		time.Sleep(wait)
	}
	return into, nil
}

// lookedUp is a registry that records for how many messages each call is, if for any.
type lookedUp struct {
	*cards.Registry
	known       bool // all agents are
	ahead, warm []int
	asked       time.Time // of the last look-up ahead
	warmed      func()
}

func (r *lookedUp) Ahead(_ context.Context, agents iter.Seq[string]) {
	r.asked = time.Now()
	r.ahead = append(r.ahead, len(slices.Collect(agents)))
}

func (r *lookedUp) Knows(string) bool { return r.known }

func (r *lookedUp) Warm(_ context.Context, agents iter.Seq[string]) {
	if n := len(slices.Collect(agents)); n > 0 {
		r.warm = append(r.warm, n)
	}
	if r.warmed != nil {
		r.warmed()
	}
}

// backlogged returns a verifier for a backlog of messages of two bytes.
func backlogged(t *testing.T, messages int, cfg Config) (*verifier, *lookedUp, *arrived) {
	t.Helper()
	source, registry := new(arrived), &lookedUp{Registry: cards.New(growing{}, growing{}, 0)}
	for i := range messages {
		source.messages = append(source.messages, stream.Message{Agent: "a", Data: []byte("{}"), Sequence: uint64(i + 1)})
	}
	v, _ := judgeSlice(t, registry, 1, source.messages[:1])
	registry.warm = nil
	v.source, v.cfg, v.newRows = source, &cfg, new(store.Store).NewTraceBatch
	return v, registry, source
}

// In a backlog the agents of several slices are looked up together, unless they are known. The batches have the messages in order, each
// once, and no more than their limits; the cards of one slice at a time are read.
func TestAgentsOfABacklogAreLookedUpTogether(t *testing.T) {
	for _, c := range []struct {
		messages, batchRows, batchBytes int
		known                           bool
		share                           int
		batches, ahead, warm            []int
	}{
		{5_300, 2_650, 1 << 20, false, 1, []int{2_650, 2_650}, []int{5_000, 300}, []int{1000, 1000, 650, 1000, 1000, 350, 300}},
		{6_100, 3_600, 5_000, false, 1, []int{2_500, 2_500, 1_100}, []int{5_000, 1_100}, []int{1000, 1000, 500, 1000, 1000, 500, 1000, 100}},
		{900, 450, 1 << 20, false, 1, []int{450, 450}, []int{900}, []int{450, 450}},
		{10, 1, 1, false, 1, slices.Repeat([]int{1}, 10), []int{10}, slices.Repeat([]int{1}, 10)},
		{10, 50, 1 << 20, false, 1, []int{10}, nil, []int{10}}, // no backlog
		{5_000, 50_000, 1 << 20, false, 2, []int{5_000}, []int{2_500, 2_500}, []int{500, 1000, 1000, 500, 1000, 1000}},
		{5_000, 2_500, 1 << 20, true, 1, []int{2_500, 2_500}, nil, []int{1000, 1000, 500, 1000, 1000, 500}},
	} {
		v, registry, source := backlogged(t, c.messages, Config{BatchRows: c.batchRows, BatchBytes: c.batchBytes, BatchAge: time.Minute})
		ctx, ended := context.WithCancel(t.Context())
		source.ended, source.share, registry.known = ended, c.share, c.known
		var batches []int
		for next := uint64(1); ctx.Err() == nil; {
			b := &batch{rows: v.newRows(), unknown: map[string]bool{}}
			if passed, err := v.fill(ctx, t.Context(), b, nil); passed || err != nil {
				t.Fatal(passed, err)
			}
			for i := range b.messages {
				if b.messages[i].Sequence != next {
					t.Fatalf("message %d comes where %d is due", b.messages[i].Sequence, next)
				}
				next++
			}
			if len(b.messages) > 0 {
				batches = append(batches, len(b.messages))
			}
		}
		if !slices.Equal(batches, c.batches) || !slices.Equal(registry.ahead, c.ahead) || !slices.Equal(registry.warm, c.warm) {
			t.Errorf("%d messages: batches of %v, looked up %v and read the cards of %v; want %v, %v and %v",
				c.messages, batches, registry.ahead, registry.warm, c.batches, c.ahead, c.warm)
		}
	}
}

// A stop judges no further slice, and what was fetched and not judged stays nowhere.
func TestAStopLeavesWhatIsNotJudged(t *testing.T) {
	v, registry, _ := backlogged(t, 5_000, Config{BatchRows: 50_000, BatchBytes: 1 << 20, BatchAge: time.Minute})
	ctx, stop := context.WithCancel(t.Context())
	registry.warmed = stop
	free, full := make(chan *batch, 1), make(chan *batch, 1)
	free <- &batch{rows: v.newRows(), unknown: map[string]bool{}}
	if err := v.collect(ctx, t.Context(), free, full); err != nil {
		t.Fatal(err)
	}
	b := <-full
	if len(b.messages) != sliceRows || !slices.Equal(registry.ahead, []int{5_000}) {
		t.Errorf("%d messages are judged of %v, want %d of 5000", len(b.messages), registry.ahead, sliceRows)
	}
	if b.since.After(registry.asked) {
		t.Error("the look-up is not part of the batch's age, so its commit is later")
	}
	if v.waiting != nil || slices.ContainsFunc(v.inbox, func(m stream.Message) bool { return m.Data != nil }) {
		t.Error("messages stay in the inbox")
	}
}
