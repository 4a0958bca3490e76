package subject

import (
	"fmt"
	"strings"
)

const (
	handshakePrefix = "aap.handshake."
	coherencePrefix = "aap.coherence."
)

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
