package message

import (
	"errors"
	"strings"
)

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
