package reference

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Error says where and why the SDK would throw.
type Error struct {
	Path   string // dotted path in the request, such as "trace.decision"
	Reason string
}

// Error returns the place and the reason.
func (e *Error) Error() string { return e.Path + ": " + e.Reason }

// catch turns a thrown value into an error; every exported function defers it.
func catch(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case *Error:
		*err = thrown
	default:
		panic(thrown)
	}
}

// value is one place in a generic tree. Its methods read it as JavaScript would, and throw an
// *Error where JavaScript throws a TypeError.
type value struct {
	v    any
	path string
}

func (n value) throw(format string, args ...any) {
	panic(&Error{Path: n.path, Reason: fmt.Sprintf(format, args...)})
}

// get reads a member. It returns undefined where there is none, and throws for null and
// undefined.
func (n value) get(name string) value {
	if n.missing() {
		n.throw("%s, where an object with %q is needed", n.kind(), name)
	}
	return n.try(name)
}

// try reads a member, and returns undefined for null and undefined (optional chaining). It also
// finds inherited members, elements and lengths.
func (n value) try(name string) value {
	member := value{v: Undefined{}, path: n.path + "." + name}
	if _, list := n.v.([]any); list {
		member.path = n.path + "[" + name + "]"
	}
	if own, ok := ownMember(n.v, name); ok {
		member.v = own
	} else if inherits(n.v, name) {
		member.v = function{}
	}
	return member
}

// ownMember returns the member that v itself has under a name.
func ownMember(v any, name string) (any, bool) {
	switch v := v.(type) {
	case *Object:
		member, ok := v.members[name]
		return member, ok
	case []any:
		if name == "length" {
			return float64(len(v)), true
		}
		if i, ok := arrayIndex(name); ok && i < len(v) {
			return v[i], true
		}
	case string:
		i, index := arrayIndex(name)
		if !index && name != "length" {
			return nil, false
		}
		units := utf16.Encode([]rune(v))
		if !index {
			return float64(len(units)), true
		}
		if i < len(units) {
			return string(utf16.Decode(units[i : i+1])), true
		}
	}
	return nil, false
}

// or returns n, or other where n is null or undefined.
func (n value) or(other value) value {
	if n.missing() {
		return other
	}
	return n
}

// each returns the elements of an array or the characters of a text. It throws for all other
// values.
func (n value) each() []value {
	var elements []value
	switch v := n.v.(type) {
	case []any:
		for i, element := range v {
			elements = append(elements, value{v: element, path: fmt.Sprintf("%s[%d]", n.path, i)})
		}
	case string:
		for i, char := range v {
			elements = append(elements, value{v: string(char), path: fmt.Sprintf("%s[%d]", n.path, i)})
		}
	default:
		n.throw("%s cannot be iterated over", n.kind())
	}
	return elements
}

// eachOrNone is each, but returns nothing where n is null or undefined.
func (n value) eachOrNone() []value {
	if n.missing() {
		return nil
	}
	return n.each()
}

// text returns a string and throws for all other values.
func (n value) text() string {
	s, ok := n.v.(string)
	if !ok {
		n.throw("%s is not a string", n.kind())
	}
	return s
}

// is reports whether n is exactly the string s.
func (n value) is(s string) bool {
	text, ok := n.v.(string)
	return ok && text == s
}

func (n value) undefined() bool {
	_, ok := n.v.(Undefined)
	return ok
}

// missing reports whether n is null or undefined.
func (n value) missing() bool { return n.v == nil || n.undefined() }

// kind describes n for an error.
func (n value) kind() string {
	switch v := n.v.(type) {
	case nil:
		return "null"
	case Undefined:
		return "absent"
	case *Object:
		return "an object"
	case []any:
		return "an array"
	case string:
		return fmt.Sprintf("the text %.40q", v)
	}
	return n.string()
}

// jsSpace is the content of a character class that matches what JavaScript's \s matches.
const jsSpace = `\s\v\p{Zs}\x{FEFF}\x{2028}\x{2029}`

func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', 0xFEFF, 0x2028, 0x2029:
		return true
	}
	return unicode.Is(unicode.Zs, r)
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// truthy is JavaScript's Boolean(n).
func (n value) truthy() bool {
	switch v := n.v.(type) {
	case nil, Undefined:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	}
	return true
}

// string is JavaScript's String(n).
func (n value) string() string {
	switch v := n.v.(type) {
	case nil:
		return "null"
	case Undefined:
		return "undefined"
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return formatNumber(v)
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i, element := range v {
			if e := (value{v: element, path: n.path}); !e.missing() { // otherwise an empty text
				parts[i] = e.string()
			}
		}
		return strings.Join(parts, ",")
	case function:
		return "function"
	case *Object:
		if _, hidden := v.members["toString"]; hidden {
			n.throw("an object with a member toString has no text")
		}
	}
	return "[object Object]"
}

