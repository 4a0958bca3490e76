package schema

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads the tokens of one JSON record several times as fast as jsontext. It accepts only
// strict JSON within the limits of depth and number range: every value that it returns is one that
// jsontext and beyondLimits accept. Where it does not know, it fails without a reason, and the
// record is read again with jsontext, which decides and says what is wrong.
type scanner struct {
	raw []byte
	at  int // end of the last token

	kind jsontext.Kind // of the next token; 0: not looked at
	next int           // where it begins

	levels []level // the open objects and arrays, below them the record itself
	names  []place // of the open objects, in order

	long bool // an integer was read that may have more digits than a float64 holds
}

// level is the state of an object or array that is being read.
type level struct {
	object bool
	begun  bool // it has a member
	named  bool // the next value belongs to the name that was read last
	names  int  // index of its first name
}

// place is the position of a text in the record.
type place struct{ from, to int }

// exactDigits is how many digits every integer may have that a float64 holds.
const exactDigits = 15

// maxScannedNames is how many names an object may have in the scanner, which compares each name
// with all others of the object.
const maxScannedNames = 64

func (s *scanner) reset(raw []byte) {
	s.raw, s.at, s.kind, s.long = raw, 0, 0, false
	s.levels, s.names = append(s.levels[:0], level{}), s.names[:0]
}

// peek returns the kind of the next token, and 0 where there is none in the right place.
func (s *scanner) peek() jsontext.Kind {
	if s.kind == 0 {
		s.kind, s.next = s.look()
	}
	return s.kind
}

// look passes the punctuation before the next token.
func (s *scanner) look() (kind jsontext.Kind, at int) {
	at = s.pastSpace(s.at)
	l := &s.levels[len(s.levels)-1]
	closing := byte(']')
	if l.object {
		closing = '}'
	}
	switch {
	case at == len(s.raw):
		return 0, at
	case l.named:
		if s.raw[at] != ':' {
			return 0, at
		}
		at = s.pastSpace(at + 1)
	case s.raw[at] == closing && len(s.levels) > 1:
		return jsontext.Kind(closing), at
	case l.begun:
		if s.raw[at] != ',' || len(s.levels) == 1 {
			return 0, at
		}
		at = s.pastSpace(at + 1)
	}
	if at == len(s.raw) || l.object && !l.named && s.raw[at] != '"' {
		return 0, at
	}
	switch c := s.raw[at]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return jsontext.Kind(c), at
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0', at
	}
	return 0, at
}

func (s *scanner) pastSpace(at int) int {
	for at < len(s.raw) {
		switch s.raw[at] {
		case ' ', '\t', '\r', '\n':
			at++
		default:
			return at
		}
	}
	return at
}

// open reads the opening brace or bracket that peek has found.
func (s *scanner) open() bool {
	if len(s.levels) > MaxDepth {
		return false
	}
	object := s.peek() == '{'
	s.end(s.next + 1)
	s.levels = append(s.levels, level{object: object, names: len(s.names)})
	return true
}

// close reads the closing brace or bracket that peek has found.
func (s *scanner) close() {
	s.at, s.kind = s.next+1, 0
	last := len(s.levels) - 1
	s.names = s.names[:s.levels[last].names]
	s.levels = s.levels[:last]
}

// end records that a member's value or an element ends there.
func (s *scanner) end(at int) {
	s.at, s.kind = at, 0
	l := &s.levels[len(s.levels)-1]
	l.begun, l.named = true, false
}

// value reads the next value, or the next name of an object, as raw JSON. It returns nil where it
// fails.
func (s *scanner) value() []byte {
	switch s.peek() {
	case 0, '}', ']':
		return nil
	}
	from := s.next
	l := &s.levels[len(s.levels)-1]
	if l.object && !l.named {
		to := s.name(from, l.names)
		if to < 0 {
			return nil
		}
		s.at, s.kind, l.named = to, 0, true
		return s.raw[from:to:to]
	}
	to := s.skip(from, len(s.levels)-1)
	if to < 0 {
		return nil
	}
	s.end(to)
	return s.raw[from:to:to]
}

// skip returns the end of the value at from, inside depth objects and arrays. It returns -1 where it
// fails, as do the methods below.
func (s *scanner) skip(from, depth int) (to int) {
	switch c := s.raw[from]; c {
	case '"':
		to, _ = s.text(from)
		return to
	case '{', '[':
		if depth == MaxDepth {
			return -1
		}
		if c == '[' {
			return s.array(from, depth+1)
		}
		names := len(s.names)
		to = s.object(from, depth+1)
		s.names = s.names[:names]
		return to
	case 't':
		return s.literal(from, "true")
	case 'f':
		return s.literal(from, "false")
	case 'n':
		return s.literal(from, "null")
	}
	return s.number(from)
}

func (s *scanner) object(from, depth int) (to int) {
	names := len(s.names)
	at := s.pastSpace(from + 1)
	if at < len(s.raw) && s.raw[at] == '}' {
		return at + 1
	}
	for at < len(s.raw) && s.raw[at] == '"' {
		if at = s.name(at, names); at < 0 {
			return -1
		}
		if at = s.pastSpace(at); at == len(s.raw) || s.raw[at] != ':' {
			return -1
		}
		if at = s.member(at+1, depth); at < 0 {
			return -1
		}
		if s.raw[at] == '}' {
			return at + 1
		}
		if s.raw[at] != ',' {
			return -1
		}
		at = s.pastSpace(at + 1)
	}
	return -1
}

