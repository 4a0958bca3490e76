package mcprecorder

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// decoded returns the text of a body with a Content-Encoding.
func decoded(from io.Reader, coding string) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return from, nil
	case "gzip", "x-gzip":
		text, err := gzip.NewReader(from)
		if err != nil {
			return nil, fmt.Errorf("it is no gzip: %w", err)
		}
		return text, nil
	default:
		return nil, fmt.Errorf("its encoding %q is unknown", coding)
	}
}

// events calls message with the data of each event of a stream. resumable reports whether an
// event had an id: a client can then ask for the rest of a stream that broke off.
func events(from io.Reader, message func(data []byte)) (resumable bool, err error) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(make([]byte, 0, 4<<10), maxMessage)
	var data []byte
	for scanner.Scan() { // lines without their ends, which are \n or \r\n
		line := scanner.Bytes()
		if len(line) == 0 {
			if len(data) > 0 {
				message(data)
			}
			data = nil
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if len(data)+len(value) > maxMessage {
				return resumable, bufio.ErrTooLong
			}
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case "id":
			resumable = true
		}
	}
	err = scanner.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return resumable, fmt.Errorf("an event has more than %d bytes", maxMessage)
	case errors.Is(err, io.ErrUnexpectedEOF): // compressed, and broke off
		return resumable, nil
	}
	return resumable, err
}

// handover passes bytes to a goroutine that reads them. Unlike that of io.Pipe, write returns only
// once the goroutine asks for more: it has then processed what the bytes complete.
type handover struct {
	data chan []byte
	more chan struct{}
	done chan struct{} // closed by the goroutine: it reads no more
	rest []byte
	last bool // whether the last bytes have not been acknowledged
}

func newHandover() *handover {
	return &handover{data: make(chan []byte), more: make(chan struct{}), done: make(chan struct{})}
}

func (h *handover) write(p []byte) {
	select {
	case h.data <- p:
	case <-h.done:
		return
	}
	select {
	case <-h.more:
	case <-h.done:
	}
}

// Read is for the goroutine.
func (h *handover) Read(p []byte) (int, error) {
	if len(h.rest) == 0 {
		if h.last {
			h.more <- struct{}{}
		}
		if h.rest, h.last = <-h.data; !h.last {
			return 0, io.EOF
		}
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}
