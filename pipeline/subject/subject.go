// Package subject defines how an agent is named on the broker.
//
// It owns the token (an agent id as one subject token, bucket key and file name) and the subjects
// that contain a token. It knows nothing of streams, connections or records.
//
// Invariants: Agent(Token(id)) is id for every non-empty byte string; two ids never have the same
// token; a token contains only A-Z, a-z, 0-9, '_', '-' and '='.
package subject

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

const upperHex = "0123456789ABCDEF"

// errToken is wrapped by the errors of Agent, and of the Parse functions that read a token.
var errToken = errors.New("not the token of an agent")

// Token encodes an agent id. Letters, digits, '_' and '-' are unchanged. Every other byte becomes
// '=' and two upper-case hexadecimal digits.
func Token(agentID string) string {
	escapes := 0
	for i := range len(agentID) {
		if !verbatim(agentID[i]) {
			escapes++
		}
	}
	if escapes == 0 {
		return agentID
	}
	token := make([]byte, 0, len(agentID)+2*escapes)
	for i := range len(agentID) {
		b := agentID[i]
		if verbatim(b) {
			token = append(token, b)
		} else {
			token = append(token, '=', upperHex[b>>4], upperHex[b&15])
		}
	}
	return string(token)
}

// Agent decodes a token. It accepts only what Token writes: an escaped letter or a lower-case
// digit would give one agent two names.
func Agent(token string) (string, error) {
	if token == "" {
		return "", fmt.Errorf("%w: it is empty", errToken)
	}
	if strings.IndexByte(token, '=') < 0 {
		for i := range len(token) {
			if !verbatim(token[i]) {
				return token, fmt.Errorf("%w: %q: bad byte at %d", errToken, token, i)
			}
		}
		return token, nil
	}
	agent := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		b := token[i]
		if b == '=' {
			var ok bool
			if b, ok = unescape(token[i:]); !ok {
				return "", fmt.Errorf("%w: %q: bad escape at byte %d", errToken, token, i)
			}
			i += 2
		} else if !verbatim(b) {
			return "", fmt.Errorf("%w: %q: bad byte at %d", errToken, token, i)
		}
		agent = append(agent, b)
	}
	return string(agent), nil
}

// unescape decodes "=XX" at the start of s. A byte that needs no escape is an error.
func unescape(s string) (b byte, ok bool) {
	if len(s) < 3 {
		return 0, false
	}
	high := strings.IndexByte(upperHex, s[1])
	low := strings.IndexByte(upperHex, s[2])
	if high < 0 || low < 0 {
		return 0, false
	}
	b = byte(high<<4 | low)
	return b, !verbatim(b)
}

func verbatim(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}

// Partitions is the number of partitions of stream TRACES. It is fixed when the stream is
// created, because an agent's traces must never change their partition.
const Partitions = 16

const (
	tracePrefix     = "aap.trace."
	alertPrefix     = "aap.alert."
	storedPrefix    = "traces."
	ledgerPrefix    = "aap.ledger."
	handshakePrefix = "aap.handshake."
	coherencePrefix = "aap.coherence."
)

// Traces is the filter for the subjects on which agents publish traces.
const Traces = tracePrefix + "*"

// Partition returns the partition of an agent's traces, 0..Partitions-1. The broker computes the
// same value when it stores a trace (FNV-1a of the token).
func Partition(agentID string) int {
	hash := fnv.New32a()
	hash.Write([]byte(Token(agentID)))
	return int(hash.Sum32() % Partitions)
}

// AlertKind is the third token of an alert's subject.
type AlertKind string

// The three kinds of alert.
const (
	AlertViolation AlertKind = "violation"
	AlertFinding   AlertKind = "finding"
	AlertDrift     AlertKind = "drift"
)

// Trace returns the subject on which an agent's traces are published.
func Trace(agentID string) string { return tracePrefix + Token(agentID) }

// Alert returns the subject of alerts about an agent.
func Alert(kind AlertKind, agentID string) string {
	return alertPrefix + string(kind) + "." + Token(agentID)
}

// Alerts returns the filter for the subjects of all alerts of a kind.
func Alerts(kind AlertKind) string { return alertPrefix + string(kind) + ".*" }

