package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/plumbline/plumbline/pipeline/subject"
	"github.com/plumbline/plumbline/schema"
)

// Headers of a dead letter; its body is the original bytes.
const (
	headerReason   = "Plumbline-Reason"
	headerFaults   = "Plumbline-Faults" // JSON
	headerSubject  = "Plumbline-Origin-Subject"
	headerSequence = "Plumbline-Origin-Sequence"
	headerAgent    = "Plumbline-Agent" // as a token
)

// excerptBytes of a message that is larger than any trace are kept: enough to
// recognise it. Stream TRACES has it whole, and the broker may have no room for
// it with a dead letter's headers.
const excerptBytes = 64 << 10

// LetterData returns what a dead letter keeps of a message.
func LetterData(message []byte) []byte {
	if len(message) <= schema.MaxTraceBytes {
		return message
	}
	return message[:excerptBytes]
}

// maxFaultBytes keeps the headers below the server's 64 KiB.
const maxFaultBytes = 32 << 10

// DeadLetter is a record that can never be stored, with the reason.
type DeadLetter struct {
	Stage    string // "ingest" or "verifier"
	Reason   string // one word, of schema.Refusal
	Faults   []schema.Fault
	Subject  string // where it came from; empty when it never was on a stream
	Sequence uint64 // in the stream it came from; 0 likewise
	Agent    string // of the subject or credential; empty when unknown
	Data     []byte // the original bytes
}

// DeadLetter returns when the letter is stored. The same letter again within
// the duplicate window is stored once. Faults beyond 32 KiB are left off.
func (c *Client) DeadLetter(ctx context.Context, d DeadLetter) error {
	return c.DeadLetters(ctx, []DeadLetter{d})
}

// DeadLetters is DeadLetter for many, in few batches. After an error some of
// them may be stored.
func (c *Client) DeadLetters(ctx context.Context, letters []DeadLetter) error {
	entries := make([]entry, len(letters))
	for i, d := range letters {
		header, err := d.header()
		if err != nil {
			return fmt.Errorf("encode a dead letter: %w", err)
		}
		entries[i] = entry{subject: deadLetterSubject + d.Stage, id: d.id(), data: d.Data, header: header}
	}
	if err := c.publish(ctx, entries); err != nil {
		return fmt.Errorf("publish %d dead letters: %w", len(letters), err)
	}
	return nil
}

// id is the same for a retry, and for nothing else.
func (d DeadLetter) id() string {
	return fmt.Sprintf("%s.%s.%d.%s", d.Stage, d.Reason, d.Sequence, schema.DigestOf(d.Data))
}

func (d DeadLetter) header() (nats.Header, error) {
	faults, err := encodeFaults(d.Faults)
	if err != nil {
		return nil, err
	}
	return nats.Header{
		headerReason:   {d.Reason},
		headerFaults:   {faults},
		headerSubject:  {d.Subject},
		headerSequence: {strconv.FormatUint(d.Sequence, 10)},
		headerAgent:    {subject.Token(d.Agent)},
	}, nil
}

func encodeFaults(faults []schema.Fault) (string, error) {
	for {
		text, err := json.Marshal(faults)
		if err != nil || len(text) <= maxFaultBytes {
			return string(text), err
		}
		faults = faults[:len(faults)/2]
	}
}

// ParseDeadLetter reads a message of stream DEADLETTER.
func ParseDeadLetter(m *Message) (DeadLetter, error) {
	d := DeadLetter{
		Stage:   strings.TrimPrefix(m.Subject, deadLetterSubject),
		Reason:  m.Header(headerReason),
		Subject: m.Header(headerSubject),
		Data:    m.Data,
	}
	var err error
	if d.Sequence, err = strconv.ParseUint(m.Header(headerSequence), 10, 64); err != nil {
		return d, fmt.Errorf("read a dead letter: header %s: %w", headerSequence, err)
	}
	if token := m.Header(headerAgent); token != "" {
		if d.Agent, err = subject.Agent(token); err != nil {
			return d, fmt.Errorf("read a dead letter: header %s: %w", headerAgent, err)
		}
	}
	if err := json.Unmarshal([]byte(m.Header(headerFaults)), &d.Faults); err != nil {
		return d, fmt.Errorf("read a dead letter: header %s: %w", headerFaults, err)
	}
	return d, nil
}
