package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/plumbline/plumbline/pipeline/durable"
)

// errInterrupted ends a command that was reading when a signal came.
var errInterrupted = errors.New("interrupted by a signal")

// plainFile is a regular file. Reading it ends when the command's context does.
type plainFile struct {
	ctx  context.Context // an io.Reader has no other way to be told
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

// Close closes the file.
func (f *plainFile) Close() error { return f.file.Close() }

// maxSmallFile bounds files that hold keys or certificates.
const maxSmallFile = 1 << 20

// interruptible is an input, such as a terminal or a pipe, whose Read may block
// forever. Its Read returns when the command's context ends.
type interruptible struct {
	ctx    context.Context // an io.Reader has no other way to be told
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
	return struct {
		io.Reader
		io.Closer
	}{&interruptible{ctx: ctx, in: file}, file}, nil
}
