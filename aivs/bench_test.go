package aivs

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

func BenchmarkRowHash(b *testing.B) {
	chain := NewChain()
	row := Row{ID: 17, SessionID: "sess-abc123", ActionType: ActionToolCall, ToolName: "browser.navigate", Timestamp: 1710252645.123456,
		PrevHash: hexSHA256([]byte("x"))}
	b.ReportAllocs()
	for b.Loop() {
		_ = chain.hash(&row)
	}
}

func BenchmarkChain(b *testing.B) {
	chain := NewChain()
	row := benchRow()
	b.ReportAllocs()
	for b.Loop() {
		chain.Link(&row)
	}
}

// benchRow returns a row with contents of the size that real traces have.
func benchRow() Row {
	return Row{SessionID: "sess-abc123", ActionType: "aap.execute", ToolName: "browser.navigate", Timestamp: 1710252645.123456,
		InputsJSON:  fmt.Sprintf(`{"trace_id":"tr-0123456789","card_id":"ac-0123456789","trace_sha256":"%064d","inputs":{"path":"/tmp"}}`, 7),
		OutputsJSON: `{"text":"` + string(bytes.Repeat([]byte("word "), 80)) + `"}`}
}

// BenchmarkBuild reports its figures per row, for sessions of two sizes.
func BenchmarkBuild(b *testing.B) {
	for _, rows := range []int{15, 10_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			in := benchInput(rows)
			key := testKey("k")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Write(io.Discard, in, key); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
		})
	}
}

func benchInput(n int) *Input {
	rows := make([]Row, n)
	var traces bytes.Buffer
	for i := range rows {
		rows[i] = benchRow()
		line := fmt.Sprintf(`{"trace_id":"tr-%010d","at":%d,"reasoning":"%s"}`, i, i*i, bytes.Repeat([]byte("some reason "), 80+i%40))
		rows[i].InputsJSON = fmt.Sprintf(`{"trace_id":"tr-%d","trace_sha256":"%s"}`, i, hexSHA256([]byte(line)))
		traces.WriteString(line + "\n")
	}
	in := sampleInput(0)
	in.TraceCount, in.Rows = int64(n), SliceRows(rows)
	in.Members[0].Data = traces.Bytes()
	return in
}

func BenchmarkVerify(b *testing.B) {
	bundle := build(b, benchInput(10_000), testKey("k"))
	b.ReportAllocs()
	for b.Loop() {
		report, err := Verify(bytes.NewReader(bundle.Bytes), Options{})
		if err != nil || !report.Intact {
			b.Fatal(report, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*10_000), "ns/row")
}

// BenchmarkPythonVerify runs verify.py over a session of 100,000 traces, which must take less
// than 5 s.
func BenchmarkPythonVerify(b *testing.B) {
	directory := unpack(b, build(b, benchInput(100_000), testKey("k")).Bytes)
	for b.Loop() {
		if passed, output := python(b, directory); !passed {
			b.Fatal(output)
		}
	}
}
