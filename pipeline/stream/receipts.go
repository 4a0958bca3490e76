package stream

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// maxReceiptBytes is the maximum size of one message, well below the usual limit of 1 MB.
const maxReceiptBytes = 700 << 10

// EndRequest asks for a session to be sealed as if it had ended.
type EndRequest struct {
	AgentID         string
	SessionID       string
	ThroughSequence uint64 // of stream TRACES: takes effect once everything up to it has receipts
}

// PublishReceipts returns when all receipts are stored. byPartition holds the receipts of each
// partition. They are sent in as many messages as they need, and in few batches. Receipts that
// are published again within the duplicate window are stored once.
func (c *Client) PublishReceipts(ctx context.Context, byPartition [][]schema.Receipt) error {
	var entries []entry
	for partition, receipts := range byPartition {
		bodies, err := encodeReceipts(receipts, maxReceiptBytes)
		if err != nil {
			return fmt.Errorf("encode receipts: %w", err)
		}
		for _, body := range bodies {
			entries = append(entries, receiptEntry(partition, body))
		}
	}
	if err := c.publish(ctx, entries); err != nil {
		return fmt.Errorf("publish %d messages of receipts: %w", len(entries), err)
	}
	return nil
}

// RequestEnd returns when the request is stored, after the receipts published before it.
func (c *Client) RequestEnd(ctx context.Context, partition int, end EndRequest) error {
	body, err := encodeEnd(end)
	if err != nil {
		return fmt.Errorf("encode the end of a session: %w", err)
	}
	if err := c.publish(ctx, []entry{receiptEntry(partition, body)}); err != nil {
		return fmt.Errorf("publish the end of a session: %w", err)
	}
	return nil
}

func receiptEntry(partition int, body []byte) entry {
	return entry{
		subject: receiptSubject + strconv.Itoa(partition),
		id:      schema.DigestOf(body).String(),
		data:    body,
	}
}

// encodeReceipts encodes {"receipts":[…]} in bodies of about the given size.
func encodeReceipts(receipts []schema.Receipt, size int) (bodies [][]byte, err error) {
	var body []byte
	for i := range receipts {
		if len(body) == 0 {
			body = append(make([]byte, 0, min(size+2048, 300*len(receipts))), `{"receipts":[`...)
		} else {
			body = append(body, ',')
		}
		if body, err = appendReceipt(body, &receipts[i]); err != nil {
			return nil, err
		}
		if len(body) >= size || i == len(receipts)-1 {
			bodies = append(bodies, append(body, "]}"...))
			body = nil
		}
	}
	return bodies, nil
}

func appendReceipt(b []byte, r *schema.Receipt) ([]byte, error) {
	b = append(b, `{"agent_id":`...)
	b, err := appendNames(b, r.AgentID, r.SessionID)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"sequence":`...)
	b = strconv.AppendUint(b, r.Sequence, 10)
	b = append(b, `,"digest":"`...)
	b = hex.AppendEncode(b, r.Digest[:])
	b = append(b, `","event_time":"`...)
	b = r.EventTime.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if r.Bytes > 0 {
		b = strconv.AppendInt(append(b, `,"bytes":`...), int64(r.Bytes), 10)
	}
	if r.End {
		b = append(b, `,"end":true`...)
	}
	return append(b, '}'), nil
}

func encodeEnd(end EndRequest) ([]byte, error) {
	b, err := appendNames([]byte(`{"end":{"agent_id":`), end.AgentID, end.SessionID)
	if err != nil {
		return nil, err
	}
	b = append(b, `,"through_sequence":`...)
	b = strconv.AppendUint(b, end.ThroughSequence, 10)
	return append(b, "}}"...), nil
}

// appendNames appends the agent's id and the member session_id.
func appendNames(b []byte, agent, session string) ([]byte, error) {
	b, err := jsontext.AppendQuote(b, agent)
	if err != nil {
		return nil, fmt.Errorf("agent_id %q: %w", agent, err)
	}
	b = append(b, `,"session_id":`...)
	if b, err = jsontext.AppendQuote(b, session); err != nil {
		return nil, fmt.Errorf("session_id %q: %w", session, err)
	}
	return b, nil
}
