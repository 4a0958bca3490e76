package messages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/wire"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Verify decides whether a message is accepted, and accepts a message at most once. It checks, in
// order: the wrapper, the key, the MAC in the context of the runtime, the time, the policy and
// approval, and whether the message was accepted before. The error is a *problem.Problem, or the
// broker's. After an error the message must not be used, unless a repetition of the same attempt
// accepts it.
func (s *Service) Verify(ctx context.Context, q *wire.VerifyRequest) (*wire.Verification, error) {
	var f faults
	f.id("/agent_id", q.AgentID)
	f.id("/session_id", q.SessionID)
	f.check(len(q.AttemptID) <= schema.MaxIDBytes, "/attempt_id", "%d bytes, at most %d are allowed", len(q.AttemptID), schema.MaxIDBytes)
	f.check(len(q.Wrapped) <= maxWrapped, "/wrapped", "%d bytes, a wrapped message may have %d", len(q.Wrapped), maxWrapped)
	if err := f.err(); err != nil {
		return nil, err
	}
	c := s.receive(q)
	if c.record.Reason == "" {
		if err := s.admit(ctx, c); err != nil {
			return nil, err
		}
	}
	if c.record.Mode != message.Off && c.record.Reason != "" && !c.kept {
		if err := s.keep(ctx, c, refusalKey(c.record.ID)); err != nil {
			return nil, err
		}
	}
	s.count(c.record)
	return c.answer(), nil
}

// maxWrapped is the length of the longest message with its wrapper.
var maxWrapped = len(message.Wrap(message.MAC{}, "")) + message.MaxTextBytes

// receipt is a message during verification, with its record.
type receipt struct {
	message message.Message // in the context of the runtime
	record  *message.Record
	kept    bool
}

// receive checks everything that needs no lookup: wrapper, key, MAC and context.
func (s *Service) receive(q *wire.VerifyRequest) *receipt {
	c := &receipt{record: s.begin(message.KindVerification, q.AgentID, q.SessionID)}
	r := c.record
	r.Outcome, r.AttemptID = message.Accepted, q.AttemptID
	mac, text, err := message.Unwrap(q.Wrapped)
	if err != nil {
		text = q.Wrapped
	}
	c.message.Text, r.SHA256 = text, schema.DigestOf([]byte(text)).String()
	if err != nil || q.Envelope == nil {
		against(r, message.Rejected, message.ReasonUnsigned, "no signed message: it needs its wrapper and its envelope")
		return c
	}
	claimed := q.Envelope.Message
	claimed.Text = text
	c.message = claimed
	c.message.AgentID, c.message.SessionID = q.AgentID, q.SessionID
	r.MessageID, r.KeyID = clip(claimed.ID), clip(q.Envelope.KeyID)
	switch {
	case q.Envelope.KeyID != s.key.ID():
		against(r, message.Rejected, message.ReasonUnknownKey, "it was signed by a key that this process does not have: "+
			"ask the one that signed it; after that one was restarted, have it sent again")
	case s.key.Verify(&c.message, mac) == nil && q.Envelope.MAC != "" && q.Envelope.MAC != mac.String():
		against(r, message.Rejected, message.ReasonForged, "the mac of the envelope is not that of the wrapper: the two are of different messages, or one was changed")
	case s.key.Verify(&c.message, mac) == nil:
		r.Source, r.Sender, r.Intents, r.Nonce = claimed.Source, claimed.Sender, claimed.Intents, claimed.Nonce
	case s.key.Verify(&claimed, mac) == nil:
		against(r, message.Rejected, message.ReasonWrongSession, fmt.Sprintf("it is for agent %q in session %q", claimed.AgentID, claimed.SessionID))
	default:
		against(r, message.Rejected, message.ReasonForged, message.ErrForged.Error())
	}
	return c
}

// admit checks the time and the policy of an authentic message, and that it is new.
func (s *Service) admit(ctx context.Context, c *receipt) error {
	r, at := c.record, c.message.Timestamp.Time
	var approval *message.Approval
	if c.message.Source == message.Agent && r.Mode != message.Off {
		approved, err := s.Records.Approval(ctx, c.message.ID)
		if err != nil {
			return err
		}
		if approved != nil { // its freshness counts from the approval
			approval = &message.Approval{MessageID: approved.ID, Intents: approved.Approved}
			r.ApprovalID, at = approved.ID, slices.MaxFunc([]time.Time{at, approved.At}, time.Time.Compare)
		}
	}
	if err := message.Fresh(at, r.At, s.Window); err != nil {
		against(r, message.Rejected, message.ReasonStale, err.Error())
		return nil
	}
	if r.Mode == message.Off {
		return nil
	}
	if decision := s.Policies.Of(r.AgentID, r.At).Accept(&c.message, approval); !decision.Allowed {
		against(r, message.Rejected, decision.Reason, decision.Message)
		if r.Mode == message.Enforce {
			return nil
		}
	}
	err := s.keep(ctx, c, acceptanceKey(c.message.ID))
	if errors.Is(err, stream.ErrConflict) {
		return s.repeated(ctx, c)
	}
	return err
}

// repeated answers for a message that was accepted before. The attempt that accepted it gets the
// same answer. Every other attempt is a replay.
func (s *Service) repeated(ctx context.Context, c *receipt) error {
	taken, err := s.Records.Acceptance(ctx, c.record)
	if err != nil {
		return err
	}
	if attempt := c.record.AttemptID; taken != nil && attempt != "" && taken.AttemptID == attempt {
		c.record, c.kept = taken, true
		return nil
	}
	against(c.record, message.Rejected, message.ReasonReplayed, "it was taken before")
	return nil
}

// keep records the verification under a key.
func (s *Service) keep(ctx context.Context, c *receipt, key string) error {
	if err := s.Records.make(ctx, key, c.record); err != nil {
		return fmt.Errorf("record the verification of a message: %w", err)
	}
	c.kept = true
	return nil
}

// answer returns the runtime's view of the verification.
func (c *receipt) answer() *wire.Verification {
	r := c.record
	v := &wire.Verification{
		Outcome: r.Outcome, Mode: r.Mode, Reason: r.Reason, Detail: r.Detail, MessageID: r.MessageID,
		Authenticated: r.Nonce != "" && (r.Reason == "" || r.Reason == message.ReasonNotPermitted),
		Source:        r.Source, Sender: r.Sender, Intents: r.Intents, ApprovalID: r.ApprovalID, Stripped: []message.Stripped{},
	}
	if r.Mode != message.Off {
		v.DecisionID = r.ID
	}
	if r.Outcome == message.Accepted {
		clean, stripped := message.Strip(c.message.Text)
		v.Text, v.Stripped = clean, append(v.Stripped, stripped...)
	}
	return v
}

// clip shortens what a runtime claims, for a record.
func clip(text string) string { return schema.Clip(text, schema.MaxIDBytes) }
