package exporter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline/pipelinetest"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// BenchmarkSeal seals sessions from rows in the database to signed files, with the real broker
// and engine. Everything is recorded: plan, ledger, bundles, verdicts.
func BenchmarkSeal(b *testing.B) {
	for _, shape := range []struct{ sessions, rows int }{{500, 15}, {10, 10_000}} {
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

// timeSealing publishes and judges sessions. It then measures an exporter for which all of them
// are due, from its start until the last one is sealed and recorded.
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
	env := pipelinetest.Env(b, "exporter")
	began := time.Now()
	stage := s.exportIn(b, env, nil)
	pipelinetest.Await(b, "all traces sealed", func() bool { return sealedTraces(b, env) == float64(sessions*rows) })
	took := time.Since(began)
	s.awaitBundles(b, sessions)
	stage.Stop(b)
	return took
}

// sealedTraces reads the exporter's own metric: frequent queries to the database would be
// measured, too.
func sealedTraces(b *testing.B, env *service.Env) float64 {
	b.Helper()
	families, err := env.Gatherer.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "plumbline_exporter_traces_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// endedSession returns the traces of a session, of the usual size. The last one ends the session.
func endedSession(session string, rows int) []stream.Record {
	return sessionRows(session, 0, rows, rows)
}

// sessionRows returns the traces first..next of an ended session with rows traces.
func sessionRows(session string, first, next, rows int) []stream.Record {
	records := make([]stream.Record, 0, next-first)
	start := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	query, text := strings.Repeat("what is known of it ", 10), strings.Repeat("an answer in some words ", 40)
	for i := first; i < next; i++ {
		end := ""
		if i == rows-1 {
			end = `,"session_end":true`
		}
		r := pipelinetest.Trace(fmt.Sprintf("tr-%s-%d", session, i), "a", "ac", session,
			start.Add(time.Duration(i)**spacing).Format(time.RFC3339Nano), "search")
		more := fmt.Sprintf(`"context":{"metadata":{"execution":{"tool_name":"web.search","inputs":{"query":%q},"outputs":{"text":%q},"cost_cents":1}%s},`, query, text, end)
		data := []byte(strings.Replace(string(r.Data), `"context":{`, more, 1))
		records = append(records, stream.Record{Agent: "a", Data: data, Digest: schema.DigestOf(data)})
	}
	return records
}

// awaitBundles waits until n bundles are recorded, and queries only their number.
func (s *site) awaitBundles(t testing.TB, n int) {
	t.Helper()
	pipelinetest.Await(t, fmt.Sprintf("%d bundles", n), func() bool {
		return s.query(t, "SELECT count() FROM bundles")[0][0].(uint64) >= uint64(n)
	})
}
