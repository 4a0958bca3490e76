package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Profile is one of the two sets of rules for judging.
type Profile string

// The two profiles.
const (
	ProfileSpec      Profile = "spec"
	ProfileReference Profile = "reference"
)

// MaxLineBytes is the maximum length of a request.
const MaxLineBytes = 64 << 20

// Options configures Run.
type Options struct {
	Profile Profile
	Now     time.Time // the time of judgement, where a request has none
}

// operation computes the result of one kind of request.
type operation func(request) (any, error)

// Run writes an answer to w for every line of r, and returns the first error of reading or
// writing. Blank lines are skipped.
func Run(r io.Reader, w io.Writer, o Options) error {
	operations, ok := map[Profile]map[string]operation{ProfileSpec: specOperations, ProfileReference: referenceOperations}[o.Profile]
	if !ok {
		return fmt.Errorf("profile %q: want %s or %s", o.Profile, ProfileSpec, ProfileReference)
	}
	in, out := bufio.NewReaderSize(r, 1<<16), bufio.NewWriter(w)
	for number := 1; ; number++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return flush(out)
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return fmt.Errorf("read request line %d: %w", number, err)
		}
		if err == nil && len(line) == 0 {
			continue
		}
		if err := write(out, reply(line, number, err, operations, o.Now)); err != nil {
			return err
		}
		if in.Buffered() == 0 { // the caller may wait for this answer before it sends the next request
			if err := flush(out); err != nil {
				return err
			}
		}
	}
}

func flush(out *bufio.Writer) error {
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// result is one line of output. It has exactly one of Result and Error.
type result struct {
	ID     json.RawMessage `json:"id"`
	Op     string          `json:"op"`
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// reply answers one line; unread is the error if the line could not be read.
func reply(line []byte, number int, unread error, operations map[string]operation, now time.Time) result {
	if unread != nil {
		return result{ID: nullJSON, Error: fmt.Sprintf("line %d: %v", number, unread)}
	}
	request, err := parse(line, now)
	answer := result{ID: nullJSON, Op: request.op}
	if id, ok := request.members["id"]; ok {
		answer.ID = id
	}
	if err != nil {
		answer.Error = fmt.Sprintf("line %d: %v", number, err)
		return answer
	}
	operate, ok := operations[request.op]
	if !ok {
		known := slices.Sorted(maps.Keys(operations))
		answer.Error = fmt.Sprintf("op %q is none of %s", request.op, strings.Join(known, ", "))
		return answer
	}
	found, err := operate(request)
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	if answer.Result, err = encode(found); err != nil {
		answer.Error = fmt.Sprintf("encode result: %v", err)
		return answer
	}
	answer.OK = true
	return answer
}

var nullJSON = json.RawMessage("null")

// encode returns compact JSON without HTML escapes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func write(out *bufio.Writer, answer result) error {
	line, err := encode(answer)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

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
