package subject

import (
	"fmt"
	"strings"
)

const (
	handshakePrefix = "aap.handshake."
	coherencePrefix = "aap.coherence."
)

// Handshakes is the filter for the handshake messages to every agent, from every
// agent.
const Handshakes = handshakePrefix + "*.*"

// Handshake is the subject on which the requester sends handshake messages to the
// responder. The requester stands in it so that the broker can permit an agent
// to publish "aap.handshake.*.<its token>" and nothing else.
func Handshake(responder, requester string) string {
	return handshakePrefix + Token(responder) + "." + Token(requester)
}

// HandshakesOf matches the subjects on which an agent sends handshake messages, to
// whichever agent.
func HandshakesOf(requester string) string { return handshakePrefix + "*." + Token(requester) }

// ParseHandshake takes the subject of a handshake message apart.
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

// Coherences matches the subjects of the results of all handshakes.
const Coherences = coherencePrefix + "*"

// Coherence is the subject of the results of the handshakes that an agent began.
func Coherence(initiator string) string { return coherencePrefix + Token(initiator) }
