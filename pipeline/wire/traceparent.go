package wire

import "strings"

// HeaderTraceparent is the header of a trace's message, and of an HTTP request, with the span of its
// publisher (W3C Trace Context).
const HeaderTraceparent = "traceparent"

// traceparentBytes is the length of version 00. Later versions begin with the same four parts.
const traceparentBytes = 55

// Traceparent returns the part of a traceparent that every version has, or "" if it is not valid: the
// specification demands that such a header is ignored.
func Traceparent(header string) string {
	if len(header) < traceparentBytes {
		return ""
	}
	h := header[:traceparentBytes]
	version := h[:2]
	valid := isHex(version) && version != "ff" && h[2] == '-' && h[35] == '-' && h[52] == '-' && isHex(h[3:35]) && isHex(h[36:52]) && isHex(h[53:]) &&
		strings.Trim(h[3:35], "0") != "" && strings.Trim(h[36:52], "0") != ""
	if len(header) > traceparentBytes {
		valid = valid && version != "00" && header[traceparentBytes] == '-'
	}
	if !valid {
		return ""
	}
	return h
}

// TraceAndSpan returns the ids in a traceparent, as lower-case hexadecimal digits, or two empty texts if
// it is not valid.
func TraceAndSpan(header string) (trace, span string) {
	h := Traceparent(header)
	if h == "" {
		return "", ""
	}
	return h[3:35], h[36:52]
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