func (s *scanner) array(from, depth int) (to int) {
	at := s.pastSpace(from + 1)
	if at < len(s.raw) && s.raw[at] == ']' {
		return at + 1
	}
	for {
		if at = s.member(at, depth); at < 0 {
			return -1
		}
		if s.raw[at] == ']' {
			return at + 1
		}
		if s.raw[at] != ',' {
			return -1
		}
		at++
	}
}

// member passes a value and the white space around it.
func (s *scanner) member(at, depth int) int {
	if at = s.pastSpace(at); at == len(s.raw) {
		return -1
	}
	if at = s.skip(at, depth); at < 0 {
		return -1
	}
	if at = s.pastSpace(at); at == len(s.raw) {
		return -1
	}
	return at
}

// name reads a name of the object whose names begin at index first. It fails for a name that the
// object has already, and for a name with escapes, which would have to be compared without them.
func (s *scanner) name(from, first int) (to int) {
	to, escaped := s.text(from)
	if to < 0 || escaped || len(s.names)-first >= maxScannedNames {
		return -1
	}
	name := s.raw[from:to]
	for _, other := range s.names[first:] {
		if other.to-other.from == len(name) && bytes.Equal(s.raw[other.from:other.to], name) {
			return -1
		}
	}
	s.names = append(s.names, place{from, to})
	return to
}

func (s *scanner) literal(from int, want string) (to int) {
	to = from + len(want)
	if to > len(s.raw) || string(s.raw[from:to]) != want {
		return -1
	}
	return to
}

// number fails for numbers that may be beyond the range of float64: those with many digits, and
// those with an exponent of three digits.
func (s *scanner) number(from int) (to int) {
	at := from
	if s.raw[at] == '-' {
		at++
	}
	whole := at
	if at = s.digits(at); at == whole || at > whole+1 && s.raw[whole] == '0' {
		return -1
	}
	if at-whole > exactDigits {
		s.long = true
	}
	if at < len(s.raw) && s.raw[at] == '.' {
		fraction := at + 1
		if at = s.digits(fraction); at == fraction {
			return -1
		}
	}
	if at < len(s.raw) && s.raw[at]|0x20 == 'e' {
		exponent := at + 1
		if exponent < len(s.raw) && (s.raw[exponent] == '+' || s.raw[exponent] == '-') {
			exponent++
		}
		if at = s.digits(exponent); at == exponent || at > exponent+2 {
			return -1
		}
	}
	if at-from > safeDigits {
		return -1
	}
	return at
}

func (s *scanner) digits(at int) int {
	for at < len(s.raw) && digit(s.raw[at]) {
		at++
	}
	return at
}

// text returns the end of the string at from, and whether it has escapes.
func (s *scanner) text(from int) (to int, escaped bool) {
	for at := from + 1; ; {
		at = plain(s.raw, at)
		if at == len(s.raw) {
			return -1, false
		}
		switch c := s.raw[at]; {
		case c == '"':
			return at + 1, escaped
		case c == '\\':
			escaped = true
			if at = s.escape(at); at < 0 {
				return -1, false
			}
		case c < ' ':
			return -1, false
		default:
			r, size := utf8.DecodeRune(s.raw[at:])
			if r == utf8.RuneError && size == 1 {
				return -1, false
			}
			at += size
		}
	}
}

// plain returns the index of the first byte from at on that is not a plain character of a string:
// a quote, a backslash, a control character or a part of a longer character. It looks at eight
// bytes at a time.
func plain(raw []byte, at int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(raw); at += 8 {
		w := binary.LittleEndian.Uint64(raw[at:])
		quote, slash := w^('"'*ones), w^('\\'*ones)
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-' '*ones)&^w | w) & high
		if found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for ; at < len(raw); at++ {
		if c := raw[at]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			return at
		}
	}
	return at
}

// escape returns the end of the escape at at. A surrogate must be the first half of a pair.
func (s *scanner) escape(at int) int {
	if at+1 >= len(s.raw) {
		return -1
	}
	switch s.raw[at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 2
	}
	unit, ok := s.unit(at)
	if !ok {
		return -1
	}
	if unit < 0xd800 || unit > 0xdfff {
		return at + len(`\uffff`)
	}
	second, ok := s.unit(at + len(`\uffff`))
	if !ok || unit > 0xdbff || second < 0xdc00 || second > 0xdfff {
		return -1
	}
	return at + len(`\uffff\uffff`)
}

// unit reads an escape of the form \uffff.
func (s *scanner) unit(at int) (unit int, ok bool) {
	if at+6 > len(s.raw) || s.raw[at] != '\\' || s.raw[at+1] != 'u' {
		return 0, false
	}
	for _, c := range s.raw[at+2 : at+6] {
		switch {
		case digit(c):
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | int(c)
	}
	return unit, true
}
