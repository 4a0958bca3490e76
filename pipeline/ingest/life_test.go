package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/stream"
)

// impatient connects again with a short timeout, so an outage is noticed at once.
func impatient(s *server) {
	connect := s.connect
	s.connect = func(ctx context.Context) (*stream.Client, error) {
		patient, err := connect(ctx) // it creates the streams, which may take long
		if err != nil {
			return nil, err
		}
		if err := patient.Close(); err != nil {
			return nil, err
		}
		client, err := stream.Connect(ctx, stream.Config{URL: s.cfg.NATS.URL, Timeout: time.Second, Logger: s.env.Log})
		if err == nil {
			s.env.Component("broker").Ask(client.Ping)
		}
		return client, err
	}
}

func TestBrokerOutage(t *testing.T) {
	r := start(t, wired(impatient))
	lines := traces("did:web:a", chunkLines+1)
	r.broker.Stop()
	for name, ask := range map[string]func() reply{
		"traces":   func() reply { return r.post(body(lines...)) },
		"cards":    func() reply { return r.putCard("card-1", card("did:web:a", "card-1")) },
		"sessions": func() reply { return r.endSession("did:web:a", "s") },
	} {
		answer := ask()
		if answer.code != http.StatusServiceUnavailable || answer.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %.200s, Retry-After %q", name, answer.code, answer.text, answer.header.Get("Retry-After"))
		}
	}
	// No line is answered as stored, and the last line says what was not read.
	outcomes := r.post(body(lines...)).lines(t)
	if last := outcomes[len(outcomes)-1]; len(outcomes) != chunkLines+1 || last.Line != chunkLines+1 {
		t.Errorf("%d outcomes, last %+v", len(outcomes), last)
	}
	for _, outcome := range outcomes {
		if outcome.Status != "retry" || !strings.Contains(outcome.Faults[0].Message, "the broker is unavailable, ") ||
			!strings.HasSuffix(outcome.Faults[0].Message, ": repeat the request later") {
			t.Fatalf("without a broker: %+v", outcome)
		}
	}
	if answer := r.send(http.MethodGet, "/readyz", nil); answer.code != http.StatusServiceUnavailable || !strings.Contains(answer.text, "broker") {
		t.Errorf("readiness: %d %s", answer.code, answer.text)
	}
	if answer := r.send(http.MethodGet, "/healthz", nil); answer.code != http.StatusOK {
		t.Errorf("liveness: %d %s", answer.code, answer.text)
	}
	r.broker.Start()
	answer := r.post(body(lines...))
	for answer.code == http.StatusServiceUnavailable && t.Context().Err() == nil { // repeats like a publisher
		answer = r.post(body(lines...))
	}
	if answer.code != http.StatusOK {
		t.Errorf("after the outage: %d %.200s", answer.code, answer.text)
	}
	r.stored(uint64(len(lines)))
	if answer := r.send(http.MethodGet, "/readyz", nil); answer.code != http.StatusOK {
		t.Errorf("readiness after the outage: %d %s", answer.code, answer.text)
	}
}

// TestGateBeforeTheBroker checks that operators and publishers get answers while the stage still
// waits for its broker.
func TestGateBeforeTheBroker(t *testing.T) {
	reached := make(chan struct{})
	r := prepare(t, wired(func(s *server) {
		connect := s.connect
		s.connect = func(ctx context.Context) (*stream.Client, error) {
			<-reached
			return connect(ctx)
		}
	}))
	if answer := r.send(http.MethodGet, "/healthz", nil); answer.code != http.StatusOK {
		t.Errorf("liveness: %d", answer.code)
	}
	if answer := r.send(http.MethodGet, "/readyz", nil); answer.code != http.StatusServiceUnavailable {
		t.Errorf("readiness: %d", answer.code)
	}
	if answer := r.post(body(trace("a", "1"))); answer.code != http.StatusServiceUnavailable || answer.header.Get("Retry-After") != "1" {
		t.Errorf("%d %s", answer.code, answer.text)
	}
	close(reached)
	r.awaitReady()
	if answer := r.post(body(trace("a", "1"))); answer.code != http.StatusOK {
		t.Errorf("%d %s", answer.code, answer.text)
	}
}

