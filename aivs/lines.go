package aivs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// eachLine calls take with every line of r, without its line feed; ended is
// false for a last line that has none. Only a line feed ends a line. The slice is
// valid during the call.
func eachLine(r io.Reader, limit int, take func(line []byte, ended bool)) error {
	buffered := bufio.NewReaderSize(r, 16<<10)
	var long []byte
	for {
		part, err := buffered.ReadSlice('\n')
		if len(long)+len(part) > limit {
			return fmt.Errorf("a line is longer than %d bytes", limit)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		if n := len(line); n > 0 && line[n-1] == '\n' {
			take(line[:n-1], true)
		} else if n > 0 {
			take(line, false)
		}
		long = long[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