// number is JavaScript's Number(n).
func (n value) number() float64 {
	switch v := n.v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 1
		}
		return 0
	case float64:
		return v
	case Undefined, function:
		return math.NaN()
	}
	return textNumber(trim(n.string()))
}

// plus is JavaScript's a + b: numbers are added, all other values are concatenated as texts.
func (n value) plus(other value) value {
	sum := value{path: other.path}
	if n.numeric() && other.numeric() {
		sum.v = n.number() + other.number()
	} else {
		sum.v = n.string() + other.string()
	}
	return sum
}

// numeric reports whether n counts as a number in a sum.
func (n value) numeric() bool {
	switch n.v.(type) {
	case nil, Undefined, bool, float64:
		return true
	}
	return false
}

var (
	numberText   = regexp.MustCompile(`^[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$`)
	numberPrefix = regexp.MustCompile(`^[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)`)
)

// textNumber is JavaScript's Number(s) of a trimmed text.
func textNumber(s string) float64 {
	if s == "" {
		return 0
	}
	if len(s) > 2 && s[0] == '0' && strings.ContainsRune("xXoObB", rune(s[1])) {
		if n, ok := new(big.Int).SetString(s, 0); ok && !strings.Contains(s, "_") {
			f, _ := new(big.Float).SetInt(n).Float64()
			return f
		}
		return math.NaN()
	}
	if !numberText.MatchString(s) {
		return math.NaN()
	}
	return decimal(s)
}

// parseFloat is JavaScript's parseFloat: the longest number at the start of s.
func parseFloat(s string) float64 {
	prefix := numberPrefix.FindString(strings.TrimLeftFunc(s, isSpace))
	if prefix == "" {
		return math.NaN()
	}
	return decimal(prefix)
}

// decimal reads a text that numberText matches. A number out of range becomes infinite or zero.
func decimal(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && f == 0 {
		return math.NaN()
	}
	return f
}

// formatNumber is JavaScript's String for a number.
func formatNumber(f float64) string {
	switch magnitude := math.Abs(f); {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		return "0"
	case magnitude >= 1e21 || magnitude < 1e-6:
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// toFixed is JavaScript's Number.toFixed: exact ties are rounded away from zero.
func toFixed(f float64, digits int) string {
	if math.IsNaN(f) || math.Abs(f) >= 1e21 {
		return formatNumber(f)
	}
	// Rat.FloatString rounds the exact value half away from zero.
	text := new(big.Rat).SetFloat64(math.Abs(f)).FloatString(digits)
	if f < 0 {
		return "-" + text
	}
	return text
}

// fixed is toFixed for a value. It throws where the value is not a number.
func (n value) fixed(digits int) string {
	f, ok := n.v.(float64)
	if !ok {
		n.throw("%s is not a number", n.kind())
	}
	return toFixed(f, digits)
}

// function represents the inherited functions of JavaScript values, such as toString.
type function struct{}

// The names that values inherit, by the kind of value.
var (
	ofObjects = setOf(strings.Fields(`constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString
		valueOf __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__`))
	ofArrays = setOf(strings.Fields(`at concat copyWithin entries every fill filter find findIndex findLast findLastIndex
		flat flatMap forEach includes indexOf join keys lastIndexOf map pop push reduce reduceRight reverse shift slice
		some sort splice toReversed toSorted toSpliced unshift values with`))
	ofStrings = setOf(strings.Fields(`anchor at big blink bold charAt charCodeAt codePointAt concat endsWith fixed fontcolor
		fontsize includes indexOf isWellFormed italics lastIndexOf link localeCompare match matchAll normalize padEnd
		padStart repeat replace replaceAll search slice small split startsWith strike sub substr substring sup
		toLocaleLowerCase toLocaleUpperCase toLowerCase toUpperCase toWellFormed trim trimEnd trimLeft trimRight trimStart`))
	ofNumbers = setOf([]string{"toExponential", "toFixed", "toPrecision"})
)

// inherits reports whether every value of v's kind has a member of that name.
func inherits(v any, name string) bool {
	switch v.(type) {
	case nil, Undefined:
		return false
	case []any:
		return ofArrays[name] || ofObjects[name]
	case string:
		return ofStrings[name] || ofObjects[name]
	case float64:
		return ofNumbers[name] || ofObjects[name]
	}
	return ofObjects[name]
}
