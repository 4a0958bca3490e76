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
	"strings"
)

const upperHex = "0123456789ABCDEF"

// ErrToken is wrapped by the errors of Agent, and of the Parse functions that read a token.
var ErrToken = errors.New("not the token of an agent")

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
		return "", fmt.Errorf("%w: it is empty", ErrToken)
	}
	if strings.IndexByte(token, '=') < 0 {
		return token, allVerbatim(token)
	}
	agent := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		b := token[i]
		if b == '=' {
			var ok bool
			if b, ok = unescape(token[i:]); !ok {
				return "", fmt.Errorf("%w: %q: bad escape at byte %d", ErrToken, token, i)
			}
			i += 2
		} else if !verbatim(b) {
			return "", fmt.Errorf("%w: %q: bad byte at %d", ErrToken, token, i)
		}
		agent = append(agent, b)
	}
	return string(agent), nil
}

func allVerbatim(token string) error {
	for i := range len(token) {
		if !verbatim(token[i]) {
			return fmt.Errorf("%w: %q: bad byte at %d", ErrToken, token, i)
		}
	}
	return nil
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
