package redact

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// form is one syntax in which a text assigns a value to a name.
type form struct {
	rule Rules
	sure bool // the syntax alone shows that this is a value, so any value is hidden
	find func(t *formText, name span) (value span)
}

// forms are tried in this order at every sensitive name in a text. The first that finds a value
// hides it. Each returns an empty span where the text around the name does not have its syntax.
var forms = [...]form{
	{RuleURL, true, queryValue},
	{RuleAuthorization, true, credentials},
	{RuleXML, false, elementValue},
	{RuleNameValue, true, pairValue},
	{RuleHeaderList, true, listValue},
	{RuleRepr, true, reprValue},
	{RuleRepr, false, literalValue},
	{RuleYAML, false, yamlValue},
	{RuleAssignment, false, assignedValue},
}

// formRules are the rules that have an entry in forms.
const formRules = RuleURL | RuleAuthorization | RuleXML | RuleNameValue | RuleHeaderList | RuleRepr | RuleYAML | RuleAssignment

// span is a stretch of text.
type span struct{ start, end int }

func (s span) empty() bool { return s.end <= s.start }

func (s span) holds(at int) bool { return s.start <= at && at < s.end }

// none is the empty span: nothing was found.
var none = span{}

// formText is a text that is searched for the forms. The search is linear: each look-ahead is
// bounded, becomes part of the value, or is cached here.
type formText struct {
	text   []byte
	closes []int  // the positions of "</"; nil until first used
	line   span   // the line read last, from where reading began
	run    span   // the unquoted value read last, from where reading began
	stop   string // the bytes that end the unquoted value
}

// redactForms hides the values of all sensitive names in a text that is not JSON.
func (r Rules) redactForms(text []byte) (out []byte, count int) {
	plain, places := text, []int(nil)
	if r.has(RuleUnicode) && bytes.ContainsFunc(text, isDisguise) {
		plain, places = plainText(text)
	}
	t := formText{text: plain}
	copied := 0
	for at := 0; ; {
		name, found := t.nextName(at)
		if !found {
			break
		}
		at = name.end
		value := r.valueOf(&t, name)
		if value.empty() {
			continue
		}
		at = max(at, value.end)
		if string(plain[value.start:value.end]) == Mark {
			continue
		}
		if places != nil {
			value = span{places[value.start], places[value.end]}
		}
		out = append(append(out, text[copied:value.start]...), Mark...)
		copied = value.end
		count++
	}
	if count == 0 {
		return text, 0
	}
	return append(out, text[copied:]...), count
}

// valueOf returns the value of a name, found by the first form that matches the text around it.
func (r Rules) valueOf(t *formText, name span) span {
	text := string(t.text[name.start:name.end])
	for i := range forms {
		f := &forms[i]
		if !r.has(f.rule) {
			continue
		}
		value := f.find(t, name)
		if value.empty() {
			continue
		}
		content := t.text[value.start:value.end]
		if refersToOther(text, content) {
			return none
		}
		if f.sure || isStrong(text) || looksSecret(content) {
			return value
		}
	}
	return none
}

// nextName returns the next sensitive name, with all that belongs to the word: letters, digits,
// and the marks that join them.
func (t *formText) nextName(from int) (name span, found bool) {
	for {
		at := NoRules.nextSign(t.text, from)
		if at < 0 {
			return none, false
		}
		name = span{at, at}
		for name.start > from && isWordByte(t.text[name.start-1]) {
			name.start--
		}
		for name.end < len(t.text) && isWordByte(t.text[name.end]) {
			name.end++
		}
		from = name.end
		if t.at(name.start-1) == '%' { // an encoded character, as in a[token]
			if _, err := hex.DecodeString(string(t.text[name.start : name.start+2])); err == nil {
				name.start += 2
			}
		}
		for strings.IndexByte("-.", t.text[name.start]) >= 0 { // stops at the word at the latest
			name.start++
		}
		for strings.IndexByte("-.", t.text[name.end-1]) >= 0 {
			name.end--
		}
		if isSecretName(string(t.text[name.start:name.end])) {
			return name, true
		}
	}
}

// maxNameBytes is the length of the longest name that is checked. Anything longer is not taken
// for a name.
const maxNameBytes = 128

// isSecretName reports whether a name in a text is that of a secret: it contains one of the words
// as a whole word, or one of the words that are part of no other word.
func isSecretName(name string) bool {
	return len(name) <= maxNameBytes && (namesSensitive(name) || hasUnmistakable(name))
}

// hasUnmistakable reports whether a name contains a word that means a secret at any position, as
// in PGPASSWORD.
func hasUnmistakable(name string) bool {
	lower := fold(name)
	return slices.ContainsFunc(unmistakable[:], func(word string) bool { return strings.Contains(lower, word) })
}

var unmistakable = [...]string{"password", "passwd", "passphrase", "credential", "api_key", "apikey", "api-key"}

// strongBefore matches the words that, before "token" or "key", show that it is a credential.
var strongBefore = regexp.MustCompile(`(?i)(access|auth|refresh|api|secret|private|bearer|session|id|csrf|client|signing|encryption|master|account|shared|deploy)[_. -]?(token|key)`)

// isStrong reports whether a name means a secret regardless of what its value looks like. "key"
// and "token" alone do not: they are common words in prose and in programs.
func isStrong(name string) bool {
	return hasUnmistakable(name) || strongBefore.MatchString(name) || strings.Contains(fold(name), "secret")
}

