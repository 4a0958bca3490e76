package redact

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// This file finds secrets that the name of a member does not show: pairs of a name and a value
// (RuleNameValue), and lists of headers (RuleHeaderList). It looks ahead in text that may turn
// out not to be JSON.

// maxPairMembers is how many members of an object are searched for a name.
const maxPairMembers = 8

// hasSecretName reports whether the object whose members follow has a member whose value is the
// name of a secret, such as "name": "X-Api-Key". It stops at the first member that is an object
// or an array.
func (r Rules) hasSecretName(members []byte) bool {
	for range maxPairMembers {
		name, rest := cutText(members)
		rest, found := bytes.CutPrefix(rest, []byte(":"))
		value, rest := cutText(rest)
		if !found || bytes.HasPrefix(rest, []byte("{")) || bytes.HasPrefix(rest, []byte("[")) {
			return false
		}
		if len(name) <= len("parameter") && slices.Contains(nameNames, strings.ToLower(string(name))) && r.names(value) {
			return true
		}
		comma := bytes.IndexAny(rest, ",}")
		if comma < 0 || rest[comma] == '}' {
			return false
		}
		members = rest[comma+1:]
	}
	return false
}

// nameNames are the names of members that hold the name of a pair, valueNames of those that hold
// its value.
var (
	nameNames  = []string{"name", "key", "k", "header", "field", "param", "parameter", "property", "variable"}
	valueNames = []string{"value", "val", "v", "values"}
)

// namesHeaders reports whether the value of a member called name is a set of headers.
func namesHeaders(name string) bool {
	return len(name) <= maxNameBytes && strings.Contains(strings.ToLower(name), "header")
}

// names reports whether a JSON string without its quotation marks is only the name of a secret.
func (r Rules) names(text []byte) bool {
	unquoted, err := jsontext.AppendUnquote(nil, slices.Concat([]byte{'"'}, text, []byte{'"'}))
	name := string(unquoted)
	if r.has(RuleUnicode) {
		name = plainName(name)
	}
	return err == nil && isSecretName(name) && !strings.ContainsAny(name, "=:?!,") && (!strings.Contains(name, " ") || isStrong(name))
}

// emptyValues are the values in which there is nothing to hide.
var emptyValues = []string{"null", "true", "false", `""`, "{}", "[]"}

// isPairOfTexts reports whether the array whose elements follow has exactly two, both strings.
func isPairOfTexts(elements []byte) bool {
	_, rest := cutText(elements)
	rest, found := bytes.CutPrefix(rest, []byte(","))
	_, rest = cutText(rest)
	return found && bytes.HasPrefix(rest, []byte("]"))
}

// cutText removes the JSON string at the beginning of a text, with the white space around it, and
// returns its content and the rest. Where the text begins with anything else, the content is nil
// and the rest still has it.
func cutText(text []byte) (content, rest []byte) {
	text = skipBlanks(text)
	if !bytes.HasPrefix(text, []byte{'"'}) {
		return nil, text
	}
	closing, found := nextQuote(text, 1, 0)
	if !found {
		return nil, text
	}
	return text[1:closing.start], skipBlanks(text[closing.end:])
}

func skipBlanks(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }
