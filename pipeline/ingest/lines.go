package ingest

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/plumbline/plumbline/pipeline/problem"
)

// windowBytes is the size of the window through which a long body is read. It is also the maximum
// length of a line, white space included.
const windowBytes = 2 << 20

var (
	errWindowFull = errors.New("the returned lines fill the window")
	errLineLong   = errors.New("the line is longer than the window")
)

// byteOrderMark is what some programs write before UTF-8. It is not part of the first line, as
// RFC 8259, section 8.1, permits.
var byteOrderMark = []byte("\ufeff")

// lines splits a body into lines without copying. The lines alias a window of memory that moves
// along the body. A full window is replaced by a larger one.
type lines struct {
	body   io.Reader
	whole  bool // the body is one record, even if it contains line ends
	window []byte

	// larger returns a larger window. It returns nil if there is none, or if wait is false and
	// none is free. larger itself may be nil.
	larger func(wait bool) ([]byte, error)

	number int   // of the last line returned, from 1
	start  int   // of what was not returned yet
	seen   int   // no line ends between start and here
	end    int   // of what was read
	over   bool  // inside a line that is too long, whose rest is skipped
	ended  error // the error at the end of the body

	searches int // for blocks, without success
}

// gzipMagic is the beginning of every gzip file.
var gzipMagic = []byte{0x1f, 0x8b}

// next returns the next line that is not blank. The line is valid until release. Errors: a problem
// if the body is compressed and does not say so;
// errWindowFull (call release and continue); errLineLong, with the beginning of a line that is
// too long, valid until the next call; io.EOF at the regular end. Any other error is the body's,
// and an unfinished line is not returned.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.cut()
		if l.number == 1 && bytes.HasPrefix(line, gzipMagic) {
			return nil, problem.New(http.StatusBadRequest, "encoding", "the body looks like gzip: add the header Content-Encoding: gzip")
		}
		if err != nil || len(bytes.TrimLeft(line, " \t\r\n")) > 0 {
			return line, err
		}
	}
}

// release discards the lines returned so far and makes room for more.
func (l *lines) release() {
	copy(l.window, l.window[l.start:l.end])
	l.seen -= l.start
	l.end -= l.start
	l.start = 0
}

// cut returns the next line, blank or not.
func (l *lines) cut() ([]byte, error) {
	for {
		if end, found := l.lineEnd(); found {
			if line, whole := l.take(end); whole {
				return line, nil
			}
			continue
		}
		l.seen = l.end
		switch {
		case l.ended != nil:
			return nil, l.ended
		case l.end < len(l.window):
			l.read()
		case l.over:
			l.end, l.seen = l.start, l.start
		default:
			// If there is no memory for a larger window, commit what was read first.
			grown, err := l.grow(l.start, l.start == 0)
			switch {
			case err != nil:
				return nil, err
			case grown:
			case l.start > 0:
				return nil, errWindowFull
			default:
				l.over = true
				l.number++
				return l.window, errLineLong
			}
		}
	}
}

// grow copies what was read, from keep on, into a larger window. It reports whether there is one.
// Lines that were already returned stay where they are.
func (l *lines) grow(keep int, wait bool) (bool, error) {
	if l.larger == nil {
		return false, nil
	}
	window, err := l.larger(wait)
	if window == nil || err != nil {
		return false, err
	}
	copy(window, l.window[keep:l.end])
	l.window, l.start, l.seen, l.end = window, l.start-keep, l.seen-keep, l.end-keep
	return true, nil
}

// lineEnd finds the end of the line at start: after its line feed, or at the end of the body.
func (l *lines) lineEnd() (int, bool) {
	if !l.whole {
		if i := bytes.IndexByte(l.window[l.seen:l.end], '\n'); i >= 0 {
			return l.seen + i + 1, true
		}
	}
	return l.end, errors.Is(l.ended, io.EOF) && l.start < l.end
}

// take returns what ends at end, unless it is the rest of a line that is too long.
func (l *lines) take(end int) (line []byte, whole bool) {
	line = l.window[l.start:end]
	l.start, l.seen = end, end
	if l.over {
		l.over = false
		return nil, false
	}
	l.number++
	if l.number == 1 {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	return line, true
}

func (l *lines) read() {
	n, err := io.ReadAtLeast(l.body, l.window[l.end:], 1)
	l.end += n
	l.ended = err
}
