package messages

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/wire"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// memory is a bucket in memory that can fail before a write, or after it, so the caller does not
// learn that the write happened.
type memory struct {
	mu          sync.Mutex
	values      map[string][]byte
	revision    uint64
	before      error
	after       error
	unreadable  error
	revisionsOf map[string]uint64
}

func newMemory() *memory {
	return &memory{values: map[string][]byte{}, revisionsOf: map[string]uint64{}}
}

func (m *memory) Create(_ context.Context, key string, value []byte) (uint64, error) {
	return m.write(key, value, 0)
}

func (m *memory) Update(_ context.Context, key string, value []byte, last uint64) (uint64, error) {
	return m.write(key, value, last)
}

func (m *memory) write(key string, value []byte, last uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before != nil {
		return 0, m.before
	}
	if m.revisionsOf[key] != last {
		return 0, stream.ErrConflict
	}
	m.revision++
	m.values[key], m.revisionsOf[key] = bytes.Clone(value), m.revision
	return m.revision, m.after
}

func (m *memory) GetNewest(_ context.Context, key string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unreadable != nil {
		return nil, 0, m.unreadable
	}
	value, there := m.values[key]
	if !there {
		return nil, 0, stream.ErrNotFound
	}
	return value, m.revisionsOf[key], nil
}

