package aivs

import (
	"bytes"
	"slices"
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
		name, rest := cutText(members)
		rest, found := bytes.CutPrefix(rest, []byte(":"))
		value, rest := cutText(rest)
		if !found || bytes.HasPrefix(rest, []byte("{")) || bytes.HasPrefix(rest, []byte("[")) {
			return false
		}
		if isNameName(name) && r.names(value) {
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
	unquoted, err := jsontext.AppendUnquote(nil, slices.Concat([]byte{'"'}, text, []byte{'"'}))
	name := string(unquoted)
	if r.has(RuleUnicode) {
		name = plainName(name)
	}
	return err == nil && isSecretName(name) && !strings.ContainsAny(name, "=:?!,") && (!strings.Contains(name, " ") || isStrong(name))
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
	_, rest := cutText(elements)
	rest, found := bytes.CutPrefix(rest, []byte(","))
	_, rest = cutText(rest)
	return found && bytes.HasPrefix(rest, []byte("]"))
}

// nextText returns the JSON string that follows, without its quotation marks; nil where
// something else does.
func nextText(rest []byte) []byte {
	text, _ := cutText(bytes.TrimLeft(rest, " \t\r\n,"))
	return text
}

// cutText cuts off the JSON string that a text begins with, and white space before and
// behind it. Where something else begins there, it stays, and the content is nil.
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
