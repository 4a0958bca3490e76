package aivs

import (
	"bytes"
	"regexp"
	"sort"
	"strings"
)

// This file has the forms of a value in text, a function each (see forms).

// queryValue is that of a parameter in the query or the fragment of a URL, or in a form:
// ?name=value, or ?object[name]=value.
func queryValue(t *formText, name span) span {
	whole := name
	if before, behind := t.bracket(name.start, -1, '[', "%5b"), t.bracket(name.end, 1, ']', "%5d"); before != 0 && behind != 0 {
		whole = span{name.start - before, name.end + behind}
		for name.start-whole.start <= maxNameBytes && (isWordByte(t.at(whole.start-1)) || strings.IndexByte("[]%", t.at(whole.start-1)) >= 0) {
			whole.start--
		}
	}
	if t.at(whole.end) != '=' || strings.IndexByte("?&#", t.at(whole.start-1)) < 0 && (whole == name || whole.start > 0) {
		return none
	}
	return t.word(whole.end+1, "&#\"'`<>;")
}

// bracket returns how many bytes a bracket takes before a place (direction -1) or behind
// it (1), as it is or as a URL has it; 0 where there is none.
func (t *formText) bracket(at, direction int, plain byte, encoded string) int {
	for _, form := range [...]string{string(plain), encoded} {
		from := at + min(direction, 0)*len(form)
		if from >= 0 && from+len(form) <= len(t.text) && strings.EqualFold(string(t.text[from:from+len(form)]), form) {
			return len(form)
		}
	}
	return 0
}

// schemes are the ways of authorization whose name stands before the credentials; those
// that take several go on to the end of the line.
var schemes = regexp.MustCompile(`^(?i:(bearer|basic|token|apikey|negotiate|ntlm)|(digest|hawk|aws4-hmac-sha256))[ \t]+`)

// credentials are those of a header in text, "Authorization: Bearer value", behind the
// scheme; of another header with a dash in its name, "X-Api-Key: value"; or behind
// "Bearer" alone where they look secret.
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
			return none // prose goes on
		}
		return value
	case scheme[4] >= 0:
		return trimmedSpan(t.text, span{at + scheme[1], t.lineEnd(at)})
	default:
		return t.word(at+scheme[1], "\"'`<>,;")
	}
}

// elementValue is the content of an XML element, <name>value</name>, or of one that the
// end of the text cuts off.
func elementValue(t *formText, name span) span {
	prefix := name.start
	for t.at(prefix-1) == ':' || prefix < name.start && isWordByte(t.at(prefix-1)) && name.start-prefix < maxNameBytes {
		prefix--
	}
	if t.at(prefix-1) != '<' {
		return none
	}
	tag := bytes.IndexAny(t.text[name.end:min(len(t.text), name.end+1024)], "<>")
	if tag < 0 || t.text[name.end+tag] == '<' || t.at(name.end+tag-1) == '/' {
		return none
	}
	start := name.end + tag + 1
	closing := append([]byte("</"), t.text[prefix:name.end]...)
	for _, at := range t.closesBehind(start) {
		if bytes.HasPrefix(t.text[at:], closing) && !isWordByte(t.at(at+len(closing))) {
			return trimmedSpan(t.text, span{start, at})
		}
	}
	if rest := t.text[start:]; bytes.IndexAny(rest[:min(len(rest), 1024)], "< \n") < 0 && len(rest) < 1024 {
		return span{start, len(t.text)} // cut off
	}
	return none
}

// maxCloses is how many closing tags are looked at for that of an element.
const maxCloses = 16

// closesBehind returns where the next closing tags stand.
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
	first := sort.SearchInts(t.closes, start)
	return t.closes[first:min(len(t.closes), first+maxCloses)]
}

// trimmedSpan is a span without the white space at its ends.
func trimmedSpan(text []byte, s span) span {
	for s.start < s.end && text[s.start] <= ' ' {
		s.start++
	}
	for s.start < s.end && text[s.end-1] <= ' ' {
		s.end--
	}
	return s
}

var (
	// nameBefore matches what stands before the name in a pair: name=" or 'key': '.
	nameBefore = regexp.MustCompile(`(?i)\b(?:name|key|header|field|param|parameter|property|variable|k)\\*["']?\s*(?:[:=]|=>)\s*\\*["']$`)
	// valueBehind matches what stands between the name and the value in a pair.
	valueBehind = regexp.MustCompile(`^(?i)\\*["']?[\s,;]*\\*["']?(?:value|val|v)\\*["']?\s*(?:[:=]|=>)\s*`)
)

// pairValue is the value of a pair in text: name="password" value="…" in a tag, or
// 'name': 'password', 'value': '…' in a structure.
func pairValue(t *formText, name span) span {
	behind, quoted := t.quotesName(name)
	if !quoted || !nameBefore.Match(t.text[max(0, name.start-48):name.start]) {
		return none
	}
	at := valueBehind.FindIndex(t.text[name.end:min(len(t.text), name.end+64)])
	if at == nil {
		if tag := t.blanks(behind); t.at(tag) == '>' { // <param name="password">…</param>
			if i := bytes.IndexByte(t.text[tag+1:min(len(t.text), tag+1+4096)], '<'); i >= 0 {
				return trimmedSpan(t.text, span{tag + 1, tag + 1 + i})
			}
		}
		return none
	}
	return t.anyValue(name.end + at[1])
}

