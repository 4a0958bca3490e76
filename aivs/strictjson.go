package aivs

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/schema"
)

// maxDepth limits how deep objects and arrays of a bundle may be nested. Every reader has a limit
// of its own. A bundle that some reader cannot parse must not be reported as intact by another.
const maxDepth = 500

// readJSON decodes strict JSON text that is not nested deeper than maxDepth. It ignores members
// that into does not name.
func readJSON(text []byte, into any) error {
	if err := checkDepth(text); err != nil {
		return err
	}
	return inWords(json.Unmarshal(text, into))
}

// inWords returns an error about JSON text of the wrong form without the names of Go types.
func inWords(err error) error {
	at, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("unknown member at %q", at.JSONPointer)
	case at.JSONPointer == "":
		return fmt.Errorf("%s, want an object", schema.KindName(at.JSONKind))
	}
	return fmt.Errorf("%s at %q, want another type", schema.KindName(at.JSONKind), at.JSONPointer)
}

// checkDepth refuses JSON text that is nested deeper than maxDepth. It leaves text that is not
// JSON to the decoder.
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
