package stream_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// traceBytes is the size of a typical trace.
const traceBytes = 1600

// BenchmarkPublish measures durable commits of traces from one caller, 10,000 in each call.
func BenchmarkPublish(b *testing.B) {
	client := connect(b, brokertest.New(b))
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	b.ReportAllocs()
	publishMany(b, committer, b.N)
}

// BenchmarkFetch measures reading and acknowledging traces, 10,000 in each fetch.
func BenchmarkFetch(b *testing.B) {
	client := connect(b, brokertest.New(b))
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	publishMany(b, committer, b.N)
	consumer := open(b, client, stream.ConsumerConfig{Stream: stream.Traces, Durable: stream.VerifierConsumer})
	var messages []stream.Message
	var err error
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= len(messages) {
		if messages, err = consumer.Fetch(b.Context(), messages[:0], min(left, 10_000), 0, time.Minute); err != nil {
			b.Fatal(err)
		}
		if err := stream.Acknowledge(b.Context(), messages); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConfirm measures what the holder of a lease pays before it writes.
func BenchmarkConfirm(b *testing.B) {
	lease, err := connect(b, brokertest.New(b)).Acquire(b.Context(), holder("one"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := lease.Confirm(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// publishMany publishes n different traces of 100 agents.
func publishMany(b *testing.B, committer *stream.Committer, n int) {
	b.Helper()
	records := make([]stream.Record, 0, 10_000)
	body := bytes.Repeat([]byte("x"), traceBytes)
	b.ResetTimer()
	for i := range n {
		data := bytes.Clone(body)
		binary.BigEndian.PutUint64(data, uint64(i))
		records = append(records, stream.Record{
			Agent: fmt.Sprintf("did:web:agent-%d", i%100), Data: data, Digest: schema.DigestOf(data),
		})
		if len(records) == cap(records) || i == n-1 {
			if _, err := committer.Publish(b.Context(), records); err != nil {
				b.Fatal(err)
			}
			records = records[:0]
		}
	}
}
