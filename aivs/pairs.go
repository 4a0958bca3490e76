package aivs

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// This file finds secrets that no name of a member gives away: pairs of a name and a
// value (RuleNameValue), and lists of headers (RuleHeaderList). It looks ahead in JSON
// text that may turn out to be none.

// maxPairMembers is how many members of an object are looked at for a name.
const maxPairMembers = 8

// hasSecretName reports whether the object whose members follow has one that says the
// name of a secret, such as "name": "X-Api-Key". It looks no further than the first
// member that is an object or an array.
func (r Rules) hasSecretName(members []byte) bool {
	for range maxPairMembers {
		name, rest, found := cutText(members)
		if !found {
			return false
		}
		rest, found = bytes.CutPrefix(skipBlanks(rest), []byte(":"))
		rest = skipBlanks(rest)
		if !found || len(rest) == 0 || rest[0] == '{' || rest[0] == '[' {
			return false
		}
		if value, behind, isText := cutText(rest); isText {
			if isNameName(name) && r.names(value) {
				return true
			}
			rest = behind
		}
		comma := bytes.IndexAny(rest, ",}")
		if comma < 0 || rest[comma] == '}' {
			return false
		}
		members = rest[comma+1:]
	}
	return false
}

// isNameName reports whether the value of a member of that name is a name.
func isNameName(name []byte) bool {
	switch strings.ToLower(string(name[:min(len(name), 10)])) {
	case "name", "key", "k", "header", "field", "param", "parameter", "property", "variable":
		return true
	}
	return false
}

// isValueName reports whether the value of a member of that name is what another names.
func isValueName(name string) bool {
	switch strings.ToLower(name) {
	case "value", "val", "v", "values":
		return true
	}
	return false
}

// namesHeaders reports whether the value under a name is headers.
func namesHeaders(name string) bool {
	return len(name) <= maxNameBytes && strings.Contains(strings.ToLower(name), "header")
}

// names reports whether a JSON string without its quotation marks is the name of a
// secret, and nothing but a name.
func (r Rules) names(text []byte) bool {
	if len(text) == 0 || len(text) > maxNameBytes {
		return false
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		unquoted, err := jsontext.AppendUnquote(nil, append(append([]byte{'"'}, text...), '"'))
		if err != nil {
			return false
		}
		text = unquoted
	}
	name := string(text)
	if r.has(RuleUnicode) {
		name = plainName(name)
	}
	prose := strings.ContainsAny(name, "=:?!,") || strings.Contains(name, " ") && !isStrong(name)
	return isSecretName(name) && !prose
}

// isEmptyValue reports whether a value is none: there is nothing to hide.
func isEmptyValue(value []byte) bool {
	switch string(value) {
	case "null", "true", "false", `""`, "{}", "[]":
		return true
	}
	return false
}

// isPairOfTexts reports whether the array whose elements follow has two, both texts.
func isPairOfTexts(elements []byte) bool {
	_, rest, found := cutText(elements)
	if !found {
		return false
	}
	rest, found = bytes.CutPrefix(skipBlanks(rest), []byte(","))
	if !found {
		return false
	}
	_, rest, found = cutText(rest)
	return found && bytes.HasPrefix(skipBlanks(rest), []byte("]"))
}

// nextText returns the JSON string that follows, without its quotation marks; nil where
// something else does.
func nextText(rest []byte) []byte {
	text, _, _ := cutText(bytes.TrimLeft(rest, " \t\r\n,"))
	return text
}

// cutText cuts off the JSON string that a text begins with, perhaps behind white space.
func cutText(text []byte) (content, rest []byte, found bool) {
	text = skipBlanks(text)
	if len(text) == 0 || text[0] != '"' {
		return nil, text, false
	}
	closing, found := nextQuote(text, 1, 0)
	if !found {
		return nil, text, false
	}
	return text[1:closing.start], text[closing.end:], true
}

func skipBlanks(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }
