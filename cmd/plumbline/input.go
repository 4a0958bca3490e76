package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/plumbline/plumbline/pipeline/durable"
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

// all yields the lines that are not blank. An error of reading ends it; the line during which
// it occurred is not yielded.
func (r *lineReader) all(yield func([]byte, error) bool) {
	for {
		text, err := r.next()
		if err != nil && !errors.Is(err, io.EOF) {
			yield(nil, err)
			return
		}
		if len(text) > 0 && !yield(text, nil) || err != nil {
			return
		}
	}
}

// errInterrupted ends a command that was reading when a signal came.
var errInterrupted = errors.New("interrupted by a signal")

// plainFile is a regular file. Reading it ends when the command's context does.
type plainFile struct {
	ctx  context.Context // an io.Reader cannot get it in another way
	file *os.File
}

// openPlain opens a regular file. It refuses anything that could block or be endless.
func openPlain(ctx context.Context, path string) (*plainFile, error) {
	file, err := durable.OpenPlain(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNothing, err)
	}
	return &plainFile{ctx, file}, nil
}

func (f *plainFile) Read(p []byte) (int, error) {
	if f.ctx.Err() != nil {
		return 0, errInterrupted
	}
	return f.file.Read(p)
}

func (f *plainFile) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

func (f *plainFile) Close() error { return f.file.Close() }

// maxSmallFile bounds files that hold keys or certificates.
const maxSmallFile = 1 << 20

// interruptible is an input, such as a terminal or a pipe, whose Read may block
// forever. Its Read returns when the command's context ends.
type interruptible struct {
	ctx    context.Context // an io.Reader cannot get it in another way
	in     io.Reader
	buffer []byte // of the pending Read, which may outlive an interrupted caller
}

func (r *interruptible) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, errInterrupted
	}
	if len(r.buffer) < len(p) {
		r.buffer = make([]byte, len(p))
	}
	n, err := unlessInterrupted(r.ctx, func() (int, error) { return r.in.Read(r.buffer[:len(p)]) })
	return copy(p, r.buffer[:n]), err
}

// unlessInterrupted calls f. If the context ends first, it returns without waiting for f.
func unlessInterrupted[T any](ctx context.Context, f func() (T, error)) (got T, err error) {
	type result struct {
		got T
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := f()
		done <- result{got, err}
	}()
	select {
	case r := <-done:
		return r.got, r.err
	case <-ctx.Done():
		return got, errInterrupted
	}
}

// openAny opens a file, or standard input for "-". The file may be a pipe or a device: opening
// and reading it end when the command's context does.
func openAny(ctx context.Context, name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	file, err := unlessInterrupted(ctx, func() (*os.File, error) { return os.Open(name) })
	if errors.Is(err, errInterrupted) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNothing, err)
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%w: %s is a directory: name the files in it", errNothing, name), file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{&interruptible{ctx: ctx, in: file}, file}, nil
}

// nameOf returns the name of an input in messages.
func nameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}
