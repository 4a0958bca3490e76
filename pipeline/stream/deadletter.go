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

// The headers of a dead letter. Its body is the original bytes.
const (
	headerReason   = "Plumbline-Reason"
	headerFaults   = "Plumbline-Faults" // JSON
	headerSubject  = "Plumbline-Origin-Subject"
	headerSequence = "Plumbline-Origin-Sequence"
	headerAgent    = "Plumbline-Agent" // as a token
)

// excerptBytes is the size of the part that is kept of a message larger than any trace, enough to
// recognise it. Stream TRACES has the whole message. With a dead letter's headers it could exceed
// the broker's limit.
const excerptBytes = 64 << 10

// LetterData returns the part of a message that its dead letter keeps.
func LetterData(message []byte) []byte {
	if len(message) <= schema.MaxTraceBytes {
		return message
	}
	return message[:excerptBytes]
}

// maxFaultBytes keeps the headers below the server's limit of 64 KiB.
const maxFaultBytes = 32 << 10

// DeadLetter is a record that can never be stored, with the reason.
type DeadLetter struct {
	Stage    string // "ingest" or "verifier"
	Reason   string // one of the reasons of schema.Refusal
	Faults   []schema.Fault
	Subject  string // of its stream; empty if it was never in a stream
	Sequence uint64 // in its stream; 0 if it was never in a stream
	Agent    string // from the subject or the credential; empty if unknown
	Data     []byte // the original bytes
}

// DeadLetter returns when the letter is stored. A letter that is published again within the
// duplicate window is stored once. Faults beyond 32 KiB are left out.
func (c *Client) DeadLetter(ctx context.Context, d DeadLetter) error {
	return c.DeadLetters(ctx, []DeadLetter{d})
}

// DeadLetters does the same for many letters, in few batches. After an error some of them may be
// stored.
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

// id returns a message id that is equal for retries of this letter, and different for every other
// letter.
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

// ParseDeadLetter decodes a message of stream DEADLETTER.
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