// If the broker becomes unavailable right after the stage has connected, the stage does not end.
func TestBrokerOutageWhileTheStageOpens(t *testing.T) {
	connected, stopped := make(chan struct{}), make(chan struct{})
	r := prepare(t, wired(impatient), wired(func(s *server) {
		connect := s.connect
		s.connect = func(ctx context.Context) (*stream.Client, error) {
			client, err := connect(ctx)
			close(connected)
			<-stopped
			return client, err
		}
	}))
	<-connected
	r.broker.Stop()
	close(stopped)
	r.await(func() bool {
		return strings.Contains(r.send(http.MethodGet, "/metrics", nil).text, `plumbline_retries_total{operation="open streams and buckets",stage="ingest"}`)
	})
	r.broker.Start()
	r.awaitReady()
	if answer := r.post(body(trace("a", "1"))); answer.code != http.StatusOK {
		t.Errorf("%d %s", answer.code, answer.text)
	}
}

// TestSmallRequestsShareBatches commits only full batches, so the requests are answered only
// because they share one.
func TestSmallRequestsShareBatches(t *testing.T) {
	const requests = 100
	r := start(t, wired(func(s *server) { s.commits = stream.CommitConfig{MaxMessages: requests, Linger: time.Hour} }))
	var publishers errgroup.Group
	for i := range requests {
		publishers.Go(func() error {
			if answer := r.post(body(trace(fmt.Sprint("agent-", i), "1"))); answer.code != http.StatusOK {
				return errors.New(answer.text)
			}
			return nil
		})
	}
	if err := publishers.Wait(); err != nil {
		t.Error(err)
	}
	r.stored(requests)
}

// TestRequestsWaitForMemory checks that requests that do not fit into memory at the same time
// wait.
func TestRequestsWaitForMemory(t *testing.T) {
	r := start(t, configured(func(cfg *Config) { cfg.MaxInFlightBytes = windowBytes }))
	var publishers errgroup.Group
	for i := range 8 {
		publishers.Go(func() error {
			text := body(traces(fmt.Sprint("agent-", i), 400)...)
			if answer := r.post(text); answer.code != http.StatusOK {
				return fmt.Errorf("%d %.200s", answer.code, answer.text)
			}
			return nil
		})
	}
	if err := publishers.Wait(); err != nil {
		t.Error(err)
	}
	r.stored(8 * 400)
}

// TestDrainFinishesCurrentRequests checks that a request whose body is arriving when the stage
// must stop is still answered, and stored.
func TestDrainFinishesCurrentRequests(t *testing.T) {
	r := start(t)
	upload, body := io.Pipe()
	inHand := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(inHand) }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/traces", upload)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	request.Header.Set("Expect", "100-continue")
	r.http.Transport = &http.Transport{ExpectContinueTimeout: time.Minute}
	var publisher, stage errgroup.Group
	publisher.Go(func() error {
		answer, err := r.http.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s, error %w", answer.StatusCode, text, err)
		}
		return nil
	})
	<-inHand
	stage.Go(r.stop)
	for {
		conn, err := new(http.Client).Get(r.url + "/healthz")
		if err != nil { // nobody listens any more
			break
		}
		if err := conn.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(body, trace("did:web:a", "1")+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(body.Close(), publisher.Wait(), stage.Wait()); err != nil {
		t.Error(err)
	}
	r.stored(1)
}

func TestUnknownRoutes(t *testing.T) {
	r := start(t)
	if answer := r.send(http.MethodPut, "/v1/traces", nil); answer.code != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", answer.code)
	}
	if answer := r.send(http.MethodPost, "/v2/traces", nil); answer.code != http.StatusNotFound {
		t.Errorf("/v2: %d", answer.code)
	}
}

func TestMetricsCountLines(t *testing.T) {
	r := start(t)
	good := trace("did:web:a", "1")
	r.post(body(good, good, "{", "["))
	r.letters(2)
	if err := r.server.env.Retry.Do(t.Context(), "await the letters' count", func() error {
		text := r.send(http.MethodGet, "/metrics", nil).text
		for _, want := range []string{
			`plumbline_ingest_lines_total{outcome="accepted",stage="ingest"} 1`,
			`plumbline_ingest_lines_total{outcome="duplicate",stage="ingest"} 1`,
			`plumbline_ingest_lines_total{outcome="refused",stage="ingest"} 2`,
			`plumbline_ingest_lines_total{outcome="retry",stage="ingest"} 0`,
			`plumbline_ingest_request_seconds_count{code="207",route="POST /v1/traces",stage="ingest"} 1`,
			`plumbline_ingest_commit_rows_sum{stage="ingest"} 2`,
			`plumbline_ingest_dead_letters_total{reason="invalid_json",stage="ingest"} 2`,
		} {
			if !strings.Contains(text, want+"\n") {
				return fmt.Errorf("no %s", want)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
