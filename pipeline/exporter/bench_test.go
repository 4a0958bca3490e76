package exporter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// BenchmarkSeal seals sessions from rows in the database to signed files, with the
// real broker and engine, everything recorded: plan, ledger, bundles, verdicts.
func BenchmarkSeal(b *testing.B) {
	for _, shape := range []struct{ sessions, rows int }{{500, 15}, {3, 10_000}} {
		b.Run(fmt.Sprintf("sessions=%d/rows=%d", shape.sessions, shape.rows), func(b *testing.B) {
			var took time.Duration
			for range b.N {
				took += timeSealing(b, shape.sessions, shape.rows)
			}
			b.ReportMetric(float64(b.N*shape.sessions)/took.Seconds(), "bundles/s")
			b.ReportMetric(float64(b.N*shape.sessions*shape.rows)/took.Seconds(), "rows/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// timeSealing publishes and judges sessions, and then times an exporter that finds
// them all due, from its start to the last bundle's row.
func timeSealing(b *testing.B, sessions, rows int) time.Duration {
	b.Helper()
	s := newSite(b)
	s.Register(b, pipelinetest.Card("ac", "a"))
	judge := s.judge(b)
	for n := range sessions {
		s.Publish(b, endedSession(fmt.Sprintf("s-%d", n), rows)...)
	}
	pipelinetest.Await(b, "all traces judged", func() bool {
		progress, err := s.Client.ConsumerProgress(b.Context(), stream.Traces, stream.VerifierConsumer)
		return err == nil && progress.AckFloor == uint64(sessions*rows)
	})
	judge.Stop(b)
	began := time.Now()
	stage := s.export(b, nil)
	pipelinetest.Await(b, "all bundles", func() bool {
		c, err := s.Store.Counts(b.Context())
		return err == nil && c.Bundles >= uint64(sessions)
	})
	took := time.Since(began)
	stage.Stop(b)
	return took
}

// endedSession are the traces of a session, of the usual size, of which the last
// says that it ends.
func endedSession(session string, rows int) []stream.Record {
	records := make([]stream.Record, rows)
	start := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	for i := range records {
		end := ""
		if i == rows-1 {
			end = `,"session_end":true`
		}
		r := pipelinetest.Trace(fmt.Sprintf("tr-%s-%d", session, i), "a", "ac", session,
			start.Add(time.Duration(i)*time.Second).Format(time.RFC3339), "search")
		more := fmt.Sprintf(`"context":{"metadata":{"execution":{"tool_name":"web.search","inputs":{"query":%q},"outputs":{"text":%q},"cost_cents":1}%s},`,
			strings.Repeat("what is known of it ", 10), strings.Repeat("an answer in some words ", 40), end)
		data := []byte(strings.Replace(string(r.Data), `"context":{`, more, 1))
		records[i] = stream.Record{Agent: "a", Data: data, Digest: schema.DigestOf(data)}
	}
	return records
}
