package message

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Source is the origin of a message (RFC section 2, layer 3). It follows from the sender's
// credential, never from the content of the message.
type Source string

// The three sources of the RFC, and Anonymous. An unsigned message has no source.
const (
	Human  Source = "human"
	Agent  Source = "agent"
	System Source = "system" // a schedule or a heartbeat

	// Anonymous is a sender without proof of identity, at a gateway that has no credentials to
	// check. No policy permits it anything.
	Anonymous Source = "anonymous"
)

// Valid reports whether s is one of the three sources that a credential can have.
func (s Source) Valid() bool { return s == Human || s == Agent || s == System }

// Message is a message with everything that its MAC covers.
type Message struct {
	ID        string      `json:"id"`         // unique
	AgentID   string      `json:"agent_id"`   // the receiver
	SessionID string      `json:"session_id"` // the message is valid in this session only
	Source    Source      `json:"source"`
	Sender    string      `json:"sender"` // the human, agent or schedule that the credential names
	Intents   Intents     `json:"intents"`
	Nonce     string      `json:"nonce"` // unique
	Timestamp schema.Time `json:"timestamp"`
	Text      string      `json:"-"` // as it was signed; the wrapper carries it
}

// Envelope accompanies the wrapped text of a message. It has the other fields that the MAC
// covers, the key that made the MAC, and the MAC itself.
type Envelope struct {
	Message
	KeyID string `json:"key_id"`
	MAC   string `json:"mac,omitempty"` // the same as in the wrapper
}

// Limits of a message.
const (
	MaxTextBytes  = 256 << 10
	MaxFieldBytes = 512
)

// Validate reports every field that is missing or too long.
func (m *Message) Validate() error {
	var faults []error
	for _, field := range []struct{ name, value string }{
		{"id", m.ID}, {"agent_id", m.AgentID}, {"session_id", m.SessionID}, {"sender", m.Sender}, {"nonce", m.Nonce},
	} {
		if field.value == "" || len(field.value) > MaxFieldBytes {
			faults = append(faults, fmt.Errorf("%s: %d bytes, want 1 to %d", field.name, len(field.value), MaxFieldBytes))
		}
	}
	if !m.Source.Valid() && m.Source != Anonymous {
		faults = append(faults, fmt.Errorf("source: %q is none of human, agent, system, anonymous", clip(string(m.Source))))
	}
	if m.Timestamp.IsZero() {
		faults = append(faults, errors.New("timestamp: missing"))
	}
	if len(m.Text) > MaxTextBytes {
		faults = append(faults, fmt.Errorf("text: %d bytes, a message may have %d", len(m.Text), MaxTextBytes))
	}
	return errors.Join(faults...)
}

// Sign returns the MAC of a message.
//
// The signed bytes are "plumbline-message-1" followed by id, agent_id, session_id, source,
// sender, intents (names in the RFC's order, joined by commas), nonce, timestamp (nanoseconds
// since 1970, decimal) and text. Each field is written as its length in bytes, decimal, ":",
// the bytes, ",".
func (k *Key) Sign(m *Message) MAC {
	return k.messages.sum(func(b []byte) []byte {
		b = append(b, "plumbline-message-1"...)
		b = netstring(b, m.ID)
		b = netstring(b, m.AgentID)
		b = netstring(b, m.SessionID)
		b = netstring(b, string(m.Source))
		b = netstring(b, m.Sender)
		b = netstring(b, intentLists[m.Intents&AllIntents])
		b = netstring(b, m.Nonce)
		b = netstring(b, strconv.FormatInt(m.Timestamp.UnixNano(), 10))
		return netstring(b, m.Text)
	})
}

func netstring(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(append(b, ':'), s...)
	return append(b, ',')
}

// ErrForged means that the MAC is not that of this message under this key.
var ErrForged = errors.New("the MAC is not that of this message: it was forged, changed, or made for another session")

