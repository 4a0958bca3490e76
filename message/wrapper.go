package message

import (
	"errors"
	"strings"
)

const (
	wrapperHead = "[MSG_AUTH:"
	wrapperTail = " [/MSG_AUTH]"
)

// Wrap returns the form in which a signed message is handed to a runtime:
// [MSG_AUTH:<64 hexadecimal digits>] text [/MSG_AUTH].
func Wrap(mac MAC, text string) string {
	return wrapperHead + mac.String() + "] " + text + wrapperTail
}

// ErrUnsigned says that the text is not wrapped.
var ErrUnsigned = errors.New("not a signed message: want [MSG_AUTH:<64 hexadecimal digits>] text [/MSG_AUTH]")

// Unwrap takes the wrapper off, exactly as Wrap puts it on. It is ErrUnsigned
// where there is none.
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