// ParseAlert returns the kind of alert in an alert's subject.
func ParseAlert(subject string) (AlertKind, error) {
	rest, ours := strings.CutPrefix(subject, alertPrefix)
	kind, _, two := strings.Cut(rest, ".")
	switch AlertKind(kind) {
	case AlertViolation, AlertFinding, AlertDrift:
		if ours && two {
			return AlertKind(kind), nil
		}
	}
	return "", fmt.Errorf("%q is not the subject of an alert", subject)
}

// StoredTraces returns the filter for all traces of a partition, 0..Partitions-1.
func StoredTraces(partition int) string {
	return storedPrefix + strconv.Itoa(partition) + ".>"
}

// ParseStored parses the subject under which stream TRACES stores a trace,
// "traces.<partition>.<token>". The token aliases the subject.
func ParseStored(stored string) (partition int, token string, err error) {
	rest, ok := strings.CutPrefix(stored, storedPrefix)
	if !ok {
		return 0, "", fmt.Errorf("%q is not the subject of a stored trace", stored)
	}
	number, token, ok := strings.Cut(rest, ".")
	partition, bad := strconv.Atoi(number)
	if !ok || token == "" || bad != nil || partition < 0 || partition >= Partitions {
		return 0, "", fmt.Errorf("%q is not the subject of a stored trace", stored)
	}
	return partition, token, nil
}

// Ledgers is the filter for the subjects of all agents' ledgers.
const Ledgers = ledgerPrefix + "*"

// Ledger returns the subject on which an agent publishes the entries of its own ledger.
func Ledger(agentID string) string { return ledgerPrefix + Token(agentID) }

// ParseLedger returns the agent to whose ledger a subject belongs.
func ParseLedger(subject string) (agentID string, err error) {
	token, ok := strings.CutPrefix(subject, ledgerPrefix)
	if !ok {
		return "", fmt.Errorf("%q is not the subject of a ledger", subject)
	}
	if agentID, err = Agent(token); err != nil {
		return "", fmt.Errorf("subject %q: %w", subject, err)
	}
	return agentID, nil
}

// Handshakes is the filter for the handshake messages of all agents.
const Handshakes = handshakePrefix + "*.*"

// Handshake returns the subject on which the requester sends handshake messages to the responder.
// It contains the requester so the broker can restrict an agent to publishing on
// "aap.handshake.*.<its token>".
func Handshake(responder, requester string) string {
	return handshakePrefix + Token(responder) + "." + Token(requester)
}

// HandshakesOf returns the filter for the subjects on which an agent sends handshake messages.
func HandshakesOf(requester string) string { return handshakePrefix + "*." + Token(requester) }

// ParseHandshake parses the subject of a handshake message.
func ParseHandshake(subject string) (responder, requester string, err error) {
	rest, ours := strings.CutPrefix(subject, handshakePrefix)
	to, from, two := strings.Cut(rest, ".")
	if !ours || !two {
		return "", "", fmt.Errorf("%q is not the subject of a handshake message", subject)
	}
	if responder, err = Agent(to); err != nil {
		return "", "", fmt.Errorf("responder: %w", err)
	}
	if requester, err = Agent(from); err != nil {
		return "", "", fmt.Errorf("requester: %w", err)
	}
	return responder, requester, nil
}

// Coherences is the filter for the results of all handshakes.
const Coherences = coherencePrefix + "*"

// Coherence returns the subject of the results of the handshakes that an agent began.
func Coherence(initiator string) string { return coherencePrefix + Token(initiator) }

// MaxBytes is the longest subject or key that is used: enough for the longest agent id, escaped.
// From 4 KiB on the server would close the connection.
const MaxBytes = 3*schema.MaxIDBytes + 64

// CheckInboxPrefix returns an error for an invalid inbox prefix; "" is the default prefix.
func CheckInboxPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if len(prefix) > MaxBytes {
		return fmt.Errorf("the inbox prefix has %d bytes, the limit is %d", len(prefix), MaxBytes)
	}
	for token := range strings.SplitSeq(prefix, ".") {
		if token == "" || strings.ContainsAny(token, "*> \t\r\n\x00") || strings.HasPrefix(prefix, "$") {
			return fmt.Errorf("%q: want tokens separated by dots, without wildcards and white space, such as _INBOX_service.ingest", prefix)
		}
	}
	return nil
}