// Verify returns nil when mac is the message's MAC, and ErrForged otherwise.
func (k *Key) Verify(m *Message, mac MAC) error {
	want := k.Sign(m)
	if !hmac.Equal(want[:], mac[:]) || !m.Timestamp.Equal(time.Unix(0, m.Timestamp.UnixNano())) { // times outside 1678–2262 have the same nanoseconds as a time inside
		return ErrForged
	}
	return nil
}

// DefaultWindow is how far a message's time may be from now, in both directions.
const DefaultWindow = 5 * time.Minute

// ErrStale means that the message's time is outside the replay window.
var ErrStale = errors.New("outside the replay window")

// Fresh returns ErrStale when at is further from now than the window. Within the window a
// message may still be a replay, which its nonce shows.
func Fresh(at, now time.Time, window time.Duration) error {
	if age := now.Sub(at); age > window || age < -window {
		return fmt.Errorf("%w: the message has the time %s, it is %s now, and they may differ by %s",
			ErrStale, at.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), window)
	}
	return nil
}

const (
	wrapperHead = "[MSG_AUTH:"
	wrapperTail = " [/MSG_AUTH]"
)

// Wrap returns the form in which a runtime receives a signed message: [MSG_AUTH:<64 hexadecimal
// digits>] text [/MSG_AUTH].
func Wrap(mac MAC, text string) string {
	return wrapperHead + mac.String() + "] " + text + wrapperTail
}

// ErrUnsigned means that the text has no wrapper.
var ErrUnsigned = errors.New("not a signed message: want [MSG_AUTH:<64 hexadecimal digits>] text [/MSG_AUTH]")

// Unwrap removes the wrapper exactly as Wrap adds it. The error is ErrUnsigned where there is
// no wrapper.
func Unwrap(wrapped string) (mac MAC, text string, err error) {
	rest, ok := strings.CutPrefix(wrapped, wrapperHead)
	if !ok || len(rest) < 2*len(mac) {
		return mac, "", ErrUnsigned
	}
	digits, rest := rest[:2*len(mac)], rest[2*len(mac):]
	rest, headed := strings.CutPrefix(rest, "] ")
	text, tailed := strings.CutSuffix(rest, wrapperTail)
	if mac, err = ParseMAC(digits); err != nil || !headed || !tailed {
		return MAC{}, "", ErrUnsigned
	}
	return mac, text, nil
}

// ToolResult is the result of a tool call (RFC section 2.4).
type ToolResult struct {
	ToolName string
	Seq      uint64
	Result   []byte // JSON
}

// Canonical returns the form of the result that the MAC covers: its canonical form (RFC 8785).
// The error says why the result has none.
func (r *ToolResult) Canonical() ([]byte, error) {
	form, err := schema.Canonical(r.Result)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	return form, nil
}

// SignToolResult returns the MAC of a tool result. It covers the tool's name, "|", the result's
// number, "|" and the canonical form. A name that contains "|" is refused, since two results
// could then share the same bytes.
//
// The RFC's formula does not cover the session. A verifier must therefore also compare the
// result with the record of that number in its session.
func (k *Key) SignToolResult(r *ToolResult) (MAC, error) {
	if err := CheckToolName(r.ToolName); err != nil {
		return MAC{}, err
	}
	form, err := r.Canonical()
	if err != nil {
		return MAC{}, err
	}
	return k.toolResults.sum(func(b []byte) []byte {
		b = append(append(b, r.ToolName...), '|')
		b = append(strconv.AppendUint(b, r.Seq, 10), '|')
		return append(b, form...)
	}), nil
}

// CheckToolName returns an error for an invalid tool name.
func CheckToolName(name string) error {
	if name == "" || len(name) > MaxFieldBytes || strings.Contains(name, "|") {
		return fmt.Errorf("tool_name %q: want 1 to %d bytes without |", clip(name), MaxFieldBytes)
	}
	return nil
}

// VerifyToolResult returns nil when mac is the result's MAC and ErrForged when it is not. Any
// other error says why the result can have no MAC.
func (k *Key) VerifyToolResult(r *ToolResult, mac MAC) error {
	want, err := k.SignToolResult(r)
	if err != nil {
		return err
	}
	if !hmac.Equal(want[:], mac[:]) {
		return ErrForged
	}
	return nil
}
