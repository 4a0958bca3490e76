package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// reader reads values from one JSON record without copying: the strings and raw values it
// returns alias the record. The first syntax error ends the reading (err). Other faults are
// collected, and reading continues after them.
//
// A reader that scans is fast and reports no fault: the first one ends the reading with errDoubt,
// and the record must be read again without scanning.
type reader struct {
	source   bytes.Buffer
	dec      *jsontext.Decoder
	scanning bool
	scan     scanner
	raw      []byte
	err      error
	faults   []Fault
	beyond   int // faults found after MaxFaults
}

// errDoubt means that a record is not as usual: jsontext must read it.
var errDoubt = errors.New("the record must be read without scanning")

// reset starts a new record; raw must not change while its values are used.
func (r *reader) reset(raw []byte) {
	r.raw, r.err, r.faults, r.beyond = raw, nil, r.faults[:0], 0
	if r.scanning {
		r.scan.reset(raw)
		return
	}
	r.source = *bytes.NewBuffer(raw)
	if r.dec == nil {
		r.dec = jsontext.NewDecoder(&r.source)
		return
	}
	r.dec.Reset(&r.source)
}

// fault records a fault of the value read last.
func (r *reader) fault(message string, args ...any) {
	if len(r.faults) == MaxFaults {
		r.beyond++ // another pointer would cost more than it is worth
		return
	}
	r.faultAt(r.pointer(), message, args...)
}

func (r *reader) faultAt(pointer, message string, args ...any) {
	if r.scanning {
		r.err = errDoubt
		return
	}
	if len(r.faults) == MaxFaults {
		r.beyond++
		return
	}
	r.faults = append(r.faults, Fault{Pointer: Clip(pointer, MaxPointerBytes), Message: fmt.Sprintf(message, args...)})
}

// syntax keeps the error that ended the reading, and records it as a fault.
func (r *reader) syntax(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	var at *jsontext.SyntacticError
	if errors.As(err, &at) {
		r.faultAt(string(at.JSONPointer), "%s", SyntaxMessage(at))
		return
	}
	r.faultAt("", "%v", err)
}

// Truncated is the beginning of the message about a text that ends too early.
const Truncated = "ends in the middle of a JSON value"

// SyntaxMessage says what is wrong with a text that is no JSON, and where.
func SyntaxMessage(err *jsontext.SyntacticError) string {
	if errors.Is(err.Err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("%s (byte %d)", Truncated, err.ByteOffset)
	}
	return fmt.Sprintf("%v (byte %d)", err.Err, err.ByteOffset)
}

// pointer returns the place of the value read last. A reader that scans does not know it.
func (r *reader) pointer() string {
	if r.scanning {
		return ""
	}
	return string(r.dec.StackPointer())
}

// offset returns the index of the first byte after what was read last.
func (r *reader) offset() int {
	if r.scanning {
		return r.scan.at
	}
	return int(r.dec.InputOffset())
}

// peek returns the kind of the next token.
func (r *reader) peek() jsontext.Kind {
	if r.scanning {
		return r.scan.peek()
	}
	return r.dec.PeekKind()
}

// value reads the next value as raw JSON.
func (r *reader) value() []byte {
	if r.err != nil {
		return nil
	}
	if r.scanning {
		v := r.scan.value()
		if v == nil {
			r.err = errDoubt
		}
		return v
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		r.syntax(err)
		return nil
	}
	return v
}

// opaque reads a value that only its publisher interprets, within the limits of depth and
// number range.
func (r *reader) opaque() []byte {
	v := r.value()
	if r.err == nil && !r.scanning { // the scanner knows these limits
		if problem := beyondLimits(v, r.dec.StackDepth()); problem != "" {
			r.fault("%s", problem)
		}
	}
	return v
}

// null skips a null and reports whether there was one.
func (r *reader) null() bool {
	if r.err != nil || r.peek() != 'n' {
		return false
	}
	r.value()
	return true
}

// next reports whether the next value is of that kind.
func (r *reader) next(kind jsontext.Kind) bool {
	return r.err == nil && r.peek() == kind
}

// enter reads the opening brace or bracket of kind. It skips any other value and records a
// fault.
func (r *reader) enter(kind jsontext.Kind, want string) bool {
	if r.peek() != kind {
		r.wrongType(want)
		return false
	}
	if r.scanning {
		if r.err == nil && !r.scan.open() {
			r.err = errDoubt
		}
		return r.err == nil
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.syntax(err)
		return false
	}
	return true
}

func (r *reader) wrongType(want string) {
	if v := r.value(); r.err == nil {
		r.fault("want %s, found %s", want, KindName(jsontext.Value(v).Kind()))
	}
}

// KindName returns the name of a kind of JSON value as faults write it: "a string".
func KindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	default:
		return "an array"
	}
}

