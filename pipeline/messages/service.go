package messages

import (
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// Service is the gateway for messages in one process, with its own key. Any goroutine may use it.
type Service struct {
	Parts
	key       *message.Key
	decisions *prometheus.CounterVec // by kind, outcome and reason
}

// Parts are the dependencies of a Service.
type Parts struct {
	Policies *Policies
	Records  *Records
	Window   time.Duration // how long a message stays fresh
	Now      func() time.Time
	Random   io.Reader // crypto/rand.Reader; source of the key and of every nonce
	Metrics  prometheus.Registerer
}

// New returns a service with a new key.
func New(p Parts) (*Service, error) {
	key, err := message.NewKey(p.Random)
	if err != nil {
		return nil, err
	}
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_ingest_message_decisions_total",
		Help: "Decisions about messages, tool calls and tool results, by outcome and reason.",
	}, []string{"kind", "outcome", "reason"})
	p.Metrics.MustRegister(decisions)
	return &Service{Parts: p, key: key, decisions: decisions}, nil
}

// KeyID returns the id of the key of this process.
func (s *Service) KeyID() string { return s.key.ID() }

// begin returns a new record.
func (s *Service) begin(kind message.Kind, agentID, sessionID string) *message.Record {
	now := s.Now().UTC()
	return &message.Record{
		ID: uuid.NewString(), Kind: kind, At: now, AgentID: agentID, SessionID: sessionID,
		Mode: s.Policies.Of(agentID, now).Mode,
	}
}

// count counts a decision.
func (s *Service) count(r *message.Record) {
	s.decisions.WithLabelValues(string(r.Kind), string(r.Outcome), r.Reason).Inc()
}

// against records a reason against a message or call. The outcome becomes held only in mode
// enforce. In the other modes it still passes.
func against(r *message.Record, held message.Outcome, reason, detail string) {
	r.Reason, r.Detail = reason, detail
	if r.Mode == message.Enforce {
		r.Outcome = held
	}
}

// The words of a Problem. For a refused message the word is the reason.
const (
	WordInvalid  = problem.WordInvalid // 400: see the faults
	WordNotHuman = "not_human"         // 403: only a person can approve
	WordUnknown  = "unknown_message"   // 404: nothing to approve
	WordDecided  = "decided"           // 409: the message was accepted, or approved, before
)

// faults collects the faults of a request.
type faults []schema.Fault

func (f *faults) check(ok bool, pointer, format string, args ...any) {
	if !ok {
		*f = append(*f, schema.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}
}

// id checks that an id is present and within the limits.
func (f *faults) id(pointer, value string) {
	f.check(value != "", pointer, "is missing (required)")
	f.check(len(value) <= schema.MaxIDBytes, pointer, "%d bytes, at most %d are allowed", len(value), schema.MaxIDBytes)
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return problem.Invalid(WordInvalid, f...)
}
