package messages

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/wire"
)

// Call decides a tool call by the message that it cites, and by no other. The error is a
// *problem.Problem, or the broker's. In both cases the tool must not be called.
func (s *Service) Call(ctx context.Context, q *wire.CallRequest) (*wire.CallDecision, error) {
	var f faults
	f.id("/agent_id", q.AgentID)
	f.id("/session_id", q.SessionID)
	err := message.CheckToolName(q.ToolName)
	f.check(err == nil, "/tool_name", "%v", err)
	if err := f.err(); err != nil {
		return nil, err
	}
	r := s.begin(message.KindToolCall, q.AgentID, q.SessionID)
	r.Outcome, r.MessageID, r.ToolName = message.Executed, clip(q.MessageID), q.ToolName
	if r.Mode != message.Off {
		if err := s.decide(ctx, r); err != nil {
			return nil, err
		}
		if err := s.Records.make(ctx, callKey(r.ID), r); err != nil {
			return nil, fmt.Errorf("record a tool call: %w", err)
		}
	}
	s.count(r)
	decision := &wire.CallDecision{
		Outcome: r.Outcome, Mode: r.Mode, Reason: r.Reason, Detail: r.Detail, ToolName: r.ToolName, ToolClass: r.ToolClass,
		MessageID: r.MessageID, Intents: r.Intents, Source: r.Source, Sender: r.Sender, ApprovalID: r.ApprovalID,
	}
	if r.Mode != message.Off {
		decision.CallID = r.ID
	}
	return decision, nil
}

// decide decides by the records of the message: it was signed for this session, it was accepted,
// and the accepted intents cover the tool.
func (s *Service) decide(ctx context.Context, r *message.Record) error {
	policy := s.Policies.Of(r.AgentID, r.At)
	r.ToolClass = policy.Tools[r.ToolName]
	signed, err := s.Records.Message(ctx, r.MessageID)
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
	accepted, err := s.Records.Acceptance(ctx, signed)
	if err != nil {
		return err
	}
	if accepted == nil {
		against(r, message.Blocked, message.ReasonNoMessage, "the message was not verified: it is to be accepted before anything is done on its authority")
		return nil
	}
	r.Source, r.Sender, r.Intents, r.ApprovalID = accepted.Source, accepted.Sender, accepted.Intents, accepted.ApprovalID
	if accepted.Reason != "" { // mode warn let it pass
		against(r, message.Blocked, accepted.Reason, accepted.Detail)
		return nil
	}
	if decision := policy.Permit(r.ToolName, r.Intents); !decision.Allowed {
		against(r, message.Blocked, decision.Reason, decision.Message)
	}
	return nil
}
