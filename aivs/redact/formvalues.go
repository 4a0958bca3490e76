package redact

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// This file holds one function for each form of a value in text (see forms).

var (
	// objectBefore matches the text before the name in a parameter of an object: object[, or
	// object%5B.
	objectBefore = regexp.MustCompile(`[\w.%\[\]-]*(?:\[|%5[Bb])$`)
	// bracketBehind matches the text after the name.
	bracketBehind = regexp.MustCompile(`^(?:\]|%5[Dd])`)
)

// queryValue returns the value of a parameter in the query or the fragment of a URL, or in a form
// body: ?name=value, or ?object[name]=value.
func queryValue(t *formText, name span) span {
	whole := name
	if bracket := bracketBehind.Find(t.text[name.end:min(len(t.text), name.end+len("%5D"))]); bracket != nil {
		if object := objectBefore.Find(t.text[max(0, name.start-maxNameBytes):name.start]); object != nil {
			whole = span{name.start - len(object), name.end + len(bracket)}
		}
	}
	begins := strings.IndexByte("?&#", t.at(whole.start-1)) >= 0 || whole != name && whole.start == 0
	if !begins || t.at(whole.end) != '=' {
		return none
	}
	return t.word(whole.end+1, "&#\"'`<>;")
}

// schemes matches the authorization scheme before the credentials. The second group's schemes
// have several credentials, which extend to the end of the line.
var schemes = regexp.MustCompile(`^(?i:(bearer|basic|token|apikey|negotiate|ntlm)|(digest|hawk|aws4-hmac-sha256))[ \t]+`)

// credentials returns the credentials of an Authorization header in text, "Authorization: Bearer
// value", without the scheme. It also returns the value of another header with a dash in its
// name, "X-Api-Key: value", and the text after "Bearer" alone where it looks secret.
func credentials(t *formText, name span) span {
	text := fold(string(t.text[name.start:name.end]))
	at := t.blanks(name.end)
	if text == "bearer" {
		if value := t.word(at, "\"'`<>,;"); at > name.end && looksSecret(t.text[value.start:value.end]) {
			return value
		}
		return none
	}
	isAuthorization := strings.HasSuffix(text, "authorization")
	isHeader := isAuthorization || strings.Contains(text, "-") && at == name.end
	if !isHeader || t.at(at) != ':' && t.at(at) != '=' {
		return none
	}
	assigned := t.at(at) == '='
	at = t.blanks(at + 1)
	if mark := t.at(at); mark == '"' || mark == '\'' {
		at++
	}
	scheme := schemes.FindSubmatchIndex(t.text[at:min(len(t.text), at+maxNameBytes)])
	switch {
	case scheme == nil && assigned:
		return none // see assignedValue
	case scheme == nil:
		value := t.word(at, "\"'`<>")
		if !t.endsLine(value.end) && !looksSecret(t.text[value.start:value.end]) {
			return none // the line is prose
		}
		return value
	case scheme[4] >= 0:
		return trimmedSpan(t.text, span{at + scheme[1], t.lineEnd(at)})
	default:
		return t.word(at+scheme[1], "\"'`<>,;")
	}
}

var (
	// tagBefore matches the text before the name in an opening tag: <, or <prefix:.
	tagBefore = regexp.MustCompile(`<(?:[\w.:-]*:)?$`)
	// tagBehind matches the rest of the tag, unless the element is empty: <name/>.
	tagBehind = regexp.MustCompile(`^(?:[^<>]*[^<>/])?>`)
)

// maxTagBytes limits how far to search for the end of a tag, and for the end of the text where
// the element is truncated.
const maxTagBytes = 1024

// elementValue returns the content of an XML element, <name>value</name>. The end of the text may
// truncate the element.
func elementValue(t *formText, name span) span {
	before := tagBefore.Find(t.text[max(0, name.start-maxNameBytes):name.start])
	if before == nil {
		return none
	}
	behind := tagBehind.Find(t.text[name.end:min(len(t.text), name.end+maxTagBytes)])
	if behind == nil {
		return none
	}
	start := name.end + len(behind)
	closing := slices.Concat([]byte("</"), before[1:], t.text[name.start:name.end])
	for _, at := range t.closesBehind(start) {
		if bytes.HasPrefix(t.text[at:], closing) && !isWordByte(t.at(at+len(closing))) {
			return trimmedSpan(t.text, span{start, at})
		}
	}
	rest := t.text[start:min(len(t.text), start+maxTagBytes)]
	if start+len(rest) == len(t.text) && !bytes.ContainsAny(rest, "< \n") {
		return span{start, len(t.text)} // truncated
	}
	return none
}

// maxCloses is how many closing tags are checked when searching for that of an element.
const maxCloses = 16

