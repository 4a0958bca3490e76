package aap

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// BenchmarkVerify judges decoded traces by compiled cards: each sub-benchmark
// goes round its traces, one trace an operation. The public SDK manages 58,000
// verifications a second on a core.
func BenchmarkVerify(b *testing.B) {
	ours := compiled(b, cardText)
	b.Run("clean", func(b *testing.B) { benchmarkVerify(b, pair{ours, admitted(b, traceText)}) })
	b.Run("violations", func(b *testing.B) {
		benchmarkVerify(b, pair{ours, admitted(b, replace(b, traceText, searchName, `"name": "fly"`, cheap, bought))})
	})
	b.Run("specification", func(b *testing.B) { benchmarkVerify(b, specificationPair(b)) })
	b.Run("corpus", func(b *testing.B) { benchmarkVerify(b, corpusPairs(b, func(*schema.Verdict) bool { return true })...) })
	b.Run("corpus-warned", func(b *testing.B) {
		benchmarkVerify(b, corpusPairs(b, func(v *schema.Verdict) bool { return len(v.Warnings) > 1 })...)
	})
	b.Run("corpus-violating", func(b *testing.B) {
		benchmarkVerify(b, corpusPairs(b, func(v *schema.Verdict) bool { return len(v.Violations) > 0 })...)
	})
}

// pair is what is judged.
type pair struct {
	card  *Compiled
	trace *schema.Trace
}

func benchmarkVerify(b *testing.B, pairs ...pair) {
	if len(pairs) == 0 {
		b.Skip("the corpus has no such trace")
	}
	j := judge(b)
	var v schema.Verdict
	next, bytes := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		p := pairs[next]
		bytes += len(p.trace.Raw)
		j.Verify(p.trace, p.card, Facts{Received: p.trace.Timestamp.Add(time.Second)}, now, &v)
		if next++; next == len(pairs) {
			next = 0
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "verdicts/s")
	b.ReportMetric(float64(bytes)/float64(b.N), "B/trace")
}

// specificationPair is the trace of AAP section 5.8 with the card of section 4.9.
func specificationPair(b *testing.B) pair {
	read := func(name string) []byte {
		raw, err := os.ReadFile(shared(b, "conformance/aap/"+name))
		if err != nil {
			b.Fatal(err)
		}
		return raw
	}
	return pair{compiled(b, string(read("spec_example_card.json"))), admitted(b, string(read("spec_example_trace.json")))}
}

// corpusTraces is how many traces a benchmark holds in memory.
const corpusTraces = 512

// corpusPairs returns traces of the corpus, evenly spread, whose verdicts a test wants.
func corpusPairs(b *testing.B, wanted func(*schema.Verdict) bool) []pair {
	cards, j := corpusCards(b), judge(b)
	var verdict schema.Verdict
	var all []pair
	for _, line := range lines(b, "corpus/traces.jsonl.gz") {
		trace := admitted(b, string(line))
		j.Verify(trace, cards[trace.CardID], Facts{}, now, &verdict)
		if wanted(&verdict) {
			all = append(all, pair{cards[trace.CardID], trace})
		}
	}
	if len(all) <= corpusTraces {
		return all
	}
	var spread []pair
	for chunk := range slices.Chunk(all, len(all)/corpusTraces) {
		spread = append(spread, chunk[0])
	}
	return spread
}
