package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// server answers the n-th request (from 0) with answers[n] and records the bodies.
type server struct {
	answers []func(http.ResponseWriter)
	bodies  []string
	paths   []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(s.bodies) == len(s.answers) {
		http.Error(w, fmt.Sprintf("request %d: %v", len(s.bodies), err), http.StatusTeapot)
		return
	}
	answer := s.answers[len(s.bodies)]
	s.bodies, s.paths = append(s.bodies, string(body)), append(s.paths, r.URL.EscapedPath())
	answer(w)
}

func reply(code int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// breakOff drops the connection before an answer.
func breakOff(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func start(t *testing.T, answers ...func(http.ResponseWriter)) (*server, *Publisher) {
	s := &server{answers: answers}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	return s, &Publisher{URL: listening.URL + "/"}
}

var lines = [][]byte{[]byte("one"), []byte("two"), []byte("three")}

func statuses(outcomes []Outcome) (text string) {
	for _, o := range outcomes {
		text += o.Status + " "
	}
	return text
}

const allOutcomes = `{"line":1,"trace_id":"1","status":"accepted","faults":[]}
{"line":2,"trace_id":"2","status":"refused","faults":[{"pointer":"/x","message":"m"}]}
{"line":3,"trace_id":"3","status":"duplicate","faults":[]}
`

func TestPublishReturnsTheOutcomeOfEachLine(t *testing.T) {
	s, publisher := start(t, reply(207, allOutcomes))
	got, err := publisher.Publish(t.Context(), lines)
	if err != nil || statuses(got) != "accepted refused duplicate " {
		t.Errorf("outcomes are %v, error %v", got, err)
	}
	if s.bodies[0] != "one\ntwo\nthree\n" {
		t.Errorf("sent %q", s.bodies[0])
	}
	if len(got[1].Faults) != 1 || got[1].Faults[0].Pointer != "/x" {
		t.Errorf("faults are %v", got[1].Faults)
	}
}

// The same lines are sent again after a 503 and after a lost connection.
func TestPublishRepeatsLinesWithoutAnAnswer(t *testing.T) {
	s, publisher := start(t, reply(503, `{"error":"unavailable","message":"later"}`), breakOff, reply(502, "<html>"), reply(200, allOutcomes))
	retries := 0
	publisher.Waiting = func(error) { retries++ }
	got, err := publisher.Publish(t.Context(), lines)
	if err != nil || statuses(got) != "accepted refused duplicate " {
		t.Errorf("outcomes are %v, error %v", got, err)
	}
	if retries != 3 {
		t.Errorf("Waiting was called %d times, want 3", retries)
	}
	for i, body := range s.bodies {
		if body != "one\ntwo\nthree\n" {
			t.Errorf("request %d sent %q", i, body)
		}
	}
}

// Lines with a final outcome are not sent again; the others keep their order.
func TestPublishRepeatsOnlyLinesWithoutAnOutcome(t *testing.T) {
	s, publisher := start(t,
		reply(503, `{"line":1,"trace_id":"1","status":"accepted","faults":[]}`+"\n"+`{"line":2,"trace_id":"","status":"retry","faults":[]}`),
		reply(200, `{"line":1,"trace_id":"2","status":"accepted","faults":[]}`+"\n"+`{"line":2,"trace_id":"3","status":"accepted","faults":[]}`))
	got, err := publisher.Publish(t.Context(), lines)
	if err != nil || statuses(got) != "accepted accepted accepted " {
		t.Errorf("outcomes are %v, error %v", got, err)
	}
	if len(s.bodies) != 2 || s.bodies[1] != "two\nthree\n" {
		t.Errorf("sent %q", s.bodies)
	}
}

// The recorder distinguishes the answer of a proxy, or of something else, from an answer of ingest.
func TestAnswersOfOthers(t *testing.T) {
	_, publisher := start(t, reply(429, "<html>"), reply(504, ""), reply(200, allOutcomes))
	if got, err := publisher.Publish(t.Context(), lines); err != nil || statuses(got) != "accepted refused duplicate " {
		t.Errorf("outcomes are %v, error %v", got, err)
	}
	moved := func(w http.ResponseWriter) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusMovedPermanently)
	}
	for want, answer := range map[string]func(http.ResponseWriter){
		`no service of Plumbline: "OK"`: reply(200, "<html>"), `"Request Entity Too Large" (HTTP 413)`: reply(413, "<html>"),
		`no service of Plumbline: "Moved Permanently"`: moved,
	} {
		s, publisher := start(t, answer, reply(200, `{"traces":[]}`))
		if _, err := publisher.Publish(t.Context(), lines); err == nil || !strings.Contains(err.Error(), want) || len(s.bodies) != 1 {
			t.Errorf("error %v after %d requests, want %s", err, len(s.bodies), want)
		}
	}
}

