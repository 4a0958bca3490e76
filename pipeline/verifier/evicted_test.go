package verifier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/fleet"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// flaky is a bucket of cards that counts requests, and may fail.
type flaky struct {
	cards.Bucket
	gets atomic.Int64
	fail func(get int64) error
}

func (f *flaky) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if n := f.gets.Add(1); f.fail != nil {
		if err := f.fail(n); err != nil {
			return nil, 0, err
		}
	}
	return f.Bucket.Get(ctx, key)
}

func (f *flaky) GetMany(ctx context.Context, keys []string, take func(key string, value []byte, revision uint64)) error {
	for range keys {
		if n := f.gets.Add(1); f.fail != nil {
			if err := f.fail(n); err != nil {
				return err
			}
		}
	}
	return f.Bucket.GetMany(ctx, keys, take)
}

// watched returns a registry with a cache of the given size that knows all present cards.
func watched(t testing.TB, client *stream.Client, cacheBytes int64) (*cards.Registry, *flaky) {
	t.Helper()
	bucket, err := client.Bucket(t.Context(), stream.Cards)
	if err != nil {
		t.Fatal(err)
	}
	revocations, err := client.Bucket(t.Context(), stream.Revocations)
	if err != nil {
		t.Fatal(err)
	}
	counted := &flaky{Bucket: bucket}
	registry := cards.New(counted, revocations, cacheBytes)
	ctx, done := context.WithCancel(t.Context())
	defer done()
	if err := registry.Watch(ctx, cards.Observer{Ready: done}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return registry, counted
}

// A trace is judged by its card, in memory or not: the verdicts are byte for byte the same.
func TestEvictionChangesNoVerdict(t *testing.T) {
	client, err := stream.Connect(t.Context(), stream.Config{URL: brokertest.Start(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	pipelinetest.EnsureTopology(t, client)
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	f := fleet.New(fleet.Config{Seed: 3, Agents: 60, Traces: 500, Start: start})
	elsewhere, err := cards.Open(t.Context(), client, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, raw := range f.Cards() {
		card, _, err := elsewhere.Put(t.Context(), raw.Raw)
		if err == nil && i%10 == 0 {
			_, _, err = elsewhere.Revoke(t.Context(), card.Entry, "lost", start)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	whole, none := watched(t, client, config.DefaultCardCacheBytes)
	tight, fetched := watched(t, client, 64<<10)
	rules := DefaultRules()
	benches := make([]workspace, 2)
	for i, registry := range []*cards.Registry{whole, tight} {
		if benches[i], err = newWorkspace(registry, nil, &rules); err != nil {
			t.Fatal(err)
		}
	}
	judged := 0
	var slice []stream.Message
	for line := range f.Lines() {
		slice = append(slice, stream.Message{Agent: line.Agent, Data: line.Raw, Received: start})
		if len(slice) == 100 {
			judged += sameVerdicts(t, benches, slice)
			slice = slice[:0]
		}
	}
	judged += sameVerdicts(t, benches, slice)
	if judged < 300 || none.gets.Load() > 0 || fetched.gets.Load() < 100 {
		t.Errorf("%d judged, %d and %d fetched: too few for this test", judged, none.gets.Load(), fetched.gets.Load())
	}
}

// sameVerdicts judges messages with each workspace, requires equal verdicts, and returns how many
// messages are traces.
func sameVerdicts(t *testing.T, benches []workspace, slice []stream.Message) (judged int) {
	t.Helper()
	texts := make([][][]byte, len(benches))
	for i := range benches {
		b := &benches[i]
		b.warm(t.Context(), slice)
		for m := range slice {
			var j judgement
			if err := b.judge(t.Context(), &j, &slice[m], time.Time{}, slice[m].Received); err != nil {
				t.Fatal(err)
			}
			if j.refusal != nil {
				continue
			}
			text, err := json.Marshal(&j.verdict)
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = append(texts[i], fmt.Appendf(text, " kept until %s", j.meta.RetainUntil))
		}
	}
	for i, text := range texts[0] {
		if !bytes.Equal(text, texts[1][i]) {
			t.Errorf("with the card in memory\n%s\nwithout it\n%s", text, texts[1][i])
		}
	}
	return len(texts[0])
}

// While the broker does not answer a request for a card, its trace waits: the card does not count
// as unknown.
func TestTraceWaitsForACardThatCannotBeFetched(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac", "a"))
	v := judging(t, rig, &pipelinetest.Fault{})
	registry, bucket := watched(t, rig.Client, 0)
	bucket.fail = func(get int64) error {
		if get <= 2 {
			return fmt.Errorf("no answer in time: %w", stream.ErrUnavailable)
		}
		return nil
	}
	v.workspaces[0].registry, v.late.registry = registry, registry
	rig.Publish(t, pipelinetest.Trace("tr-1", "a", "ac", "s", "2026-02-01T00:00:00Z", "pay"))
	stage := pipelinetest.Go(t, sharing(t, rig, v))
	awaitDone(t, rig, 1)
	stage.Stop(t)
	counts, err := rig.Store.Counts(t.Context())
	if err != nil || counts.Traces != 1 || counts.Verdicts != 1 || counts.CardUnknown != 0 {
		t.Errorf("counts %+v, error %v", counts, err)
	}
	if found, err := rig.Store.Violations(t.Context()); err != nil || len(found["FORBIDDEN_ACTION"]) != 1 {
		t.Errorf("violations %v, error %v", found, err)
	}
	if gets := bucket.gets.Load(); gets < 3 {
		t.Errorf("%d look-ups: the fault was not reached", gets)
	}
}

// A verifier that keeps no card in memory also judges late cards and revocations.
func TestVerifierWithoutACache(t *testing.T) {
	rig := pipelinetest.New(t)
	rig.Register(t, pipelinetest.Card("ac-0", "a"))
	cfg := Default()
	cfg.Common, cfg.ClickHouse, cfg.Cards.CacheBytes = rig.Common(), rig.ClickHouse(), 0
	env := pipelinetest.Env(t, "verifier")
	pipelinetest.Go(t, func(ctx context.Context) error { return Serve(ctx, &cfg, env) })
	rig.Publish(t, pipelinetest.Trace("tr-0", "a", "ac-0", "s", "2026-02-01T00:00:00Z", "search"),
		pipelinetest.Trace("tr-1", "b", "ac-1", "s", "2026-02-01T00:00:00Z", "pay"))
	pipelinetest.Await(t, "one judged, one of an unknown card", func() bool {
		counts, err := rig.Store.Counts(t.Context())
		return err == nil && counts.Traces == 2 && counts.CardUnknown == 1
	})
	rig.Register(t, pipelinetest.Card("ac-1", "b"))
	registry, err := cards.Open(t.Context(), rig.Client, 0)
	if err != nil {
		t.Fatal(err)
	}
	card, err := registry.Lookup(t.Context(), "ac-0")
	if err != nil {
		t.Fatal(err)
	}
	revokeNow(t, registry, card)
	pipelinetest.Await(t, "both judged again", func() bool {
		counts, err := rig.Store.Counts(t.Context())
		if err != nil || counts.CardUnknown != 0 {
			return false
		}
		found, err := rig.Store.Violations(t.Context())
		if err != nil || len(found["FORBIDDEN_ACTION"]) != 1 {
			return false
		}
		found, err = rig.Store.Findings(t.Context())
		return err == nil && slices.Equal(found[schema.CardRevoked], []string{"tr-0"})
	})
}
