package subject

import (
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

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