// closesBehind returns the positions of the next closing tags.
func (t *formText) closesBehind(start int) []int {
	if t.closes == nil {
		t.closes = []int{}
		for at := 0; ; {
			i := bytes.Index(t.text[at:], []byte("</"))
			if i < 0 {
				break
			}
			t.closes = append(t.closes, at+i)
			at += i + 2
		}
	}
	first, _ := slices.BinarySearch(t.closes, start)
	return t.closes[first:min(len(t.closes), first+maxCloses)]
}

// trimmedSpan returns a span without the white space at its ends.
func trimmedSpan(text []byte, s span) span {
	isBlank := func(r rune) bool { return r <= ' ' }
	content := bytes.TrimLeftFunc(text[s.start:s.end], isBlank)
	start := s.end - len(content)
	return span{start, start + len(bytes.TrimRightFunc(content, isBlank))}
}

var (
	// nameBefore matches the text before the name in a pair: name=" or 'key': '.
	nameBefore = regexp.MustCompile(`(?i)\b(?:name|key|header|field|param|parameter|property|variable|k)\\*["']?\s*(?:[:=]|=>)\s*\\*["']$`)
	// valueBehind matches the text between the name and the value in a pair.
	valueBehind = regexp.MustCompile(`^(?i)\\*["']?[\s,;]*\\*["']?(?:value|val|v)\\*["']?\s*(?:[:=]|=>)\s*`)
)

// pairValue returns the value of a pair in text: name="password" value="…" in a tag, or 'name':
// 'password', 'value': '…' in a structure.
func pairValue(t *formText, name span) span {
	behind, quoted := t.quotesName(name)
	if !quoted || !nameBefore.Match(t.text[max(0, name.start-48):name.start]) {
		return none
	}
	at := valueBehind.FindIndex(t.text[name.end:min(len(t.text), name.end+64)])
	if at == nil {
		return paramValue(t, t.blanks(behind))
	}
	return t.anyValue(name.end + at[1])
}

// maxParamBytes is the longest content of an element that is searched.
const maxParamBytes = 4096

// paramValue returns the content of the element whose tag ends at tagEnd and contains the name:
// <param name="password">value</param>.
func paramValue(t *formText, tagEnd int) span {
	if t.at(tagEnd) != '>' {
		return none
	}
	start := tagEnd + 1
	content, _, found := bytes.Cut(t.text[start:min(len(t.text), start+maxParamBytes)], []byte("<"))
	if !found {
		return none
	}
	return trimmedSpan(t.text, span{start, start + len(content)})
}

// listValue returns the value of a header in a list or a tuple of two: ('Authorization', '…').
func listValue(t *formText, name span) span {
	behind, quoted := t.quotesName(name)
	opening := name.start - 2
	for t.at(opening) == '\\' || t.at(opening) == 'b' || t.at(opening) == 'u' {
		opening--
	}
	if !quoted || t.at(opening) != '(' && t.at(opening) != '[' || t.at(t.blanks(behind)) != ',' {
		return none
	}
	at := t.blanks(t.blanks(behind) + 1)
	if t.at(at) == 'b' || t.at(at) == 'u' {
		at++
	}
	value, found := t.quotedAt(at)
	if !found {
		return none
	}
	closing := value.end
	for t.at(closing) == '\\' {
		closing++
	}
	if end := t.at(t.blanks(closing + 1)); end != ')' && end != ']' && closing < len(t.text) {
		return none
	}
	return value
}

// reprValue returns the value of a quoted name, in the syntax that Python and other languages
// print: 'name': value, or 'name' => value.
func reprValue(t *formText, name span) span {
	behind, quoted := t.quotesName(name)
	if !quoted {
		return none
	}
	at := t.blanks(behind)
	switch {
	case t.at(at) == ':':
		at++
	case t.at(at) == '=' && t.at(at+1) == '>':
		at += 2
	default:
		return none
	}
	return t.anyValue(t.blanks(at))
}

// literalValue returns the quoted value of an unquoted name: {name: 'value'}.
func literalValue(t *formText, name span) span {
	if t.at(name.end) != ':' {
		return none
	}
	value, _ := t.quotedAt(t.blanks(name.end + 1))
	return value
}

// quotePrefix matches the letters before a Python quotation mark: b'…', u'…', rb'…'.
var quotePrefix = regexp.MustCompile(`^[A-Za-z]*`)

