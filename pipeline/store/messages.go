package store

import (
	"context"
	"time"

	"github.com/plumbline/plumbline/message"
	"github.com/plumbline/plumbline/schema"
)

// MessageRecord is a decision about a message, tool call or tool result, and what the broker
// knows about it.
type MessageRecord struct {
	*message.Record
	Raw         []byte    // as stored in the broker
	Received    time.Time // by the broker
	RetainUntil time.Time // zero: forever
}

func (m *MessageRecord) Digest() schema.Digest { return schema.DigestOf(m.Raw) }

type messageRow struct {
	Owned
	EventHour     uint32        `ch:"event_hour"`
	AgentID       string        `ch:"agent_id"`
	Digest        schema.Digest `ch:"digest"`
	SessionID     string        `ch:"session_id"`
	RecordID      string        `ch:"record_id"`
	Kind          string        `ch:"kind"`
	DecidedAt     time.Time     `ch:"decided_at"`
	Received      time.Time     `ch:"received_at"`
	RetainUntil   RetainUntil   `ch:"retain_until"`
	Mode          string        `ch:"mode"`
	Outcome       string        `ch:"outcome"`
	Reason        string        `ch:"reason"`
	Detail        string        `ch:"detail"`
	MessageID     string        `ch:"message_id"`
	Source        string        `ch:"source"`
	Sender        string        `ch:"sender"`
	Intents       []string      `ch:"intents"`
	Inferred      bool          `ch:"inferred"`
	Approves      string        `ch:"approves"`
	Approved      []string      `ch:"approved"`
	ApprovalID    string        `ch:"approval_id"`
	KeyID         string        `ch:"key_id"`
	ContentSHA256 string        `ch:"content_sha256"`
	Stripped      uint32        `ch:"stripped"`
	ToolName      string        `ch:"tool_name"`
	ToolClass     string        `ch:"tool_class"`
	Seq           uint64        `ch:"seq"`
	Record        []byte        `ch:"record"`
}

func (w Writer) InsertMessages(ctx context.Context, records []MessageRecord) error {
	rows := make([]messageRow, len(records))
	for i := range records {
		m := &records[i]
		rows[i] = messageRow{
			EventHour: eventHour(m.At), AgentID: m.AgentID, Digest: m.Digest(), SessionID: m.SessionID, RecordID: m.ID,
			Kind: string(m.Kind), DecidedAt: m.At, Received: m.Received, RetainUntil: RetainUntil(m.RetainUntil),
			Mode: string(m.Mode), Outcome: string(m.Outcome), Reason: m.Reason, Detail: m.Detail,
			MessageID: m.MessageID, Source: string(m.Source), Sender: m.Sender, Intents: m.Intents.Names(), Inferred: m.Inferred,
			Approves: m.Approves, Approved: m.Approved.Names(), ApprovalID: m.ApprovalID, KeyID: m.KeyID,
			ContentSHA256: m.SHA256, Stripped: uint32(m.Stripped),
			ToolName: m.ToolName, ToolClass: m.ToolClass.String(), Seq: m.Seq, Record: m.Raw,
		}
	}
	return insertRows(ctx, w, "messages", rows)
}
