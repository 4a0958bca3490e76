package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/broker/brokertest"
	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/cards"
	"github.com/plumbline/plumbline/pipeline/config"
	"github.com/plumbline/plumbline/pipeline/obs"
	"github.com/plumbline/plumbline/pipeline/service"
	"github.com/plumbline/plumbline/pipeline/stream"
)

// instant is a broker that accepts everything at once.
type instant struct{ outcomes []stream.Outcome }

func (p *instant) Publish(_ context.Context, records []stream.Record) ([]stream.Outcome, error) {
	for len(p.outcomes) < len(records) {
		p.outcomes = append(p.outcomes, stream.Outcome{Sequence: 1})
	}
	return p.outcomes[:len(records)], nil
}

// offline returns a server whose handlers are called without network and broker.
func offline(t testing.TB) *server {
	t.Helper()
	cfg := Default()
	env := service.NewEnv(stageName, "1", slog.New(slog.DiscardHandler), obs.NewRegistry("1"), new(obs.Health))
	s, err := newServer(loopback{}, &cfg, env)
	if err != nil {
		t.Fatal(err)
	}
	s.stopping = func() bool { return false }
	s.traces, s.deadLetters = new(instant), newDeadLetters(env, &outlet{}, s.metrics)
	s.cards = cards.New(growing{}, growing{}, config.DefaultCardCacheBytes)
	for i := range usualAgents {
		text := card(fmt.Sprint("did:web:agent-", i), fmt.Sprint("card-", i))
		if _, _, err := s.cards.Put(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// growing is a bucket that accepts every card.
type growing struct{ cards.Bucket }

func (growing) Create(context.Context, string, []byte) (uint64, error) { return 1, nil }

// handle calls the handlers directly, without a network.
func (s *server) handle(t testing.TB, body io.Reader) reply {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/v1/traces", body)
	request.Header.Set("Content-Type", "application/x-ndjson")
	recorder := httptest.NewRecorder()
	s.handler().ServeHTTP(recorder, request)
	return reply{code: recorder.Code, header: recorder.Header(), text: recorder.Body.String()}
}

type loopback struct{}

func (loopback) Network() string { return "tcp" }
func (loopback) String() string  { return "127.0.0.1:0" }

// BenchmarkHandler measures reading, admission and the answer, in requests of 5,000 lines. Time
// and allocations are per line.
func BenchmarkHandler(b *testing.B) {
	benchmarkPosts(b, offline(b))
}

// BenchmarkHandlerToBroker measures the same with a real broker and durable commits.
func BenchmarkHandlerToBroker(b *testing.B) {
	s := offline(b)
	client := brokertest.New(b).Connect()
	if err := client.EnsureTopology(b.Context()); err != nil {
		b.Fatal(err)
	}
	committer := client.NewCommitter(stream.CommitConfig{})
	defer committer.Close()
	s.traces = committer
	benchmarkPosts(b, s)
}

func benchmarkPosts(b *testing.B, s *server) {
	b.Helper()
	const perRequest = 5000
	handler := s.handler()
	var text bytes.Buffer
	size, line := 0, 0
	b.ReportAllocs()
	for left := b.N; left > 0; left -= perRequest {
		b.StopTimer()
		text.Reset()
		for range min(left, perRequest) {
			text.WriteString(usual(line))
			line++
		}
		size += text.Len()
		request := httptest.NewRequest(http.MethodPost, "/v1/traces", bytes.NewReader(text.Bytes()))
		request.Header.Set("Content-Type", "application/x-ndjson")
		answer := httptest.NewRecorder()
		b.StartTimer()
		handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			b.Fatalf("%d %.200s", answer.Code, answer.Body)
		}
	}
	b.SetBytes(int64(size / max(b.N, 1)))
}

// usualAgents is the number of agents with cards in the registry of offline.
const usualAgents = 100

// usual returns a line of typical size, about 1,600 bytes, without any warnings.
func usual(i int) string {
	blob, agent := bytes.Repeat([]byte("reasoning "), 115), i%usualAgents
	line := trace(fmt.Sprint("did:web:agent-", agent), fmt.Sprint("trace-", i),
		fmt.Sprintf(`"context":{"session_id":"s-%d","metadata":{"notes":"%s"}}`, i%500, blob)) + "\n"
	return strings.Replace(line, `"card_id":"card-1"`, fmt.Sprintf(`"card_id":"card-%d"`, agent), 1)
}

// openGrant returns the grant of every request without tokens.
func openGrant(t testing.TB, s *server) auth.Grant {
	t.Helper()
	grant, err := s.keeper.Authorize("", auth.TracesWrite)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}