// looksSecret reports whether a value looks hard to guess.
func looksSecret(value []byte) bool {
	value = value[:min(len(value), 256)]
	if len(value) < 8 || bytes.ContainsAny(value, " \t\n()[]{}") {
		return false
	}
	digits := bytes.ContainsAny(value, "0123456789")
	letters := bytes.ContainsFunc(value, func(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' })
	return digits && letters
}

// literals matches values that contain no secret.
var literals = regexp.MustCompile(`^(?i:none|null|nil|true|false|undefined|\*+|\.+|x{3,}|\.\.\.)$`)

// reference matches a value that refers to another: a variable, a placeholder, a call.
var reference = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`\$\{?[A-Z_][A-Z0-9_]*\}?`, `\$\([^)]*\)?`, `\$\{\{.*`, // of a shell or a template
	`%\(?\w*\)?[sdvq]`, `%[A-Z_]+%`, `\{\{?[\w. ]*\}?\}?`, `<[\w .-]*>?`,
	`[A-Za-z_][\w.]*[(\[].*`, `[&*]?[A-Za-z_]+(?:\.[A-Za-z_]+)+`, // of a program
}, "|") + `)$`)

// refersToOther reports whether the value is not a secret itself: it is a literal such as null, a
// placeholder, or a variable, for example one with the same name.
func refersToOther(name string, value []byte) bool {
	return len(value) <= maxNameBytes && (literals.Match(value) || reference.Match(value) || strings.EqualFold(name[strings.LastIndexByte(name, '.')+1:], string(value)))
}

func isWordByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// at returns the byte at index i; 0 outside the text.
func (t *formText) at(i int) byte {
	if i < 0 || i >= len(t.text) {
		return 0
	}
	return t.text[i]
}

// blanks returns the end of the spaces and tabs at a place.
func (t *formText) blanks(at int) int {
	for t.at(at) == ' ' || t.at(at) == '\t' {
		at++
	}
	return at
}

// lineEnd returns the end of the line that contains a place.
func (t *formText) lineEnd(at int) int {
	if !t.line.holds(at) {
		t.line = span{at, len(t.text)}
		if i := bytes.IndexAny(t.text[at:], "\r\n"); i >= 0 {
			t.line.end = at + i
		}
	}
	return t.line.end
}

// endsLine reports whether only closing marks follow a place, up to the end of its line or of the
// quoted text around it.
func (t *formText) endsLine(at int) bool {
	for strings.IndexByte(closingMarks, t.at(at)) >= 0 {
		at++
	}
	return strings.IndexByte("\x00\r\n\"'`", t.at(t.blanks(at))) >= 0
}

// closingMarks are the marks that end a sentence or close a bracket.
const closingMarks = ".,;:!?)]}"

// word returns the unquoted value at a place. It ends at white space or at one of the bytes in
// stop, and excludes trailing marks that end a sentence or close a bracket.
func (t *formText) word(start int, stop string) span {
	if stop != t.stop || !t.run.holds(start) {
		at := start
		for at < len(t.text) && t.text[at] > ' ' && strings.IndexByte(stop, t.text[at]) < 0 && !t.escapesSpace(at) && !t.separates(at) {
			at++
		}
		t.run, t.stop = span{start, at}, stop
	}
	end, least := t.run.end, start
	if bytes.HasPrefix(t.text[start:], []byte(Mark)) {
		least += len(Mark)
	}
	for end > least && strings.IndexByte(closingMarks, t.text[end-1]) >= 0 {
		end--
	}
	return span{start, end}
}

// escapesSpace reports whether the text at a place is the escape of white space or of a quotation
// mark in a string.
func (t *formText) escapesSpace(at int) bool {
	return t.text[at] == '\\' && strings.IndexByte(`nrt"'\`, t.at(at+1)) >= 0
}

// separates reports whether the comma at a place ends a value: another name with its own value
// follows.
func (t *formText) separates(at int) bool {
	if t.text[at] != ',' {
		return false
	}
	end := at + 1
	for end-at <= maxNameBytes && isWordByte(t.at(end)) {
		end++
	}
	next := t.at(end)
	return end > at+1 && (next == '=' || next == ':')
}

// quotedAt returns the content of the quoted text that opens at a place. The closing mark has as
// many backslashes before it as the opening mark. Where the text is truncated, the content
// extends to its end.
func (t *formText) quotedAt(at int) (content span, found bool) {
	opening := at
	for t.at(at) == '\\' {
		at++
	}
	mark, level := t.at(at), at-opening
	if !isQuotationMark(mark) {
		return none, false
	}
	start := at + 1
	for from := start; ; {
		i := bytes.IndexByte(t.text[from:], mark)
		if i < 0 {
			return span{start, len(t.text)}, true
		}
		from += i + 1
		backslashes := 0
		for t.text[from-2-backslashes] == '\\' { // stops at the opening mark at the latest
			backslashes++
		}
		if backslashes <= level || level == 0 && backslashes%2 == 0 {
			return span{start, from - 1 - min(backslashes, level)}, true
		}
	}
}

func isQuotationMark(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// quotesName reports whether a name is quoted, and returns where its closing mark ends.
func (t *formText) quotesName(name span) (behind int, found bool) {
	mark := t.at(name.start - 1)
	if !isQuotationMark(mark) {
		return 0, false
	}
	at := name.end
	for t.at(at) == '\\' {
		at++
	}
	return at + 1, t.at(at) == mark
}
