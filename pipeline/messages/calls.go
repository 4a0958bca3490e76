package messages

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/message"
)

// CallRequest asks whether a tool may be called on the authority of a message.
type CallRequest struct {
	AgentID   string `json:"agent_id"`
	SessionID string `json:"session_id"`
	MessageID string `json:"message_id"` // that was accepted in this session
	ToolName  string `json:"tool_name"`
}

// CallDecision is the answer. The runtime calls the tool where it is executed, and
// nowhere else.
type CallDecision struct {
	Outcome    message.Outcome `json:"outcome"` // executed or blocked
	Mode       message.Mode    `json:"mode"`
	Reason     string          `json:"reason,omitempty"` // why it is blocked; in mode warn, why it would be
	Detail     string          `json:"detail,omitempty"`
	CallID     string          `json:"call_id,omitempty"` // of the record, for the trace; empty in mode off
	ToolName   string          `json:"tool_name"`
	ToolClass  message.Intents `json:"tool_class"` // empty for a tool without one
	MessageID  string          `json:"message_id"` // that authorises the call, or does not
	Intents    message.Intents `json:"intents"`    // what that message permits
	Source     message.Source  `json:"source,omitempty"`
	Sender     string          `json:"sender,omitempty"`
	ApprovalID string          `json:"approval_id,omitempty"` // the person's message behind an agent's
}

// Call decides a tool call by the message that it cites and by no other. The error
// is a *problem.Problem, or the broker's: then the tool is not to be called.
func (s *Service) Call(ctx context.Context, q *CallRequest) (*CallDecision, error) {
	if err := q.validate(); err != nil {
		return nil, err
	}
	r := s.begin(message.KindToolCall, q.AgentID, q.SessionID)
	r.Outcome, r.MessageID, r.ToolName = message.Executed, clip(q.MessageID), q.ToolName
	if r.Mode != message.Off {
		if err := s.decide(ctx, r); err != nil {
			return nil, err
		}
		if err := s.records.make(ctx, callKey(r.ID), r); err != nil {
			return nil, fmt.Errorf("record a tool call: %w", err)
		}
	}
	s.count(r)
	decision := &CallDecision{
		Outcome: r.Outcome, Mode: r.Mode, Reason: r.Reason, Detail: r.Detail, ToolName: r.ToolName, ToolClass: r.ToolClass,
		MessageID: r.MessageID, Intents: r.Intents, Source: r.Source, Sender: r.Sender, ApprovalID: r.ApprovalID,
	}
	if r.Mode != message.Off {
		decision.CallID = r.ID
	}
	return decision, nil
}

func (q *CallRequest) validate() error {
	var f faults
	f.id("/agent_id", q.AgentID)
	f.id("/session_id", q.SessionID)
	err := message.CheckToolName(q.ToolName)
	f.check(err == nil, "/tool_name", "%v", err)
	return f.err()
}

// decide decides by the records of the message: it was signed for this session, it
// was accepted, and what it was accepted for covers the tool.
func (s *Service) decide(ctx context.Context, r *message.Record) error {
	policy := s.policies.Of(r.AgentID, r.At)
	r.ToolClass = policy.Tools[r.ToolName]
	signed, err := s.records.Message(ctx, r.MessageID)
	if err != nil {
		return err
	}
	if signed == nil {
		against(r, message.Blocked, message.ReasonNoMessage, "no message was signed under this id")
		return nil
	}
	if !signed.In(r.AgentID, r.SessionID) {
		against(r, message.Blocked, message.ReasonWrongSession, "the message is for another agent or session")
		return nil
	}
	accepted, err := s.records.Acceptance(ctx, signed)
	if err != nil {
		return err
	}
	if accepted == nil {
		against(r, message.Blocked, message.ReasonNoMessage, "the message was not verified: it is to be accepted before anything is done on its authority")
		return nil
	}
	r.Source, r.Sender, r.Intents, r.ApprovalID = accepted.Source, accepted.Sender, accepted.Intents, accepted.ApprovalID
	if accepted.Reason != "" { // it was let through in mode warn
		against(r, message.Blocked, accepted.Reason, accepted.Detail)
		return nil
	}
	if decision := policy.Permit(r.ToolName, r.Intents); !decision.Allowed {
		against(r, message.Blocked, decision.Reason, decision.Message)
	}
	return nil
}