// listValue is the value of a header in a list or a tuple of two: ('Authorization', '…').
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

// reprValue is the value of a quoted name, as Python and others write a structure:
// 'name': value, or 'name' => value.
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

// literalValue is the quoted value of a name that is not quoted: {name: 'value'}.
func literalValue(t *formText, name span) span {
	if t.at(name.end) != ':' {
		return none
	}
	value, _ := t.quotedAt(t.blanks(name.end + 1))
	return value
}

// anyValue is the value at a place within a structure: the content of a quoted text, a
// whole list or structure, or what stands before the next comma or bracket.
func (t *formText) anyValue(at int) span {
	start := at
	for t.at(at)|0x20 >= 'a' && t.at(at)|0x20 <= 'z' && at-start < 2 {
		at++ // b'…', u'…', rb'…'
	}
	if value, found := t.quotedAt(at); found {
		return value
	}
	if bytes.HasPrefix(t.text[start:], []byte(redactedText)) {
		return span{start, start + len(redactedText)}
	}
	open := 0
	for at = start; at < len(t.text); at++ {
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
	// yamlBefore matches what may stand in a line before a name.
	yamlBefore = regexp.MustCompile(`^[ \t]*(?:-[ \t]+)*["']?$`)
	// yamlLine matches a line that gives a value to a name.
	yamlLine = regexp.MustCompile(`^[ \t]*(?:-[ \t]+)*["']?[\w.-]+["']?:(?:[ \t]|$)`)
	// blockMark matches what begins a text of several lines.
	blockMark = regexp.MustCompile(`^[|>][+-]?[1-9]?[+-]?[ \t]*$`)
)

// yamlValue is that of a line of YAML: name: value, with the lines that belong to it.
func yamlValue(t *formText, name span) span {
	lineStart := bytes.LastIndexByte(t.text[max(0, name.start-maxNameBytes):name.start], '\n') + 1 + max(0, name.start-maxNameBytes)
	if !yamlBefore.Match(t.text[lineStart:name.start]) || lineStart > 0 && t.text[lineStart-1] != '\n' {
		return none
	}
	colon := name.end
	if mark := t.at(name.start - 1); (mark == '"' || mark == '\'') && t.at(colon) == mark {
		colon++
	}
	if next := t.at(colon + 1); t.at(colon) != ':' || next > ' ' {
		return none
	}
	value := span{t.blanks(colon + 1), t.lineEnd(colon + 1)}
	value.start = min(value.start, value.end)
	content := t.text[value.start:value.end]
	if len(content) == 0 || len(content) <= maxNameBytes && blockMark.Match(content) {
		if !isStrong(string(t.text[name.start:name.end])) {
			return none
		}
		indent := name.start - lineStart
		return trimmedSpan(t.text, span{value.start, t.blockEnd(value.end, indent)})
	}
	if quoted, found := t.quotedAt(value.start); found {
		return quoted
	}
	value = trimmedSpan(t.text, span{value.start, value.start + commentStart(content)})
	if last := t.at(value.end - 1); last == ',' || last == ';' || last == '{' || last == '(' {
		return none // a program
	}
	words := bytes.ContainsAny(t.text[value.start:value.end], " \t")
	if words && !t.isYAML(lineStart, value.end) && !strings.Contains(fold(string(t.text[name.start:name.end])), "passphrase") {
		return none // prose
	}
	return value
}

// commentStart returns where the comment of a value begins, or where it ends.
func commentStart(value []byte) int {
	if i := bytes.Index(value, []byte(" #")); i >= 0 {
		return i
	}
	return len(value)
}

// blockEnd returns the end of the lines behind a place that are indented deeper.
func (t *formText) blockEnd(at, indent int) int {
	end := at
	for at < len(t.text) {
		start := at
		for t.at(start) == '\r' || t.at(start) == '\n' {
			start++
		}
		first := t.blanks(start)
		next := t.lineEnd(first)
		if first-start <= indent && next > first || start == at {
			break
		}
		if next > first {
			end = next
		}
		at = next
	}
	return end
}

// isYAML reports whether the line before or behind a value gives a value to a name, too.
func (t *formText) isYAML(lineStart, end int) bool {
	before := bytes.TrimRight(t.text[max(0, lineStart-maxNameBytes):lineStart], "\r\n")
	before = before[bytes.LastIndexByte(before, '\n')+1:]
	next := t.lineEnd(end)
	for t.at(next) == '\r' || t.at(next) == '\n' {
		next++
	}
	behind := t.text[next:min(len(t.text), next+maxNameBytes)]
	return yamlLine.Match(before) || yamlLine.Match(firstLine(behind))
}

// firstLine is a text up to its first line break.
func firstLine(text []byte) []byte {
	if i := bytes.IndexAny(text, "\r\n"); i >= 0 {
		return text[:i]
	}
	return text
}

// assignedValue is that of an assignment in text: name=value, name = "value",
// name := value, --name value.
func assignedValue(t *formText, name span) span {
	at := t.blanks(name.end)
	if t.at(at) == ':' && t.at(at+1) == '=' {
		at++
	}
	if t.at(at) != '=' {
		if t.at(name.start-1) == '-' && t.at(name.start-2) == '-' && at > name.end { // an option
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
