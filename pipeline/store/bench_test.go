package store

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// benchRows is the batch size behind the figures of the ADR.
const benchRows = 50_000

// benchDistinct records of about 1.4 KB from as many agents are judged. Each row has its own
// digest, which makes the rows distinct.
const benchDistinct = 1000

type benchFixture struct {
	traces   []*schema.Trace
	verdicts []*schema.Verdict

	redelivered bool
}

func newBenchFixture(b *testing.B) *benchFixture {
	b.Helper()
	f := &benchFixture{}
	for i := range benchDistinct {
		t := numbered(b, i)
		t.AgentID = fmt.Sprintf("did:web:agent-%d.example", i)
		v := cleanVerdict(t)
		if i%20 == 0 {
			v = wholeVerdict(t)
		}
		f.traces, f.verdicts = append(f.traces, t), append(f.verdicts, v)
	}
	return f
}

func (f *benchFixture) fill(batch *TraceBatch, round int) {
	batch.Reset()
	for i := range benchRows {
		t, v := f.traces[i%benchDistinct], f.verdicts[i%benchDistinct]
		m := meta(t, uint64(round*benchRows+i+1))
		m.Redelivered = f.redelivered
		binary.LittleEndian.PutUint64(t.Digest[:], m.Sequence*0x9E3779B97F4A7C15)
		v.Metadata.TraceDigest = t.Digest
		batch.Add(t, m, v)
	}
}

func perRow(b *testing.B, rows int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkAdd measures filling the columns.
func BenchmarkAdd(b *testing.B) {
	s := Writer{tenant: "default"}
	fixture := newBenchFixture(b)
	batch := s.NewTraceBatch()
	fixture.fill(batch, 0)
	b.ReportAllocs()
	for b.Loop() {
		fixture.fill(batch, 0)
	}
	perRow(b, b.N*benchRows)
}

// BenchmarkInsert measures filling and storing batches. "stored" uses our fsynced tables. "null"
// uses tables that store nothing, which leaves the cost of the client and the transport.
func BenchmarkInsert(b *testing.B) {
	for _, kind := range []string{"null", "stored"} {
		b.Run(kind, func(b *testing.B) {
			s, _ := open(b)
			if kind == "null" {
				for _, table := range []string{"traces", "verdicts"} {
					exec(b, s, "RENAME TABLE "+table+" TO stored_"+table)
					exec(b, s, "CREATE TABLE "+table+" AS stored_"+table+" ENGINE = Null")
				}
			}
			fixture := newBenchFixture(b)
			batch := s.NewTraceBatch()
			round := 0
			start := cpuTime(b)
			b.ResetTimer()
			for b.Loop() {
				fixture.fill(batch, round)
				insert(b, s, batch)
				round++
			}
			perRow(b, b.N*benchRows)
			b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(b.N*benchRows), "client-cpu-ns/row")
		})
	}
}

// BenchmarkLookUp measures the lookup of every row of a redelivered batch that is fully stored.
func BenchmarkLookUp(b *testing.B) {
	s, _ := open(b)
	fixture := newBenchFixture(b)
	batch := s.NewTraceBatch()
	const stored = 10
	for round := range stored {
		fixture.fill(batch, round)
		insert(b, s, batch)
	}
	fixture.redelivered = true
	round := 0
	for b.Loop() {
		fixture.fill(batch, round%stored)
		insert(b, s, batch)
		round++
	}
	perRow(b, b.N*benchRows)
	if c := counts(b, s); c.TraceRows != stored*benchRows {
		b.Fatalf("%d rows", c.TraceRows)
	}
}
