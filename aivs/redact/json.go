package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/aivs/pyjson"
)

// Mark is the text of the JSON string that replaces a sensitive value of any type (draft section
// 3.3).
const Mark = "[REDACTED]"

// scope selects the rule for the names within a value.
type scope int

const (
	elsewhere scope = iota // a name is sensitive if it contains a word as a whole word
	inInputs               // a name is sensitive if it contains one of the draft's substrings
)

// hides reports whether the value of a member with this name is hidden.
func (s scope) hides(name string) bool {
	if !NoRules.mayApply([]byte(name)) {
		return false
	}
	if s == inInputs {
		return holdsSensitive(name)
	}
	return namesSensitive(name)
}

// below returns the scope of the value of a member with this name.
func (s scope) below(name string) scope {
	if name == "inputs" || name == "parameters" {
		return inInputs
	}
	return s
}

// Inputs redacts the inputs of an action (draft section 3.3). Under every name that contains one
// of the ten substrings the value becomes "[REDACTED]", at any depth, also inside strings that
// are JSON text. The rules of the set hide more. raw must be valid JSON. All bytes outside the
// replaced values are kept. Inputs returns the number of values replaced, and raw itself when
// that is 0.
func (r Rules) Inputs(raw []byte) ([]byte, Count, error) { return r.redact(raw, inInputs, 0) }

// Record redacts a whole record. It treats the members named "inputs" and "parameters", at any
// depth, as Inputs does. Everywhere else it hides a value whose name contains one of the words as
// a whole word ("api_key" and "accessToken" do, "max_tokens" does not). It also redacts inside
// strings and names. See Inputs for its argument and results.
func (r Rules) Record(raw []byte) ([]byte, Count, error) { return r.redact(raw, elsewhere, 0) }

// Attributes redacts a record of OpenTelemetry in JSON, where objects {"key": …, "value": …} are attributes: as Record does, but
// a member "key" of the record itself is the name of an attribute, and stays. The value of an attribute with the name of a
// secret is hidden by RuleNameValue.
func (r Rules) Attributes(raw []byte) ([]byte, Count, error) { return r.walk(raw, elsewhere, 0, "key") }

// Clean reports whether a record contains nothing that these functions search for. If so, there is
// nothing to hide in the record, nor in any value or text of it. A record that is not clean may have
// nothing to hide, either.
func (r Rules) Clean(raw []byte) bool { return !r.mayApply(raw) }

// Text redacts a text of a record, such as an error, as Record redacts the JSON string with that
// text.
func (r Rules) Text(text string) (string, Count) {
	hidden, count := r.redactText([]byte(text), elsewhere, 1)
	return string(hidden), count
}

// Message redacts a text of our own, such as an error or a description, that quotes foreign texts
// with %q. It applies Text to each quotation and to the text between them. The text after a
// quotation and a colon does not count as the value of a member, unless the message contains
// JSON.
func (r Rules) Message(text string) (string, Count) {
	if strings.Contains(text, `{"`) {
		return r.Text(text)
	}
	var b strings.Builder
	var count Count
	hide := func(part string) string {
		hidden, n := r.Text(part)
		count.Add(n)
		return hidden
	}
	rest := text
	for at := strings.IndexByte(rest, '"'); at >= 0; at = strings.IndexByte(rest, '"') {
		b.WriteString(hide(rest[:at]))
		quoted, err := strconv.QuotedPrefix(rest[at:])
		if err != nil {
			quoted = `"` // this mark opens no quotation
		}
		rest = rest[at+len(quoted):]
		if inner, err := strconv.Unquote(quoted); err == nil {
			if hidden := hide(inner); hidden != inner {
				quoted = strconv.Quote(hidden)
			}
		}
		b.WriteString(quoted)
	}
	b.WriteString(hide(rest))
	return b.String(), count
}

// redact redacts raw, JSON text that is nested in texts strings.
func (r Rules) redact(raw []byte, within scope, texts int) ([]byte, Count, error) {
	return r.walk(raw, within, texts, "")
}

// walk does the same, and lets the members with one name stay.
func (r Rules) walk(raw []byte, within scope, texts int, kept string) ([]byte, Count, error) {
	next := r.next(raw, 0)
	if next == len(raw) {
		return raw, Count{}, nil
	}
	w := redactor{rules: r, raw: raw, next: next, texts: texts, kept: kept, decoder: jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))}
	for {
		if err := w.value(place{scope: within}); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, Count{}, fmt.Errorf("redact: %w", err)
		}
	}
	if w.count.Sum() == 0 {
		return raw, Count{}, nil
	}
	return append(w.out, raw[w.copied:]...), w.count, nil
}

// place describes where a value is.
type place struct {
	scope   scope
	headers bool // under a name that means headers
	element bool // the value is an element of an array
}