// more reports whether the object or array entered last has another member. At the end it reads
// the closing brace or bracket.
func (r *reader) more() bool {
	if r.err != nil {
		return false
	}
	switch r.peek() {
	case '}', ']':
		if r.scanning {
			r.scan.close()
		} else if _, err := r.dec.ReadToken(); err != nil {
			r.syntax(err)
		}
		return false
	}
	return true
}

// name reads a member's name.
func (r *reader) name() string { return r.unquote(r.value()) }

// text reads a string. It records a fault for any other type and returns "".
func (r *reader) text() string {
	if r.err != nil {
		return ""
	}
	if r.peek() != '"' {
		r.wrongType("a string")
		return ""
	}
	return r.unquote(r.value())
}

func (r *reader) unquote(quoted []byte) string {
	if len(quoted) < 2 {
		return ""
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return alias(quoted[1 : len(quoted)-1])
	}
	plain, _ := jsontext.AppendUnquote(nil, quoted) // quoted was read as a string before
	return alias(plain)
}

// identifier reads a non-empty string within MaxIDBytes.
func (r *reader) identifier() string {
	faults := len(r.faults)
	s := r.text()
	switch {
	case r.err != nil || len(r.faults) > faults:
	case s == "":
		r.fault("must not be empty")
	case len(s) > MaxIDBytes:
		r.fault("%d bytes, at most %d are allowed", len(s), MaxIDBytes)
	}
	return s
}

func (r *reader) boolean() bool {
	if k := r.peek(); k != 't' && k != 'f' {
		r.wrongType("a boolean")
		return false
	}
	return len(r.value()) == len("true")
}

// number reads a number in the range of float64; ok is false where there is none.
func (r *reader) number() (f float64, ok bool) {
	if r.peek() != '0' {
		r.wrongType("a number")
		return 0, false
	}
	f, err := strconv.ParseFloat(alias(r.value()), 64)
	if err != nil {
		r.fault("number is beyond the range of a 64-bit float")
		return 0, false
	}
	return f, true
}

// fraction reads a number from 0 to 1.
func (r *reader) fraction() (float64, bool) {
	f, ok := r.number()
	if ok && (f < 0 || f > 1) {
		r.fault("%v is outside 0..1", f)
	}
	return f, ok
}

// natural reads a whole number of at least 0 that fits an int64.
func (r *reader) natural() (int64, bool) {
	if r.peek() != '0' {
		r.wrongType("an integer")
		return 0, false
	}
	n, err := strconv.ParseInt(alias(r.value()), 10, 64)
	if err != nil || n < 0 {
		r.fault("want an integer of at least 0")
		return 0, false
	}
	return n, true
}

// texts appends the strings of an array.
func (r *reader) texts(dst []string) []string {
	if !r.enter('[', "an array of strings") {
		return dst
	}
	for r.more() {
		dst = append(dst, r.text())
	}
	return dst
}

// opaqueMembers appends the members of an object, with raw values.
func (r *reader) opaqueMembers(dst Members) Members {
	if !r.enter('{', "an object") {
		return dst
	}
	for r.more() {
		name := r.name()
		dst = append(dst, Member{Name: name, Value: r.opaque()})
	}
	return dst
}

// end records a fault if anything follows the record.
func (r *reader) end() {
	if r.err == nil && r.offset() != len(r.raw) {
		r.faultAt("", "unexpected text after the record (byte %d)", r.offset())
	}
}

// alias returns b as a string without copying.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// members are the known members of an object, with the functions that read them. Reading by such a
// list is slower than by the switches of Decoder, and shorter.
type members []member

type member struct {
	name string
	read func()
}

// object reads an object. Known members are read by their functions; others are skipped within
// the limits. It reports missing required members and returns the names found.
func (r *reader) object(known members, required ...string) (found []string) {
	if !r.enter('{', "an object") {
		return nil
	}
	found = make([]string, 0, len(known))
	for r.more() {
		name := r.name()
		found = append(found, name)
		if i := slices.IndexFunc(known, func(m member) bool { return m.name == name }); i >= 0 {
			known[i].read()
			continue
		}
		r.opaque()
	}
	for _, name := range required {
		if r.err == nil && !slices.Contains(found, name) {
			r.faultAt(r.pointer()+"/"+name, "is missing (required)")
		}
	}
	return found
}

// optional returns a function that treats null as absent.
func (r *reader) optional(read func()) func() {
	return func() {
		if !r.null() {
			read()
		}
	}
}

// into returns a function that stores the result of read.
func into[T any](dst *T, read func() T) func() { return func() { *dst = read() } }

// choice returns a function that reads one of the allowed texts.
func choice[T ~string](r *reader, dst *T, allowed ...T) func() {
	return func() { *dst = oneOf(r, r.text(), allowed...) }
}

// names reads an array of non-empty names.
func (r *reader) names() []string {
	var out []string
	if !r.enter('[', "an array of strings") {
		return nil
	}
	for r.more() {
		out = append(out, r.identifier())
	}
	return out
}
