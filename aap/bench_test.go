package aap

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/published"
)

// BenchmarkVerify judges decoded traces by compiled cards. Each sub-benchmark cycles through
// its traces, one trace an operation. The public SDK reaches 58,000 verifications a second on a
// core.
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

// BenchmarkAdmitAndVerify judges traces as received from a publisher. The public SDK reaches
// 43,000 a second on a core.
func BenchmarkAdmitAndVerify(b *testing.B) {
	pairs := corpusPairs(b, func(*schema.Verdict) bool { return true })
	j := judge(b)
	var decoder schema.Decoder
	var trace schema.Trace
	var v schema.Verdict
	next, read := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		p := pairs[next]
		read += len(p.trace.Raw)
		if err := decoder.Admit(&trace, "", p.trace.Raw); err != nil {
			b.Fatal(err)
		}
		j.Verify(&trace, p.card, Facts{}, now, &v)
		if next++; next == len(pairs) {
			next = 0
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "verdicts/s")
	b.ReportMetric(float64(read)/float64(b.N), "B/trace")
}

// pair is a card and a trace to judge.
type pair struct {
	card  *Compiled
	trace *schema.Trace
}

func benchmarkVerify(b *testing.B, pairs ...pair) {
	if len(pairs) == 0 {
		b.Fatal("the corpus has no such trace")
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

// specificationPair returns the trace of AAP section 5.8 with the card of section 4.9.
func specificationPair(b *testing.B) pair {
	read := func(name string) string { return string(published.Read(b, "conformance/aap/"+name)) }
	return pair{compiled(b, read("spec_example_card.json")), admitted(b, read("spec_example_trace.json"))}
}

// corpusTraces is the number of traces that a benchmark holds in memory.
const corpusTraces = 512

// corpusPairs returns evenly spread traces of the corpus whose verdicts are wanted.
func corpusPairs(b *testing.B, wanted func(*schema.Verdict) bool) []pair {
	cards, j := corpusCards(b), judge(b)
	var verdict schema.Verdict
	var all []pair
	for _, line := range published.Lines(b, "corpus/traces.jsonl.gz") {
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

// Descriptions share memory: a trace with faults of every kind costs at most two allocations.
func TestVerifyHardlyAllocatesOnManyFaults(t *testing.T) {
	j, card := judge(t), compiled(t, cardText)
	trace := admitted(t, replace(t, traceText, searchName, `"name": "delete"`, cheap, bought, `["honesty"]`, `["speed", "profit"]`,
		`"confidence": 0.8`, `"confidence": 0.1`, `"score": 0.9`, `"score": 0.2`, `"agent_id": "agent-1"`, `"agent_id": "agent-2"`))
	var v schema.Verdict
	judgeIt := func() { j.Verify(trace, card, Facts{GivenApart: true}, now, &v) }
	judgeIt()
	if len(v.Violations) < 5 || len(v.Warnings) < 2 || len(v.Findings) < 1 {
		t.Fatalf("verdict %+v", v)
	}
	if n := testing.AllocsPerRun(100, judgeIt); n > 2 {
		t.Errorf("%v allocations, want 2 at most", n)
	}
}

// A verdict keeps its descriptions when the judge judges the next trace.
func TestDescriptionsOutliveTheNextVerdict(t *testing.T) {
	j, card := judge(t), compiled(t, cardText)
	fly := admitted(t, replace(t, traceText, searchName, `"name": "fly"`))
	var first, second schema.Verdict
	j.Verify(fly, card, Facts{}, now, &first)
	want := strings.Clone(first.Violations[0].Description)
	j.Verify(admitted(t, replace(t, traceText, searchName, `"name": "run"`)), card, Facts{}, now, &second)
	if got := first.Violations[0].Description; got != want || got == second.Violations[0].Description {
		t.Errorf("description %q, was %q", got, want)
	}
}
