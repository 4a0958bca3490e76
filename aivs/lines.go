package aivs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// eachLine calls take with every line of r, without its line feed. ended is false for a last line
// without a line feed. Only a line feed ends a line. The slice is valid only during the call.
func eachLine(r io.Reader, limit int, take func(line []byte, ended bool)) error {
	buffered := bufio.NewReaderSize(r, 16<<10)
	var line []byte
	for {
		part, err := buffered.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return fmt.Errorf("a line is longer than %d bytes", limit)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if content, ended := bytes.CutSuffix(line, []byte("\n")); len(line) > 0 {
			take(content, ended)
		}
		line = line[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
