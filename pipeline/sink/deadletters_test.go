package sink_test

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/sink"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/pipeline/wire"
	"github.com/plumbline/plumbline/schema"
)

// The gauge of open dead letters rises with a letter and falls with its mark.
func TestOpenLettersAreCounted(t *testing.T) {
	rig, env := pipelinetest.New(t), pipelinetest.Env(t, "verifier")
	letters := []wire.DeadLetter{
		{Stage: "ingest", Reason: schema.ReasonInvalidJSON, Agent: "a", Data: []byte("one")},
		{Stage: "ingest", Reason: schema.ReasonInvalidJSON, Agent: "a", Data: []byte("two")},
	}
	if err := rig.Client.DeadLetters(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	letterSink := &sink.DeadLetters{Env: env, Rows: rig.Store, CountEvery: 20 * time.Millisecond}
	running(t, rig, stream.ConsumerConfig{Stream: stream.DeadLetters, Durable: stream.DeadLetterConsumer},
		func(ctx context.Context, source sink.Source) error { return letterSink.Run(ctx, source) })
	shows := func(n float64) func() bool {
		return func() bool { return pipelinetest.Metric(t, env, "plumbline_dead_letters_open", "") == n }
	}
	pipelinetest.Await(t, "two open letters", shows(2))
	mark := wire.Mark{Digest: schema.DigestOf([]byte("one")), Mark: "dropped", By: "ann", At: time.Now()}
	if err := rig.Client.MarkDeadLetters(t.Context(), []wire.Mark{mark}); err != nil {
		t.Fatal(err)
	}
	pipelinetest.Await(t, "one open letter", shows(1))
}