func TestRefusedRequestIsNotRepeated(t *testing.T) {
	s, publisher := start(t, reply(401, `{"error":"token","message":"no token"}`))
	_, err := publisher.Publish(t.Context(), lines)
	var problem *Problem
	if !errors.As(err, &problem) || problem.Code != 401 || problem.Message != "no token" || len(s.bodies) != 1 {
		t.Errorf("error is %v after %d requests", err, len(s.bodies))
	}
}

func TestPatienceEnds(t *testing.T) {
	push := reply(503, `{"line":1,"trace_id":"","status":"retry","faults":[]}`)
	_, publisher := start(t, repeated(push, 100)...)
	publisher.Patience = time.Millisecond
	got, err := publisher.Publish(t.Context(), lines)
	if err == nil || statuses(got) != "   " {
		t.Errorf("outcomes are %v, error %v", got, err)
	}
}

func repeated(answer func(http.ResponseWriter), n int) []func(http.ResponseWriter) {
	answers := make([]func(http.ResponseWriter), n)
	for i := range answers {
		answers[i] = answer
	}
	return answers
}

func TestPublishEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, publisher := start(t, func(w http.ResponseWriter) {
		cancel()
		reply(503, "")(w)
	})
	if _, err := publisher.Publish(ctx, lines); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestCardsAndSessions(t *testing.T) {
	s, publisher := start(t, reply(201, "{}"), reply(200, "{}"), reply(409, `{"error":"changed","message":"changed"}`), reply(202, "{}"))
	for i, want := range []bool{true, false} {
		if created, err := publisher.PutCard(t.Context(), "a/b ?", []byte("{}")); err != nil || created != want {
			t.Errorf("card %d: created %t, error %v", i, created, err)
		}
	}
	var problem *Problem
	if _, err := publisher.PutCard(t.Context(), "c", []byte("{}")); !errors.As(err, &problem) || problem.Code != 409 {
		t.Errorf("changed card: error %v", err)
	}
	if err := publisher.EndSession(t.Context(), "a", "s"); err != nil {
		t.Error(err)
	}
	if s.paths[0] != "/v1/cards/a%2Fb%20%3F" || s.bodies[3] != `{"agent_id":"a","session_id":"s"}` {
		t.Errorf("paths %q, bodies %q", s.paths, s.bodies)
	}
}

// A requested pause applies once, and never extends the publisher's patience.
func TestPauseIsTheOneThatTheServiceRequests(t *testing.T) {
	p := &pauses{ExponentialBackOff: backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(time.Hour)), requested: 7 * time.Second}
	if got := p.NextBackOff(); got != 7*time.Second {
		t.Errorf("pause is %v, want 7s", got)
	}
	if got := p.NextBackOff(); got == 7*time.Second || got == backoff.Stop {
		t.Errorf("next pause is %v, want a growing one", got)
	}
	p.MaxElapsedTime, p.requested = time.Nanosecond, time.Second
	if got := p.NextBackOff(); got != backoff.Stop {
		t.Errorf("pause is %v, want Stop", got)
	}
}

// Warnings are in the outcomes of the lines that they concern, and a refusal of several lines
// is the outcome of each of them.
func TestWarningsAndRefusalsOfSeveralLines(t *testing.T) {
	_, publisher := start(t, reply(207, `{"line":1,"trace_id":"1","status":"accepted","faults":[],"warnings":[{"code":"unknown_card","pointer":"/card_id","message":"m"}]}
{"line":2,"through":3,"trace_id":"","status":"refused","faults":[{"pointer":"","message":"goes on to line 3"}]}
`))
	got, err := publisher.Publish(t.Context(), lines)
	if err != nil || statuses(got) != "accepted refused refused " {
		t.Fatalf("outcomes are %v, error %v", got, err)
	}
	if w := got[0].Warnings; len(w) != 1 || w[0].Code != "unknown_card" || w[0].Pointer != "/card_id" {
		t.Errorf("warnings are %+v", w)
	}
	if len(got[1].Faults) != 1 || len(got[2].Faults) != 0 {
		t.Errorf("faults are %v and %v", got[1].Faults, got[2].Faults)
	}
}

