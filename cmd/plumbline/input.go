package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxLineBytes is the longest line that is sent. Ingest's own limit is far lower, and it
// reports lines above that limit. A longer line is no trace at all.
const maxLineBytes = 4 << 20

// openInput opens a file, or standard input for "-", and unpacks it if it is gzipped.
func openInput(ctx context.Context, name string, stdin io.Reader) (io.ReadCloser, error) {
	file, err := openAny(ctx, name, stdin)
	if err != nil {
		return nil, err
	}
	return unpackFile(file, name)
}

// unpackFile unpacks a file if it is gzipped.
func unpackFile(file io.ReadCloser, name string) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(file, 1<<16)
	unpacked, err := unpack(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", nameOf(name), err), file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{unpacked, file}, nil
}

func unpack(in *bufio.Reader) (io.Reader, error) {
	magic, err := in.Peek(2)
	if errors.Is(err, io.EOF) || err == nil && !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	if err != nil {
		return nil, err
	}
	return gzip.NewReader(in)
}

// line is one line of a file, without surrounding white space.
type line struct {
	number int // from 1
	text   []byte
}

// lineReader cuts an input into slices of lines.
type lineReader struct {
	in     *bufio.Reader
	number int // of the last line read
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 1<<16)}
}

// slice returns the next lines without the blank ones, up to a number of lines and
// of bytes. It skips the lines before line from. The error is io.EOF after the last line,
// which may be returned with it.
func (r *lineReader) slice(from, most, mostBytes int) ([]line, error) {
	var lines []line
	bytesRead := 0
	for len(lines) < most && bytesRead < mostBytes {
		text, err := r.next()
		if r.number >= from && len(text) > 0 {
			lines = append(lines, line{r.number, text})
			bytesRead += len(text)
		}
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// next reads one line. Of a line that is too long it returns only the beginning, which ingest
// then refuses.
func (r *lineReader) next() ([]byte, error) {
	var text []byte
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part[:min(len(part), maxLineBytes-len(text))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil || len(text) > 0 {
			r.number++
		}
		return bytes.TrimSpace(text), err
	}
}
