package wire

import (
	"fmt"
	"strconv"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// EndRequest asks for a session to be sealed, and to count as complete for drift, as if it had
// ended. It is published twice: on the subject of the receipts of its partition, for the exporter,
// and on the subject of its agent's traces, which gives it a place in their order.
type EndRequest struct {
	AgentID         string
	SessionID       string
	ThroughSequence uint64 // of stream TRACES: takes effect once everything up to it has receipts
	Stream          int64  // when that stream was created, in Unix nanoseconds; 0 in old requests, which lack it, and among the traces
}

// Message returns the request as it is published on the subject of the receipts of its partition.
func (r EndRequest) Message(partition int) (Message, error) {
	body, err := r.encode(r.Stream)
	return receiptMessage(partition, body), err
}

// AmongTraces returns the request as it is published on the subject of its agent's traces. It names no
// stream: it is in that stream.
func (r EndRequest) AmongTraces() (Message, error) {
	body, err := r.encode(0)
	return Message{Subject: subject.Trace(r.AgentID), ID: schema.DigestOf(body).String(), Data: body}, err
}

func (r EndRequest) encode(stream int64) ([]byte, error) {
	b, err := appendNames(append(appendStream([]byte{'{'}, stream), `"end":`...), r.AgentID, r.SessionID)
	if err != nil {
		return nil, fmt.Errorf("encode the end of a session: %w", err)
	}
	b = strconv.AppendUint(append(b, `,"through_sequence":`...), r.ThroughSequence, 10)
	return append(b, "}}"...), nil
}

// EndOf reports whether a message on the subject of an agent's traces, which is not a valid trace,
// requests the end of one of the agent's sessions, and returns the request.
func EndOf(agentID string, data []byte) (EndRequest, bool) {
	_, end, err := DecodeReceipts(data, nil)
	if err != nil || end == nil || end.AgentID != agentID || end.SessionID == "" || len(end.SessionID) > schema.MaxIDBytes {
		return EndRequest{}, false
	}
	return *end, true
}