// anyValue returns the value at a place within a structure: the content of a quoted text, a whole
// list or structure, or the text up to the next comma or bracket.
func (t *formText) anyValue(start int) span {
	prefix := quotePrefix.Find(t.text[start:min(len(t.text), start+2)])
	if value, found := t.quotedAt(start + len(prefix)); found {
		return value
	}
	open := 0
	for at := start; at < len(t.text); at++ {
		switch c := t.text[at]; {
		case c == '\'' || c == '"':
			value, _ := t.quotedAt(at)
			at = value.end
		case c == '{' || c == '[' || c == '(':
			open++
		case open > 0 && (c == '}' || c == ']' || c == ')'):
			if open--; open == 0 {
				return span{start, at + 1}
			}
		case open == 0 && strings.IndexByte(",}])\r\n", c) >= 0:
			return trimmedSpan(t.text, span{start, at})
		}
	}
	return trimmedSpan(t.text, span{start, len(t.text)})
}

var (
	// yamlBefore matches the text allowed in a line before a name.
	yamlBefore = regexp.MustCompile(`^[ \t]*(?:-[ \t]+)*["']?$`)
	// yamlLine matches a line that assigns a value to a name.
	yamlLine = regexp.MustCompile(`^[ \t]*(?:-[ \t]+)*["']?[\w.-]+["']?[ \t]*:(?:\s|$)`)
	// blockMark matches the mark of a value that follows on the next lines.
	blockMark = regexp.MustCompile(`^(?:[|>][+-]?[1-9]?[+-]?[ \t]*)?$`)
)

// yamlValue returns the value of a line of YAML, name: value, with its continuation lines.
func yamlValue(t *formText, name span) span {
	before := t.text[max(0, name.start-maxNameBytes):name.start]
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	lineStart := name.start - len(before)
	if !yamlBefore.Match(before) || lineStart > 0 && t.text[lineStart-1] != '\n' {
		return none
	}
	colon := name.end
	if behind, quoted := t.quotesName(name); quoted {
		colon = behind
	}
	colon = t.blanks(colon)
	if next := t.at(colon + 1); t.at(colon) != ':' || next > ' ' {
		return none
	}
	value := span{t.blanks(colon + 1), t.lineEnd(colon)}
	content := t.text[value.start:value.end]
	if blockMark.Match(content) {
		if !isStrong(string(t.text[name.start:name.end])) {
			return none
		}
		return trimmedSpan(t.text, span{value.start, t.blockEnd(value.end, len(before))})
	}
	if quoted, found := t.quotedAt(value.start); found {
		return quoted
	}
	content, _, _ = bytes.Cut(content, []byte(" #"))
	value = trimmedSpan(t.text, span{value.start, value.start + len(content)})
	if strings.IndexByte(",;{(", t.at(value.end-1)) >= 0 {
		return none // the line is part of a program
	}
	words := bytes.ContainsAny(t.text[value.start:value.end], " \t")
	if words && !t.isYAML(lineStart, value.end) && !strings.Contains(fold(string(t.text[name.start:name.end])), "passphrase") {
		return none // the line is prose
	}
	return value
}

// blockEnd returns the end of the following lines that are indented deeper than indent, including
// the blank lines after them.
func (t *formText) blockEnd(at, indent int) int {
	for at < len(t.text) {
		start := t.lineBreaks(at)
		first := t.blanks(start)
		next := t.lineEnd(first)
		if first-start <= indent && next > first {
			break
		}
		at = next
	}
	return at
}

// lineBreaks returns the end of the line breaks at a place.
func (t *formText) lineBreaks(at int) int {
	for t.at(at) == '\r' || t.at(at) == '\n' {
		at++
	}
	return at
}

// isYAML reports whether the line before or after a value also assigns a value to a name.
func (t *formText) isYAML(lineStart, end int) bool {
	before := bytes.TrimRight(t.text[max(0, lineStart-maxNameBytes):lineStart], "\r\n")
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	next := t.lineBreaks(t.lineEnd(end))
	return yamlLine.Match(before) || yamlLine.Match(t.text[next:min(len(t.text), next+maxNameBytes)])
}

// assignedValue returns the value of an assignment in text: name=value, name = "value", name :=
// value, --name value, -name value.
func assignedValue(t *formText, name span) span {
	at := t.blanks(name.end)
	if t.at(at) == ':' && t.at(at+1) == '=' {
		at++
	}
	if t.at(at) != '=' {
		if t.at(name.start-1) == '-' && at > name.end { // a command-line option
			if value := t.word(at, "\"'`<>&;|"); looksSecret(t.text[value.start:value.end]) {
				return value
			}
		}
		return none
	}
	if next := t.at(at + 1); next == '=' || next == '~' {
		return none
	}
	spaced := at > name.end
	at = t.blanks(at + 1)
	if value, found := t.quotedAt(at); found {
		return value
	}
	value := t.word(at, "\"'`<>&;")
	if spaced && !t.endsLine(value.end) {
		return none // an expression, or prose
	}
	return value
}