// A span is sent to its own address, again while ingest asks for that, and a rejected one says why.
func TestSpansArePublished(t *testing.T) {
	s, publisher := start(t,
		reply(503, `{"code":14,"message":"later"}`),
		reply(200, `{"partialSuccess":{"errorMessage":"warning unknown_card"}}`),
		reply(200, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"refused: /action/name: no_action; refused: /card_id: no_card_id"}}`),
		reply(200, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"unread_attribute: x; forbidden: /agent_id: another agent"}}`),
		reply(403, `{"code":7,"message":"scope"}`),
		reply(200, `hello`))
	if outcome, err := publisher.PublishSpan(t.Context(), []byte(`{"resourceSpans":[]}`)); err != nil || outcome.Status != Accepted || s.bodies[1] != `{"resourceSpans":[]}` {
		t.Errorf("the outcome is %+v, error %v", outcome, err)
	}
	if outcome, err := publisher.PublishSpan(t.Context(), nil); err != nil || outcome.Status != Refused || outcome.Faults[0].Message != "/action/name: no_action; /card_id: no_card_id" {
		t.Errorf("rejected: the outcome is %+v, error %v", outcome, err)
	}
	if outcome, err := publisher.PublishSpan(t.Context(), nil); err != nil || outcome.Status != Forbidden || outcome.Faults[0].Message != "unread_attribute: x; /agent_id: another agent" {
		t.Errorf("forbidden: the outcome is %+v, error %v", outcome, err)
	}
	var problem *Problem
	if _, err := publisher.PublishSpan(t.Context(), nil); !errors.As(err, &problem) || problem.Code != 403 || problem.Message != "scope" {
		t.Errorf("refused: error %v", err)
	}
	if _, err := publisher.PublishSpan(t.Context(), nil); err == nil {
		t.Error("an answer of another program is taken")
	}
}

func TestDocumentsAreSentUnchangedAndLettersMarked(t *testing.T) {
	s, publisher := start(t,
		reply(503, `{"line":1,"trace_id":"","status":"retry","faults":[]}`),
		reply(200, `{"line":1,"trace_id":"t","status":"accepted","faults":[]}`),
		reply(403, `{"error":"scope","message":"m"}`),
		reply(202, `{"marked":1}`),
		reply(403, `{"error":"scope","message":"m"}`))
	if outcome, err := publisher.PublishDocument(t.Context(), []byte("{\n}")); err != nil || outcome.Status != Accepted || outcome.TraceID != "t" {
		t.Errorf("the outcome is %+v, error %v", outcome, err)
	}
	if s.bodies[0] != "{\n}" || s.bodies[1] != s.bodies[0] {
		t.Errorf("sent %q", s.bodies)
	}
	var problem *Problem
	if _, err := publisher.PublishDocument(t.Context(), []byte("{}")); !errors.As(err, &problem) || problem.Code != 403 {
		t.Errorf("refused: error %v", err)
	}
	if err := publisher.MarkDeadLetters(t.Context(), "dropped", "n", []string{"ab"}); err != nil || s.bodies[3] != `{"digests":["ab"],"mark":"dropped","note":"n"}` {
		t.Errorf("sent %q, error %v", s.bodies, err)
	}
	if err := publisher.MarkDeadLetters(t.Context(), "dropped", "", nil); !errors.As(err, &problem) {
		t.Errorf("refused: error %v", err)
	}
}

// One call may have any number of lines: it makes requests of limited size, in the lines' order.
func TestPublishLimitsItsRequests(t *testing.T) {
	var sent []string
	var requests []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for line := range strings.Lines(string(must(io.ReadAll(r.Body)))) {
			n++
			sent = append(sent, strings.TrimSpace(line))
			fmt.Fprintf(w, `{"line":%d,"trace_id":%q,"status":"accepted","faults":[]}`+"\n", n, line[:5])
		}
		requests = append(requests, n)
	}))
	defer server.Close()
	var given [][]byte
	for i := range 4500 {
		given = append(given, fmt.Appendf(nil, "%05d", i))
	}
	large := append([]byte("large"), make([]byte, requestBytes)...)
	given = append(given, large, large)
	got, err := (&Publisher{URL: server.URL}).Publish(t.Context(), given)
	if err != nil || fmt.Sprint(requests) != "[2000 2000 500 1 1]" {
		t.Fatalf("requests of %v lines, error %v", requests, err)
	}
	for i := range given {
		if sent[i] != string(given[i]) || got[i].TraceID != string(given[i][:5]) || got[i].Status != Accepted {
			t.Fatalf("line %d was sent as %.20q, its outcome is %+v", i, sent[i], got[i])
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
