package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/plumbline/plumbline/message"
)

func messageRecord(t *testing.T, id string, received time.Time) MessageRecord {
	t.Helper()
	r := &message.Record{
		ID: id, Kind: message.KindToolCall, At: firstEvent, AgentID: nasty, SessionID: nasty, Mode: message.Warn, Outcome: message.Executed,
		Reason: message.ReasonOutOfScope, Detail: nasty, MessageID: "m", Source: message.Agent, Sender: nasty, Intents: message.Read | message.Send,
		Inferred: true, Approves: "a", Approved: message.Write, ApprovalID: "b", KeyID: "k", SHA256: "00", Stripped: 3,
		ToolName: nasty, ToolClass: message.Trade, Seq: 1 << 63,
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return MessageRecord{Record: r, Raw: raw, Received: received}
}

// A redelivered decision is stored once, even across the end of a month.
func TestMessagesAreIdempotent(t *testing.T) {
	s, _ := open(t)
	for _, records := range [][]MessageRecord{
		{messageRecord(t, "1", firstReceived), messageRecord(t, "2", firstReceived)},
		{messageRecord(t, "1", firstReceived.AddDate(0, 1, 0))}, {messageRecord(t, "1", firstReceived)}, nil,
	} {
		if err := s.InsertMessages(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	if got := one[uint64](t, s, "SELECT count() FROM visible_messages"); got != 2 {
		t.Errorf("%d decisions are visible, want 2", got)
	}
	const read = `SELECT count() FROM visible_messages WHERE record_id = '1' AND received_at < '2027-01-01' AND digest = lower(hex(SHA256(record)))
		AND kind = 'tool_call' AND mode = 'warn' AND outcome = 'executed' AND reason = 'out_of_scope' AND message_id = 'm' AND source = 'agent'
		AND intents = ['read', 'send'] AND inferred AND approves = 'a' AND approved = ['write'] AND approval_id = 'b' AND key_id = 'k'
		AND content_sha256 = '00' AND stripped = 3 AND tool_class = 'trade' AND seq = 9223372036854775808 AND agent_id = session_id AND sender = tool_name`
	if got := one[uint64](t, s, read); got != 1 {
		t.Errorf("%d rows read as written, want 1", got)
	}
}
