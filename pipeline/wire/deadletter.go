package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

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

// Kept returns the part of a message that its dead letter keeps.
func Kept(message []byte) []byte {
	if len(message) <= schema.MaxTraceBytes {
		return message
	}
	return message[:excerptBytes]
}

// maxFaultBytes keeps the headers below the broker's limit of 64 KiB.
const maxFaultBytes = 32 << 10

// DeadLetter is a record that can never be stored, with the reason: one message of stream
// DEADLETTER.
type DeadLetter struct {
	Stage    string // "ingest" or "verifier"
	Reason   string // one of the reasons of schema.Refusal
	Faults   []schema.Fault
	Subject  string // of its stream; empty if it was never in a stream
	Sequence uint64 // in its stream; 0 if it was never in a stream
	Agent    string // from the subject or the credential; empty if unknown
	Data     []byte // the original bytes
}

// Message returns the dead letter as it is published. Faults beyond 32 KiB are left out. The id is
// equal for retries of this dead letter, and different for every other one.
func (d DeadLetter) Message() (Message, error) {
	faults, err := encodeFaults(d.Faults)
	if err != nil {
		return Message{}, fmt.Errorf("encode a dead letter: %w", err)
	}
	return Message{
		Subject: DeadLetterPrefix + d.Stage,
		ID:      fmt.Sprintf("%s.%s.%d.%s", d.Stage, d.Reason, d.Sequence, schema.DigestOf(d.Data)),
		Header: map[string][]string{
			headerReason:   {d.Reason},
			headerFaults:   {faults},
			headerSubject:  {d.Subject},
			headerSequence: {strconv.FormatUint(d.Sequence, 10)},
			headerAgent:    {subject.Token(d.Agent)},
		},
		Data: d.Data,
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

// ParseDeadLetter decodes a message of stream DEADLETTER that is not a mark. header returns a
// header's first value.
func ParseDeadLetter(stored string, header func(name string) string, data []byte) (DeadLetter, error) {
	d := DeadLetter{
		Stage:   strings.TrimPrefix(stored, DeadLetterPrefix),
		Reason:  header(headerReason),
		Subject: header(headerSubject),
		Data:    data,
	}
	var err error
	if d.Sequence, err = strconv.ParseUint(header(headerSequence), 10, 64); err != nil {
		return d, fmt.Errorf("read a dead letter: header %s: %w", headerSequence, err)
	}
	if token := header(headerAgent); token != "" {
		if d.Agent, err = subject.Agent(token); err != nil {
			return d, fmt.Errorf("read a dead letter: header %s: %w", headerAgent, err)
		}
	}
	if err := json.Unmarshal([]byte(header(headerFaults)), &d.Faults); err != nil {
		return d, fmt.Errorf("read a dead letter: header %s: %w", headerFaults, err)
	}
	return d, nil
}

// MarkSubject is the subject of marks, next to those of the stages that write dead letters.
const MarkSubject = DeadLetterPrefix + "marks"

// The marks that an operator puts on a dead letter.
const (
	MarkResolved = "resolved" // it stays unchanged, and needs no further action
	MarkReplayed = "replayed" // its bytes were sent again, and accepted
	MarkDropped  = "dropped"  // what earlier versions called resolved; their marks keep it

	// MarkReplaying says that the bytes are about to be sent again. Only the operator's ledger has it: a letter whose
	// replay does not come to its end stays open.
	MarkReplaying = "replaying"
)

// Mark records what an operator did about the dead letters with these bytes that were received
// before it. It is a message of stream DEADLETTER.
type Mark struct {
	Digest schema.Digest `json:"digest"` // of the dead letter's bytes
	Mark   string        `json:"mark"`
	By     string        `json:"by"`
	At     time.Time     `json:"at"` // when the operator requested it
	Note   string        `json:"note,omitempty"`
}

// Message returns the mark as it is published.
func (m Mark) Message() (Message, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return Message{}, fmt.Errorf("encode a mark: %w", err)
	}
	return Message{Subject: MarkSubject, ID: "mark." + schema.DigestOf(data).String(), Data: data}, nil
}

// ParseMark decodes a message on MarkSubject.
func ParseMark(data []byte) (Mark, error) {
	var mark Mark
	if err := json.Unmarshal(data, &mark); err != nil {
		return mark, fmt.Errorf("read a mark: %w", err)
	}
	return mark, nil
}
