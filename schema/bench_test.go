package schema

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/plumbline/plumbline/schema/published"
)

// BenchmarkAdmit decodes, validates and digests one trace an operation, as received from a
// publisher.
func BenchmarkAdmit(b *testing.B) {
	b.Run("every-member", func(b *testing.B) { benchmarkAdmit(b, []byte(whole)) })
	b.Run("specification", func(b *testing.B) {
		raw := published.Read(b, "conformance/aap/spec_example_trace.json")
		var compact bytes.Buffer // 1,461 bytes
		if err := json.Compact(&compact, raw); err != nil {
			b.Fatal(err)
		}
		benchmarkAdmit(b, compact.Bytes())
	})
	b.Run("corpus", func(b *testing.B) { benchmarkAdmit(b, published.Lines(b, "corpus/traces.jsonl.gz")...) })
	b.Run("corpus-1500B", func(b *testing.B) {
		var near [][]byte
		for _, line := range published.Lines(b, "corpus/traces.jsonl.gz") {
			if len(line) >= 1400 && len(line) <= 1600 {
				near = append(near, line)
			}
		}
		benchmarkAdmit(b, near...)
	})
}

func benchmarkAdmit(b *testing.B, lines ...[]byte) {
	var d Decoder
	var trace Trace
	next, read := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		line := lines[next]
		read += len(line)
		if err := d.Admit(&trace, "", line); err != nil {
			b.Fatal(err)
		}
		if next++; next == len(lines) {
			next = 0
		}
	}
	b.SetBytes(int64(read / b.N))
	b.ReportMetric(float64(read)/float64(b.N), "B/trace")
}
