package eval

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

var errLineTooLong = fmt.Errorf("longer than %d bytes", MaxLineBytes)

// readLine returns the next line without surrounding white space, and io.EOF after the last. It
// skips a line that is too long and returns errLineTooLong.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
		if !tooLong && len(line)+len(part) > MaxLineBytes {
			line, tooLong = nil, true
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case tooLong:
			return nil, errLineTooLong
		case err != nil && len(line) == 0:
			return nil, io.EOF
		}
		return bytes.TrimSpace(line), nil
	}
}