// redactor walks JSON text and copies it with replacements.
type redactor struct {
	rules   Rules
	raw     []byte
	texts   int    // how many strings raw is nested in
	kept    string // members with this name are not hidden; empty: there are none
	decoder *jsontext.Decoder
	name    []byte // of the member that is read; the memory is used again
	next    int    // where mayApply finds something next; see plain
	out     []byte // raw[:copied], redacted
	copied  int
	count   Count
}

// plain reports whether raw[from:end], which begins with a token, has nothing to hide. Most strings
// of a record are plain, and are not unquoted.
func (r *redactor) plain(from, end int) bool {
	if r.next < from {
		r.next = r.rules.next(r.raw, from)
	}
	return end <= r.next
}

func (r *redactor) value(at place) error {
	if r.plain(int(r.decoder.InputOffset()), len(r.raw)) {
		return r.decoder.SkipValue() // to the end, there is nothing to hide
	}
	switch r.decoder.PeekKind() {
	case '{':
		return r.object(at.scope)
	case '[':
		return r.array(at)
	case '"':
		_, _, err := r.text(at.scope)
		return err
	}
	_, err := r.decoder.ReadToken()
	return err
}

func (r *redactor) array(at place) error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	headers := r.rules.has(RuleHeaderList) && (at.headers || at.element && isPairOfTexts(r.rest()))
	at.element = true
	for i, named := 0, false; r.decoder.PeekKind() != ']'; i++ {
		hide := named && i%2 == 1
		if headers && i%2 == 0 {
			name, _ := cutText(bytes.TrimLeft(r.rest(), " \t\r\n,"))
			named = r.rules.names(name)
		}
		var err error
		if hide {
			err = r.hide(Count{Optional: 1})
		} else {
			err = r.value(at)
		}
		if err != nil {
			return err
		}
	}
	_, err := r.decoder.ReadToken()
	return err
}

func (r *redactor) object(within scope) error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	members := r.rest()
	var searched, paired bool // whether another member names the secret that a member "value" holds
	for r.decoder.PeekKind() != '}' {
		quoted, plain, err := r.text(within)
		if err != nil {
			return err
		}
		if r.name, err = jsontext.AppendUnquote(r.name[:0], quoted); err != nil {
			return err
		}
		name := string(r.name)
		mayHide := !plain && name != r.kept
		valued := r.rules.has(RuleNameValue) && namesValue(name)
		if valued && !searched {
			searched, paired = true, r.rules.hasSecretName(members)
		}
		switch {
		case mayHide && within.hides(name):
			err = r.hide(Count{Draft: 1})
		case mayHide && r.rules.has(RuleUnicode) && within.hides(plainName(name)), valued && paired:
			err = r.hide(Count{Optional: 1})
		default:
			err = r.value(place{scope: within.below(name), headers: namesHeaders(name)})
		}
		if err != nil {
			return err
		}
	}
	_, err := r.decoder.ReadToken()
	return err
}

// hide replaces the next value.
func (r *redactor) hide(count Count) error {
	const quotedMark = `"` + Mark + `"`
	value, err := r.decoder.ReadValue()
	if err == nil && string(value) != quotedMark && (count.Draft > 0 || !slices.Contains(emptyValues, string(value))) {
		r.replace(len(value), []byte(quotedMark), count)
	}
	return err
}

// rest returns the text that was not read yet.
func (r *redactor) rest() []byte { return r.raw[r.decoder.InputOffset():] }

// text redacts the content of a string or of a name. It returns the original, and whether that is
// plain.
func (r *redactor) text(within scope) (original jsontext.Value, plain bool, err error) {
	value, err := r.decoder.ReadValue()
	if err != nil {
		return nil, false, err
	}
	end := int(r.decoder.InputOffset())
	if r.plain(end-len(value), end) {
		return value, true, nil
	}
	inner, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return nil, false, err
	}
	if hidden, count := r.rules.redactText(inner, within, r.texts+1); count.Sum() > 0 {
		r.replace(len(value), pyjson.AppendString(nil, string(hidden)), count)
	}
	return value, false, nil
}

// replace replaces the size bytes just read by text.
func (r *redactor) replace(size int, text []byte, count Count) {
	end := int(r.decoder.InputOffset())
	r.out = append(append(r.out, r.raw[r.copied:end-size]...), text...)
	r.copied = end
	r.count.Add(count)
}

// The functions below find secrets that the name of a member does not show: pairs of a name and a
// value (RuleNameValue), and lists of headers (RuleHeaderList). They look ahead in text that may
// turn out not to be JSON.

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

// namesValue reports whether a member called name may hold the value of a pair.
func namesValue(name string) bool {
	return len(name) <= len("values") && slices.Contains(valueNames, strings.ToLower(name))
}

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
