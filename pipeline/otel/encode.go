package otel

import (
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// encode returns the JSON of an attribute's value, or its size and SHA-256 if the JSON has more than most
// bytes. Bytes are base64, as in OTLP's own JSON, and numbers that JSON does not have are texts. It uses
// memory for most bytes, however long the JSON would be: of a text of control characters that is six times
// the text.
func encode(v pcommon.Value, most int) jsontext.Value {
	e := encoder{most: most}
	e.value(v)
	return e.end()
}

// fits reports whether the JSON of a value has at most so many bytes.
func fits(v pcommon.Value, most int) bool {
	e := encoder{most: most}
	e.value(v)
	return e.fits()
}

// encoder writes JSON. What exceeds the limit leaves it for the hash.
type encoder struct {
	text []byte
	most int
	hash hash.Hash // of what left; nil: nothing did
	left int       // bytes that left
}

func (e *encoder) end() jsontext.Value {
	if e.fits() {
		return e.text
	}
	e.leave()
	var digest [sha256.Size]byte
	e.hash.Sum(digest[:0])
	return omitted(e.left, digest)
}

func (e *encoder) fits() bool { return e.left == 0 && len(e.text) <= e.most }

func (e *encoder) leave() {
	if e.hash == nil {
		e.hash = sha256.New()
	}
	e.hash.Write(e.text)
	e.left += len(e.text)
	e.text = e.text[:0]
}

// spare leaves no more text than the limit. It is called after each part.
func (e *encoder) spare() {
	if len(e.text) > e.most {
		e.leave()
	}
}

// maxExact is the largest whole number that every reader of JSON represents exactly. A larger one is
// written as text.
const maxExact = 1 << 53

func (e *encoder) value(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		e.string(v.Str())
	case pcommon.ValueTypeBool:
		e.text = strconv.AppendBool(e.text, v.Bool())
	case pcommon.ValueTypeInt:
		if n := v.Int(); n < -maxExact || n > maxExact {
			e.string(strconv.FormatInt(n, 10))
		} else {
			e.text = strconv.AppendInt(e.text, n, 10)
		}
	case pcommon.ValueTypeDouble:
		if f := v.Double(); math.IsNaN(f) || math.IsInf(f, 0) {
			e.string(strconv.FormatFloat(f, 'g', -1, 64))
		} else {
			e.text = append(e.text, jsontext.Float(f).String()...)
		}
	case pcommon.ValueTypeBytes:
		e.bytes(v.Bytes())
	case pcommon.ValueTypeSlice:
		e.text = append(e.text, '[')
		for i, item := range v.Slice().All() {
			if i > 0 {
				e.text = append(e.text, ',')
			}
			e.value(item)
		}
		e.text = append(e.text, ']')
	case pcommon.ValueTypeMap:
		e.text = append(e.text, '{')
		for i, m := range ordered(v.Map()) {
			if i > 0 {
				e.text = append(e.text, ',')
			}
			e.string(m.name)
			e.text = append(e.text, ':')
			e.value(m.value)
		}
		e.text = append(e.text, '}')
	default:
		e.text = append(e.text, "null"...)
	}
	e.spare()
}

// pieceBytes is how much of a text is written at once.
const pieceBytes = 16 << 10

// string writes a text piece by piece. What is not UTF-8 in it becomes the replacement character, a run of
// it one character.
func (e *encoder) string(s string) {
	e.text = append(e.text, '"')
	for s != "" {
		piece := s[:pieceEnd(s)]
		s = s[len(piece):]
		opening := len(e.text)
		e.text = appendQuote(e.text, piece)
		e.text = append(e.text[:opening], e.text[opening+1:len(e.text)-1]...) // without its quotation marks
		e.spare()
	}
	e.text = append(e.text, '"')
}

// pieceEnd returns where a piece of a text ends: before a character, so no run of invalid bytes is cut.
func pieceEnd(s string) int {
	for end := pieceBytes; end < len(s); end++ {
		if r, size := utf8.DecodeRuneInString(s[end:]); r != utf8.RuneError || size > 1 {
			return end
		}
	}
	return len(s)
}

func (e *encoder) bytes(b pcommon.ByteSlice) {
	const piece = pieceBytes / 3 * 3 // no padding within
	e.text = append(e.text, '"')
	for raw := b.AsRaw(); len(raw) > 0; {
		n := min(piece, len(raw))
		e.text = base64.StdEncoding.AppendEncode(e.text, raw[:n])
		raw = raw[n:]
		e.spare()
	}
	e.text = append(e.text, '"')
}

// attribute is a member of a map.
type attribute struct {
	name  string // as JSON has it: valid UTF-8
	value pcommon.Value
}

// ordered returns the members of a map in the order of their names, of those with one name the first.
func ordered(m pcommon.Map) []attribute {
	all := make([]attribute, 0, m.Len())
	for name, value := range m.All() {
		all = append(all, attribute{strings.ToValidUTF8(name, "\uFFFD"), value})
	}
	slices.SortStableFunc(all, func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b attribute) bool { return a.name == b.name })
}

// quote returns the JSON of a text. What is not UTF-8 in it becomes the replacement character.
func quote(s string) jsontext.Value { return appendQuote(nil, s) }

func appendQuote(to []byte, s string) []byte {
	to, err := jsontext.AppendQuote(to, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil { // the text is valid UTF-8
		panic(err)
	}
	return to
}

func list(items []string) jsontext.Value {
	raw := jsontext.Value("[")
	for i, item := range items {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = appendQuote(raw, item)
	}
	return append(raw, ']')
}
