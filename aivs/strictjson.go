package aivs

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
)

// maxDepth is how many objects and arrays of a bundle may lie in one another.
// Readers end somewhere, each at a depth of its own; what one of them cannot read
// is not for another to call whole.
const maxDepth = 500

// readJSON decodes strict JSON text that is not nested too deep. Members that into
// does not name are ignored.
func readJSON(text []byte, into any) error {
	if err := checkDepth(text); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// checkDepth refuses JSON text that is nested deeper than maxDepth. What is no JSON
// is left to its decoder.
func checkDepth(text []byte) error {
	if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) <= maxDepth {
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("nested deeper than %d levels", maxDepth)
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return nil
}
