package messages

import (
	"context"
	"fmt"
	"net/http"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/message/wire"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/schema"
)

// SignResult numbers, signs and records a tool result. The error is a *problem.Problem, or
// the broker's.
func (s *Service) SignResult(ctx context.Context, q *wire.ResultRequest) (*wire.SignedResult, error) {
	result := &message.ToolResult{ToolName: q.ToolName, Result: q.Result}
	form, err := checkResult(q.AgentID, q.SessionID, result)
	if err != nil {
		return nil, err
	}
	if result.Seq, err = s.Records.nextNumber(ctx, q.AgentID, q.SessionID); err != nil {
		return nil, err
	}
	mac, err := s.key.SignToolResult(result)
	if err != nil {
		return nil, problem.New(http.StatusBadRequest, WordInvalid, "%v", err)
	}
	r := s.begin(message.KindToolResult, q.AgentID, q.SessionID)
	r.Outcome, r.ToolName, r.Seq, r.KeyID, r.SHA256 = message.Signed, q.ToolName, result.Seq, s.key.ID(), schema.DigestOf(form).String()
	if err := s.Records.make(ctx, resultKey(q.AgentID, q.SessionID, r.Seq), r); err != nil {
		return nil, fmt.Errorf("record a tool result: %w", err)
	}
	s.count(r)
	return &wire.SignedResult{ToolName: r.ToolName, Seq: r.Seq, MAC: mac.String(), KeyID: r.KeyID, SHA256: r.SHA256}, nil
}

// checkResult validates a result and returns its canonical form.
func checkResult(agentID, sessionID string, r *message.ToolResult) ([]byte, error) {
	var f faults
	f.id("/agent_id", agentID)
	f.id("/session_id", sessionID)
	err := message.CheckToolName(r.ToolName)
	f.check(err == nil, "/tool_name", "%v", err)
	f.check(len(r.Result) <= schema.MaxTraceBytes, "/result", "%d bytes, a result may have %d", len(r.Result), schema.MaxTraceBytes)
	form, err := r.Canonical()
	f.check(err == nil, "/result", "%v", err)
	return form, f.err()
}

// VerifyResult checks a tool result: its key, its MAC, and that its session has this result under
// that number, which the MAC does not prove.
func (s *Service) VerifyResult(ctx context.Context, q *wire.ResultCheck) (*wire.ResultVerdict, error) {
	result := &message.ToolResult{ToolName: q.ToolName, Seq: q.Seq, Result: q.Result}
	form, err := checkResult(q.AgentID, q.SessionID, result)
	if err != nil {
		return nil, err
	}
	reject := func(reason, detail string) *wire.ResultVerdict {
		return &wire.ResultVerdict{Outcome: message.Rejected, Reason: reason, Detail: detail}
	}
	mac, malformed := message.ParseMAC(q.MAC)
	switch {
	case q.KeyID != s.key.ID():
		return reject(message.ReasonUnknownKey, "it was signed by a key that this process does not have: ask the one that signed it"), nil
	case malformed != nil || s.key.VerifyToolResult(result, mac) != nil:
		return reject(message.ReasonForged, "the MAC is not that of this result under this name and number"), nil
	}
	r, err := s.Records.Result(ctx, q.AgentID, q.SessionID, q.Seq)
	if err != nil {
		return nil, err
	}
	if r == nil || r.ToolName != q.ToolName || r.SHA256 != schema.DigestOf(form).String() || r.KeyID != q.KeyID {
		return reject(message.ReasonWrongSession, "this session has another result under this number, or none"), nil
	}
	return &wire.ResultVerdict{Outcome: message.Accepted}, nil
}
