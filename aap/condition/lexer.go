package condition

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline/plumbline/schema"
)

// SyntaxError is an error in an expression, with its place.
type SyntaxError struct {
	Column  int // of the offending character, counted in characters from 1
	Message string
}

// Error returns the column and the problem.
func (e *SyntaxError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Message) }

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenText
	tokenNumber
	tokenOperator
	tokenOpen
	tokenClose
	tokenComma
)

type token struct {
	kind tokenKind
	text string // of a tokenText: without quotes and escapes
	at   int    // byte offset
}

// String returns a token for a message.
func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "the end"
	case tokenText:
		return "a text"
	}
	return "`" + schema.Clip(t.text, excerpt) + "`"
}

// excerpt is how many bytes of a text a message contains.
const excerpt = 64

type lexer struct {
	source string
	at     int
}

func (l *lexer) fail(at int, message string, args ...any) *SyntaxError {
	return &SyntaxError{
		Column:  utf8.RuneCountInString(l.source[:at]) + 1,
		Message: fmt.Sprintf(message, args...),
	}
}

func (l *lexer) next() (token, error) {
	l.at += len(l.rest()) - len(strings.TrimLeftFunc(l.rest(), unicode.IsSpace))
	if l.rest() == "" {
		return token{at: l.at}, nil
	}
	switch c := l.rest()[0]; {
	case c == '(':
		return l.take(tokenOpen, 1), nil
	case c == ')':
		return l.take(tokenClose, 1), nil
	case c == ',':
		return l.take(tokenComma, 1), nil
	case c == '"' || c == '\'':
		return l.text(c)
	case strings.IndexByte("<>=!", c) >= 0:
		return l.operator()
	case c == '-' || isDigit(c):
		return l.number()
	}
	return l.name()
}

func (l *lexer) rest() string { return l.source[l.at:] }

func (l *lexer) take(kind tokenKind, length int) token {
	t := token{kind: kind, text: l.rest()[:length], at: l.at}
	l.at += length
	return t
}

func (l *lexer) operator() (token, error) {
	for _, op := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if strings.HasPrefix(l.rest(), op) {
			return l.take(tokenOperator, len(op)), nil
		}
	}
	return token{}, l.fail(l.at, "`%c` is not an operator: the operators are == != < <= > >=", l.rest()[0])
}

func (l *lexer) text(quote byte) (token, error) {
	start := l.at
	var b strings.Builder
	for i := start + 1; i < len(l.source); i++ {
		c := l.source[i]
		if c == quote {
			l.at = i + 1
			return token{kind: tokenText, text: b.String(), at: start}, nil
		}
		if c == '\\' && i+1 < len(l.source) && strings.IndexByte(`\"'`, l.source[i+1]) >= 0 {
			i++
			c = l.source[i]
		}
		b.WriteByte(c)
	}
	return token{}, l.fail(start, "the text that begins here has no closing quote")
}

// number reads -?digits[.digits][(e|E)[sign]digits].
func (l *lexer) number() (token, error) {
	s := l.rest()
	n := decimalLength(s)
	next, _ := utf8.DecodeRuneInString(s[n:])
	if n == 0 || next == '.' || isNameRune(next) {
		return token{}, l.fail(l.at, "a number such as -1.5 is expected here")
	}
	return l.take(tokenNumber, n), nil
}

// decimalLength returns the length of the decimal number at the start of s, 0 if there is none.
func decimalLength(s string) int {
	n := 0
	if strings.HasPrefix(s, "-") {
		n = 1
	}
	whole := digits(s[n:])
	if whole == 0 {
		return 0
	}
	n += whole
	if strings.HasPrefix(s[n:], ".") {
		if fraction := digits(s[n+1:]); fraction > 0 {
			n += 1 + fraction
		}
	}
	exponent := s[n:]
	if exponent == "" || exponent[0]|0x20 != 'e' {
		return n
	}
	if exponent = exponent[1:]; exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
		exponent = exponent[1:]
	}
	if power := digits(exponent); power > 0 {
		return len(s) - len(exponent) + power
	}
	return n
}

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// name reads a field reference or a word of the language.
func (l *lexer) name() (token, error) {
	for n := 0; ; n++ {
		part := l.rest()[n:]
		switch first, _ := utf8.DecodeRuneInString(part); {
		case isNameStart(first):
		case n == 0:
			return token{}, l.fail(l.at, "%q has no meaning in a condition", first)
		default:
			return token{}, l.fail(l.at+n, "a field name is expected here")
		}
		after := strings.TrimLeftFunc(part, isNameRune)
		n += len(part) - len(after)
		if !strings.HasPrefix(after, ".") {
			return l.take(tokenName, n), nil
		}
	}
}

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isNameRune(r rune) bool { return isNameStart(r) || r == '-' || unicode.IsDigit(r) }
