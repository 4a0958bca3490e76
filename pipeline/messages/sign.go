package messages

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/wire"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/stream"
	"github.com/plumbline/plumbline/schema"
)

// Sender is the sender according to the credential.
type Sender struct {
	Source message.Source
	Name   string
}

// Sign signs a message, limits it by the policy of its receiver, and records it. The error is a
// *problem.Problem, or the broker's.
//
// Inferred intents are narrowed to those that the sender may have. Declared ones stay. If they
// exceed the policy, the message of a person or a schedule is refused in mode enforce, and that
// of an agent waits for a person's approval.
func (s *Service) Sign(ctx context.Context, q *wire.SignRequest, from Sender) (*wire.SignedMessage, error) {
	draft, err := s.draft(q, from)
	if err != nil {
		return nil, err
	}
	if q.Approves != "" {
		if err := s.consider(ctx, draft); err != nil {
			return nil, err
		}
	}
	if err := s.keepMessage(ctx, draft); err != nil {
		return nil, err
	}
	r := draft.record
	if r.Outcome == message.Refused {
		return nil, problem.New(http.StatusForbidden, r.Reason, "%s", r.Detail)
	}
	mac := s.key.Sign(&draft.message)
	return &wire.SignedMessage{
		Envelope: message.Envelope{Message: draft.message, KeyID: r.KeyID, MAC: mac.String()},
		Wrapped:  message.Wrap(mac, draft.message.Text),
		Inferred: r.Inferred, Stripped: draft.stripped, Approves: r.Approves,
		Mode: r.Mode, Outcome: r.Outcome, Reason: r.Reason, Detail: r.Detail,
	}, nil
}

// draft is a message before it is signed, with its record.
type draft struct {
	message  message.Message
	record   *message.Record
	stripped []message.Stripped
	declared message.Intents // zero if there were none
}

func (s *Service) draft(q *wire.SignRequest, from Sender) (*draft, error) {
	var f faults
	var declared message.Intents
	f.id("/agent_id", q.AgentID)
	f.id("/session_id", q.SessionID)
	f.check(q.Text != "" || q.Approves != "", "/text", "is missing (required)")
	f.check(len(q.Text) <= message.MaxTextBytes, "/text", "%d bytes, a message may have %d", len(q.Text), message.MaxTextBytes)
	if q.Intents != nil {
		var err error
		declared, err = message.ParseIntents(*q.Intents)
		f.check(err == nil, "/intents", "%v", err)
		f.check(err != nil || declared != 0, "/intents", "is empty: name what the message permits, or leave it out")
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	d := &draft{record: s.begin(message.KindMessage, q.AgentID, q.SessionID), declared: declared}
	clean, stripped := message.Strip(q.Text)
	d.stripped = append([]message.Stripped{}, stripped...)
	var random [16]byte
	if _, err := io.ReadFull(s.Random, random[:]); err != nil {
		return nil, fmt.Errorf("create a nonce: %w", err)
	}
	nonce := hex.EncodeToString(random[:])
	r := d.record
	r.Outcome, r.MessageID, r.Source, r.Sender = message.Signed, r.ID, from.Source, from.Name
	r.Nonce, r.KeyID, r.SHA256, r.Stripped, r.Approves = nonce, s.key.ID(), schema.DigestOf([]byte(clean)).String(), len(stripped), q.Approves
	d.message = message.Message{
		ID: r.ID, AgentID: r.AgentID, SessionID: r.SessionID, Source: r.Source, Sender: r.Sender,
		Nonce: nonce, Timestamp: schema.Time{Time: r.At}, Text: clean,
	}
	s.scope(d)
	d.message.Intents = r.Intents
	if err := d.message.Validate(); err != nil {
		return nil, problem.New(http.StatusBadRequest, WordInvalid, "%v", err)
	}
	return d, nil
}

// scope sets the intents of the message, and compares them with the policy. An approval is not an
// instruction of its own: it permits reading.
func (s *Service) scope(d *draft) {
	r := d.record
	policy := s.Policies.Of(r.AgentID, r.At)
	r.Intents, r.Inferred = d.declared, d.declared == 0
	switch {
	case r.Approves != "":
		r.Intents, r.Inferred = message.Read, false
	case r.Inferred:
		r.Intents = message.Infer(d.message.Text)
		if r.Mode != message.Off {
			r.Intents &= policy.Permitted(r.Source, r.Sender, nil)
		}
	}
	if r.Mode == message.Off {
		return
	}
	d.message.Intents = r.Intents
	decision := policy.Accept(&d.message, nil)
	switch {
	case decision.Allowed:
	case r.Source == message.Agent && r.Intents != 0: // its receiver decides, after a person's possible approval
		r.Reason = decision.Reason
		r.Detail = decision.Message + ": a person approves it by a message with approves " + r.ID
	default:
		against(r, message.Refused, decision.Reason, decision.Message)
	}
}

// consider checks that a message may be an approval: it must come from a person, and refer to an
// agent's message of the same session that nobody has accepted or approved.
func (s *Service) consider(ctx context.Context, d *draft) error {
	r := d.record
	if r.Source != message.Human {
		return problem.New(http.StatusForbidden, WordNotHuman, "approves: only a person can approve a message, and this token's source is %s", r.Source)
	}
	approved, err := s.Records.Message(ctx, r.Approves)
	if err != nil {
		return err
	}
	if approved == nil || approved.Source != message.Agent || approved.Outcome != message.Signed || !approved.In(r.AgentID, r.SessionID) {
		return problem.New(http.StatusNotFound, WordUnknown, "approves: no agent's message %q was signed for this agent in this session", r.Approves)
	}
	approval, err := s.Records.Approval(ctx, r.Approves)
	if err != nil {
		return err
	}
	if approval != nil {
		return approvedBefore(r.Approves)
	}
	accepted, err := s.Records.Acceptance(ctx, approved)
	if err != nil {
		return err
	}
	if accepted != nil {
		return problem.New(http.StatusConflict, WordDecided, "approves: message %q was accepted at %s: what an accepted message permits never grows; "+
			"have it sent again, and approve that", r.Approves, accepted.At.Format("2006-01-02T15:04:05Z"))
	}
	if d.declared == 0 {
		d.declared = approved.Intents
	}
	return nil
}

// keepMessage records the message, and for an approval also the message that it approves.
func (s *Service) keepMessage(ctx context.Context, d *draft) error {
	r := d.record
	if r.Approves != "" {
		r.Approved = d.declared
	}
	if err := s.Records.make(ctx, messageKey(r.ID), r); err != nil {
		return fmt.Errorf("record a message: %w", err)
	}
	s.count(r)
	if r.Approves == "" || r.Outcome != message.Signed {
		return nil
	}
	err := s.Records.make(ctx, approvalKey(r.Approves), r)
	if errors.Is(err, stream.ErrConflict) {
		return approvedBefore(r.Approves)
	}
	if err != nil {
		return fmt.Errorf("record an approval: %w", err)
	}
	return nil
}

func approvedBefore(id string) error {
	return problem.New(http.StatusConflict, WordDecided, "approves: message %q was approved before", id)
}