// gateway is a service whose clock the test controls.
type gateway struct {
	*Service
	bucket *memory
	now    time.Time
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	policies, err := OpenPolicies(writePolicies(t, 0o600, "agents: {a: {mode: enforce, tools: {search: read, send: send}}}"), false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &gateway{bucket: newMemory(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s.Service, err = New(Parts{
		Policies: policies, Records: NewRecords(s.bucket), Window: message.DefaultWindow,
		Now: func() time.Time { return s.now }, Random: rand.Reader, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *gateway) signed(t *testing.T, source message.Source, intents ...string) *wire.SignedMessage {
	t.Helper()
	m, err := s.Sign(t.Context(), &wire.SignRequest{AgentID: "a", SessionID: "s", Text: "x", Intents: &intents}, Sender{source, "x"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *gateway) verified(t *testing.T, m *wire.SignedMessage) *wire.Verification {
	t.Helper()
	v, err := s.Verify(t.Context(), &wire.VerifyRequest{AgentID: "a", SessionID: "s", Wrapped: m.Wrapped, Envelope: &m.Envelope})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A message is fresh within the window, before and after now. A message that waited for a person
// is fresh from the approval on.
func TestMessagesBecomeStale(t *testing.T) {
	s := newGateway(t)
	old, early := s.signed(t, message.Human, "read"), s.signed(t, message.Human, "read")
	s.now = s.now.Add(message.DefaultWindow + 1)
	if v := s.verified(t, old); v.Reason != message.ReasonStale || v.Outcome != message.Rejected {
		t.Errorf("%+v", v)
	}
	s.now = s.now.Add(-2 * (message.DefaultWindow + 1))
	if v := s.verified(t, early); v.Reason != message.ReasonStale {
		t.Errorf("from the future: %+v", v)
	}
	relay := s.signed(t, message.Agent, "send")
	s.now = s.now.Add(time.Hour)
	if v := s.verified(t, relay); v.Reason != message.ReasonStale {
		t.Errorf("an hour later: %+v", v)
	}
	_, err := s.Sign(t.Context(), &wire.SignRequest{AgentID: "a", SessionID: "s", Text: "yes", Approves: relay.ID}, Sender{message.Human, "ann"})
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(message.DefaultWindow)
	if v := s.verified(t, relay); v.Outcome != message.Accepted || v.Intents != message.Send {
		t.Errorf("approved: %+v", v)
	}
}

// A clock that was wrong for a while, a day fast or slow, does no lasting harm. A message that
// was refused as stale is accepted once the clock is right again, and only once.
func TestClockThatWasWrong(t *testing.T) {
	s := newGateway(t)
	for _, wrong := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		m := s.signed(t, message.Human, "read")
		s.now = s.now.Add(wrong)
		if v := s.verified(t, m); v.Reason != message.ReasonStale {
			t.Errorf("%s: %+v", wrong, v)
		}
		s.now = s.now.Add(-wrong)
		if v := s.verified(t, m); v.Outcome != message.Accepted {
			t.Errorf("after %s: %+v", wrong, v)
		}
		if v := s.verified(t, m); v.Reason != message.ReasonReplayed {
			t.Errorf("again after %s: %+v", wrong, v)
		}
	}
}

// What cannot be recorded is not decided. An attempt with an unknown outcome is not decided
// twice.
func TestNoBroker(t *testing.T) {
	away := fmt.Errorf("%w: away", stream.ErrUnavailable)
	s := newGateway(t)
	m, approved := s.signed(t, message.Human, "read"), s.signed(t, message.Agent, "send")
	ask := map[string]func() error{
		"sign": func() error {
			_, err := s.Sign(t.Context(), &wire.SignRequest{AgentID: "a", SessionID: "s", Text: "x"}, Sender{message.Human, "x"})
			return err
		},
		"approve": func() error {
			_, err := s.Sign(t.Context(), &wire.SignRequest{AgentID: "a", SessionID: "s", Approves: approved.ID}, Sender{message.Human, "x"})
			return err
		},
		"verify": func() error {
			_, err := s.Verify(t.Context(), &wire.VerifyRequest{AgentID: "a", SessionID: "s", Wrapped: m.Wrapped, Envelope: &m.Envelope})
			return err
		},
		"verify a forgery": func() error {
			_, err := s.Verify(t.Context(), &wire.VerifyRequest{AgentID: "a", SessionID: "s", Wrapped: "x"})
			return err
		},
		"verify an agent's": func() error {
			_, err := s.Verify(t.Context(), &wire.VerifyRequest{AgentID: "a", SessionID: "s", Wrapped: approved.Wrapped, Envelope: &approved.Envelope})
			return err
		},
		"call": func() error {
			_, err := s.Call(t.Context(), &wire.CallRequest{AgentID: "a", SessionID: "s", MessageID: m.ID, ToolName: "search"})
			return err
		},
		"sign a result": func() error {
			_, err := s.SignResult(t.Context(), &wire.ResultRequest{AgentID: "a", SessionID: "s", ToolName: "search", Result: []byte("1")})
			return err
		},
	}
	for name, fail := range map[string]func(error){
		"writes fail": func(err error) { s.bucket.before = err }, "reads and writes fail": func(err error) { s.bucket.before, s.bucket.unreadable = err, err },
	} {
		fail(away)
		for what, do := range ask {
			if err := do(); !errors.Is(err, stream.ErrUnavailable) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		fail(nil)
	}
	s.bucket.after = away // the write happens, the answer is lost
	if v := s.verified(t, m); v.Outcome != message.Accepted {
		t.Errorf("an outcome that got lost: %+v", v)
	}
	s.bucket.after = nil
	if v := s.verified(t, m); v.Reason != message.ReasonReplayed {
		t.Errorf("after it: %+v", v)
	}
}

// A runtime that did not get the answer repeats its attempt and gets the same answer. For every
// other attempt the message is a replay.
func TestAttemptMayBeRepeated(t *testing.T) {
	s := newGateway(t)
	m := s.signed(t, message.Human, "read")
	ask := func(attempt string) (*wire.Verification, error) {
		return s.Verify(t.Context(), &wire.VerifyRequest{AgentID: "a", SessionID: "s", Wrapped: m.Wrapped, Envelope: &m.Envelope, AttemptID: attempt})
	}
	away := fmt.Errorf("%w: away", stream.ErrUnavailable)
	s.bucket.after, s.bucket.unreadable = away, away // it is accepted, and nobody learns that
	if _, err := ask("one"); !errors.Is(err, stream.ErrUnavailable) {
		t.Fatal(err)
	}
	s.bucket.after, s.bucket.unreadable = nil, nil
	first, err := ask("one")
	if err != nil || first.Outcome != message.Accepted || !first.Authenticated || first.Text != "x" {
		t.Fatalf("%+v, error %v", first, err)
	}
	s.now = s.now.Add(time.Second)
	if same, err := ask("one"); err != nil || same.DecisionID != first.DecisionID {
		t.Errorf("%+v, error %v", same, err)
	}
	for _, other := range []string{"two", ""} {
		if v, err := ask(other); err != nil || v.Reason != message.ReasonReplayed || v.Text != "" {
			t.Errorf("attempt %q: %+v, error %v", other, v, err)
		}
	}
	m = s.signed(t, message.Human, "read")
	for _, want := range []string{"", message.ReasonReplayed} { // an empty attempt matches no other
		if v, err := ask(""); err != nil || v.Reason != want {
			t.Errorf("%+v, error %v, want %q", v, err, want)
		}
	}
}

// A value that is not a record permits nothing, and nobody waits for it to change.
func TestValuesThatAreNoRecords(t *testing.T) {
	s := newGateway(t)
	m := s.signed(t, message.Human, "read")
	s.bucket.values[messageKey(m.ID)] = []byte(`{"intents":["fly"]}`)
	d, err := s.Call(t.Context(), &wire.CallRequest{AgentID: "a", SessionID: "s", MessageID: m.ID, ToolName: "search"})
	if err != nil || d.Outcome != message.Blocked || d.Reason != message.ReasonNoMessage {
		t.Errorf("%+v, error %v", d, err)
	}
}

// A refused message leaves no approval behind.
func TestSecondApprovalsAreNotRecorded(t *testing.T) {
	s := newGateway(t)
	relay := s.signed(t, message.Agent, "send")
	approve := func() error {
		_, err := s.Sign(t.Context(), &wire.SignRequest{AgentID: "a", SessionID: "s", Approves: relay.ID}, Sender{message.Human, "ann"})
		return err
	}
	if err := approve(); err != nil {
		t.Fatal(err)
	}
	before := len(s.bucket.values)
	if p, ok := errors.AsType[*problem.Problem](approve()); !ok || p.Word != WordDecided || len(s.bucket.values) != before {
		t.Errorf("%+v, %d records more", p, len(s.bucket.values)-before)
	}
}

// Of any number of concurrent requests, one accepts the message, and no number is given twice.
func TestManyAtOnce(t *testing.T) {
	s := newGateway(t)
	m := s.signed(t, message.Human, "read")
	var wait sync.WaitGroup
	var mu sync.Mutex
	taken, numbers := 0, map[uint64]bool{}
	const askers = 16
	for range askers {
		wait.Go(func() {
			v, err := s.Verify(t.Context(), &wire.VerifyRequest{AgentID: "a", SessionID: "s", Wrapped: m.Wrapped, Envelope: &m.Envelope})
			r, failed := s.SignResult(t.Context(), &wire.ResultRequest{AgentID: "a", SessionID: "s", ToolName: "search", Result: []byte("1")})
			if err != nil || failed != nil {
				t.Error(err, failed)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if v.Outcome == message.Accepted {
				taken++
			}
			numbers[r.Seq] = true
		})
	}
	wait.Wait()
	if taken != 1 || len(numbers) != askers {
		t.Errorf("taken %d times, %d numbers", taken, len(numbers))
	}
}

// What a runtime claims is shortened before it is stored.
func TestHostileEnvelopes(t *testing.T) {
	s := newGateway(t)
	m := s.signed(t, message.Human, "read")
	long := strings.Repeat("é", 1<<20)
	for name, alter := range map[string]func(e *message.Envelope){
		"id": func(e *message.Envelope) { e.ID = long }, "key": func(e *message.Envelope) { e.KeyID = long }, "sender": func(e *message.Envelope) { e.Sender = long },
		"nonce": func(e *message.Envelope) { e.Nonce = "../" + long }, "session": func(e *message.Envelope) { e.SessionID = long },
		"time": func(e *message.Envelope) { e.Timestamp = schema.Time{} }, "source": func(e *message.Envelope) { e.Source = "god" },
	} {
		envelope := m.Envelope
		alter(&envelope)
		before := len(s.bucket.values)
		v, err := s.Verify(t.Context(), &wire.VerifyRequest{AgentID: "a", SessionID: "s", Wrapped: m.Wrapped, Envelope: &envelope})
		session := name == "session" // the runtime's own session decides, not this one
		if err != nil || (v.Outcome == message.Accepted) != session || len(s.bucket.values) != before+1 {
			t.Errorf("%s: %+v, error %v", name, v, err)
		}
	}
	for key, value := range s.bucket.values {
		if len(key)+len(value) > 4*schema.MaxIDBytes {
			t.Errorf("%d bytes are kept under a key of %d", len(value), len(key))
		}
	}
	if d, err := s.Call(t.Context(), &wire.CallRequest{AgentID: "a", SessionID: "s", MessageID: long, ToolName: "search"}); err != nil || d.Reason != message.ReasonNoMessage {
		t.Errorf("%+v, error %v", d, err)
	}
}

// The cache of records is limited, and absence is not cached.
func TestCaching(t *testing.T) {
	bucket := newMemory()
	r := &caching{Bucket: bucket}
	if _, _, err := r.GetNewest(t.Context(), "late"); !errors.Is(err, stream.ErrNotFound) {
		t.Fatal(err)
	}
	for i := range 3*maxCached + 1 {
		key := fmt.Sprint("k", i)
		if _, err := bucket.Create(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
		if value, _, err := r.GetNewest(t.Context(), key); err != nil || string(value) != key {
			t.Fatalf("%s: %q, %v", key, value, err)
		}
	}
	if len(r.recent)+len(r.older) > 2*maxCached {
		t.Errorf("%d and %d are remembered", len(r.recent), len(r.older))
	}
	bucket.unreadable = stream.ErrUnavailable
	last := fmt.Sprint("k", 3*maxCached)
	if value, _, err := r.GetNewest(t.Context(), last); err != nil || string(value) != last {
		t.Errorf("the last one: %q, %v", value, err)
	}
	bucket.unreadable = nil
	if _, err := bucket.Create(t.Context(), "late", []byte("there")); err != nil {
		t.Fatal(err)
	}
	if value, _, err := r.GetNewest(t.Context(), "late"); err != nil || string(value) != "there" {
		t.Errorf("what came late: %q, %v", value, err)
	}
}
