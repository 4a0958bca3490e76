package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/message"
)

// Service is one process's gateway for messages, with a key of its own. It may be
// used by any goroutine.
type Service struct {
	key       *message.Key
	policies  *Policies
	records   *Records
	window    time.Duration
	now       func() time.Time
	random    io.Reader
	decisions *prometheus.CounterVec // by kind, outcome and reason
}

// Parts is what a Service works with.
type Parts struct {
	Policies *Policies
	Records  *Records
	Window   time.Duration // that a message stays fresh for
	Now      func() time.Time
	Random   io.Reader // crypto/rand.Reader: the key and every nonce are read from it
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
	return &Service{
		key: key, policies: p.Policies, records: p.Records, window: p.Window, now: p.Now, random: p.Random, decisions: decisions,
	}, nil
}

// KeyID names the key of this process.
func (s *Service) KeyID() string { return s.key.ID() }

// begin begins a record.
func (s *Service) begin(kind message.Kind, agentID, sessionID string) *message.Record {
	now := s.now().UTC()
	return &message.Record{
		ID: uuid.NewString(), Kind: kind, At: now, AgentID: agentID, SessionID: sessionID,
		Mode: s.policies.Of(agentID, now).Mode,
	}
}

// count counts a decision that was made.
func (s *Service) count(r *message.Record) {
	s.decisions.WithLabelValues(string(r.Kind), string(r.Outcome), r.Reason).Inc()
}

// against notes why a record's matter ought not to go through. It goes through all
// the same unless the agent's mode is enforce: held is the outcome there.
func against(r *message.Record, held message.Outcome, reason, detail string) {
	r.Reason, r.Detail = reason, detail
	if r.Mode == message.Enforce {
		r.Outcome = held
	}
}

// nonce returns 128 bits of randomness.
func (s *Service) nonce() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(s.random, b[:]); err != nil {
		return "", fmt.Errorf("make a nonce: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
