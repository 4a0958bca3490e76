package main

import (
	"regexp"
	"strings"
	"unicode"
)

// sqlToken matches the tokens of a query: comments, quoted texts and names, words, and
// single characters.
var sqlToken = regexp.MustCompile(`(?s)--[^\n]*|#[ !][^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|` + "`(?:[^`\\\\]|\\\\.)*`" + `|\w+|\S`)

// outputClause returns the clause of a query that determines the format or the destination of
// its result: FORMAT at its end, or INTO OUTFILE. Only ClickHouse's own client executes them.
func outputClause(query string) string {
	var tokens []string
	depth := 0
	for _, token := range sqlToken.FindAllString(query, -1) {
		switch {
		case strings.HasPrefix(token, "--"), strings.HasPrefix(token, "/*"), len(token) > 1 && token[0] == '#', token == ";":
		case token == "(" || token == "[":
			depth++
		case token == ")" || token == "]":
			depth--
			tokens = append(tokens, token)
		case depth == 0:
			tokens = append(tokens, token)
		}
	}
	for i := 1; i < len(tokens)-1; i++ {
		word, next := strings.ToUpper(tokens[i]), tokens[i+1]
		last := i+2 == len(tokens) || strings.EqualFold(tokens[i+2], "SETTINGS")
		if word == "FORMAT" && last && isWord(next) || word == "INTO" && strings.EqualFold(next, "OUTFILE") {
			return word + " " + next
		}
	}
	return ""
}

// isWord reports whether a token is a word, which can be the name of a format.
func isWord(token string) bool {
	return strings.IndexFunc(token, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
}
