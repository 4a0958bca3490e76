package otel

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

// Encoding is the encoding of an OTLP request.
type Encoding uint8

// The two encodings of OTLP.
const (
	Protobuf Encoding = iota
	JSON
)

// The bounds of a request. A decoded message takes memory for each of its parts, however small they are
// as bytes, so parts are counted before anything is decoded.
const (
	partBytes = 256 // memory of a decoded part (a span, an attribute, a value …), on average and generously
	maxNested = 64  // levels of messages; those of a request without nested values are 7
)

// errNested is the error of a request whose values are nested too deeply.
var errNested = fmt.Errorf("its values are nested in more than %d levels", maxNested)

// Size returns how much memory the decoded request takes, at most. The error says why it is no request.
func Size(encoding Encoding, raw []byte) (int64, error) {
	count := func(raw []byte) (int, error) { return countParts(request, raw, 0) }
	if encoding == JSON {
		count = countJSON
	}
	parts, err := count(raw)
	return 2*int64(len(raw)) + int64(parts)*partBytes, err // the texts, and a copy of one that is read as JSON
}

// Decode returns the spans of a request. Size must have accepted it.
func Decode(encoding Encoding, raw []byte) (ptrace.Traces, error) {
	r := ptraceotlp.NewExportRequest()
	var err error
	if encoding == JSON {
		err = r.UnmarshalJSON(raw)
	} else {
		err = r.UnmarshalProto(raw)
	}
	return r.Traces(), err
}

// message is a kind of message of OTLP that has messages in it.
type message uint8

const (
	request message = iota
	resourceSpans
	resource
	scopeSpans
	scope
	span
	event
	link
	keyValue
	anyValue
	arrayValue
	keyValueList
	entityRef
	leaf // without parts of its own
)

// fields has the fields of each kind that are messages or repeated texts (opentelemetry-proto, trace/v1 and common/v1).
var fields = map[message]map[protowire.Number]message{
	request:       {1: resourceSpans},
	resourceSpans: {1: resource, 2: scopeSpans},
	resource:      {1: keyValue, 3: entityRef},
	scopeSpans:    {1: scope, 2: span},
	scope:         {3: keyValue},
	span:          {9: keyValue, 11: event, 13: link, 15: leaf},
	event:         {3: keyValue},
	link:          {4: keyValue},
	keyValue:      {2: anyValue},
	anyValue:      {5: arrayValue, 6: keyValueList},
	arrayValue:    {1: anyValue},
	keyValueList:  {1: keyValue},
	entityRef:     {3: leaf, 4: leaf},
}

// countParts counts the messages in one, itself included.
func countParts(kind message, raw []byte, level int) (int, error) {
	if level > maxNested {
		return 0, errNested
	}
	parts := 1
	for kind != leaf && len(raw) > 0 {
		number, wire, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return 0, fmt.Errorf("read it as protobuf: %w", protowire.ParseError(n))
		}
		raw = raw[n:]
		inner, ok := fields[kind][number]
		if !ok || wire != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, wire, raw); n < 0 {
				return 0, fmt.Errorf("read it as protobuf: %w", protowire.ParseError(n))
			}
			raw = raw[n:]
			continue
		}
		content, n := protowire.ConsumeBytes(raw)
		if n < 0 {
			return 0, fmt.Errorf("read it as protobuf: %w", protowire.ParseError(n))
		}
		raw = raw[n:]
		more, err := countParts(inner, content, level+1)
		if err != nil {
			return 0, err
		}
		parts += more
	}
	return parts, nil
}

var (
	errNoJSON   = errors.New("it is not a JSON object")
	errMoreJSON = errors.New("more follows after the JSON object: send each request by itself")
)

// countJSON counts the objects, arrays and elements of arrays of a text that should be one JSON object. It
// reads brackets, commas and strings only: the decoder finds what else is wrong.
func countJSON(raw []byte) (parts int, err error) {
	var open []byte // the brackets around this place
	var before byte // the last byte that is no white space
	quoted := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case quoted && c == '\\':
			i++
			continue
		case c == '"':
			quoted = !quoted
		case quoted || c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case len(open) == 0 && parts > 0:
			return 0, errMoreJSON
		case c == '{' || c == '[':
			open = append(open, c)
			if parts++; len(open) > 2*maxNested { // an array of messages is two levels
				return 0, errNested
			}
		case len(open) > 0 && (c == ',' || c == '}' || c == ']'):
			if open[len(open)-1] == '[' && before != '}' && before != ']' && before != '[' {
				parts++ // a number, a text or null: the decoder makes a message of null
			}
			if c != ',' {
				open = open[:len(open)-1]
			}
		}
		before = c
	}
	if parts == 0 {
		return 0, errNoJSON
	}
	return parts, nil
}
