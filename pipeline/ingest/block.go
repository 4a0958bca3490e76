package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema"
)

// maxBlockSearches limits how often a body is searched for values that span several lines, and so
// the cost. Above the limit, lines are refused one by one.
const maxBlockSearches = 10

// block is a JSON value that spans several lines, as pretty-printers write it.
type block struct {
	text    []byte // whole lines
	through int    // number of the last line
	whole   bool   // the value is complete; if not, the body ends within it
}

// block returns the value that begins on line, the last line returned, and continues on the
// following lines. It returns nil if the value does not continue. It consumes those lines too.
// With the error errWindowFull the line is put back, and the caller must read it again after
// release.
func (l *lines) block(line []byte) (*block, error) {
	if l.whole || l.searches >= maxBlockSearches {
		return nil, nil
	}
	if _, err := valueSize(line); !errors.Is(err, io.ErrUnexpectedEOF) { // it is not the beginning of a value
		return nil, nil
	}
	from := l.start - len(line)
	for l.ended == nil {
		if l.end < len(l.window) {
			l.read()
			continue
		}
		grown, err := l.grow(from, from == 0)
		if err != nil {
			return nil, err
		}
		if !grown {
			break
		}
		from = 0
	}
	if len(bytes.TrimSpace(l.window[l.start:l.end])) == 0 {
		return nil, nil
	}
	size, err := valueSize(l.window[from:l.end])
	switch complete := errors.Is(l.ended, io.EOF); {
	case err == nil:
		size = lineSize(l.window[from:l.end], size)
	case !errors.Is(err, io.ErrUnexpectedEOF):
		size = 0
	case complete && !holdsObject(l.window[l.start:l.end]):
		size = l.end - from
	case !complete && l.ended == nil && from > 0:
		l.start, l.seen = from, from
		l.number--
		return nil, errWindowFull
	default:
		size = 0
	}
	if size == 0 {
		l.searches++
		return nil, nil
	}
	text := l.window[from : from+size]
	l.number += bytes.Count(bytes.TrimRight(text[len(line):], " \t\r\n"), []byte{'\n'}) + 1
	l.start, l.seen = from+size, from+size
	return &block{text: text, through: l.number, whole: err == nil}, nil
}

// valueSize returns the length of the value at the beginning of text. It only finds where the value
// ends. Other code checks whether the value is strict JSON.
func valueSize(text []byte) (int, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := decoder.ReadValue()
	return int(decoder.InputOffset()), err
}

// lineSize returns the end of the line in which a value of that size ends. It returns 0 if
// something follows the value on that line.
func lineSize(text []byte, size int) int {
	rest := text[size:]
	if end := bytes.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end+1]
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return 0
	}
	return size + len(rest)
}

// holdsObject reports whether one of the lines is an object by itself. Such a line may be a trace
// that follows a truncated line.
func holdsObject(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		if size, err := valueSize(line); err == nil && size == len(line) {
			return true
		}
	}
	return false
}

// fault describes the value, and what to do.
func (b *block) fault() schema.Fault {
	what, end := "an object", fmt.Sprintf("continues to line %d", b.through)
	if bytes.TrimSpace(b.text)[0] == '[' {
		what = "an array"
	}
	if !b.whole {
		end = "is incomplete at the end of the body"
	}
	return schema.Fault{Message: fmt.Sprintf(
		"%s begins here and %s: put each trace on one line (jq -c), or send one trace a request with Content-Type: application/json", what, end)}
}
