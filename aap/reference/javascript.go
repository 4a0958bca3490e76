package reference

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

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
		return n.joinElements(v)
	case function:
		return "function"
	}
	n.throwUnlessPrimitive()
	return "[object Object]"
}

// throwUnlessPrimitive throws for an object with a member toString: it has no text and no
// number.
func (n value) throwUnlessPrimitive() {
	if object, ok := n.v.(*Object); ok {
		if _, hidden := object.members["toString"]; hidden {
			n.throw("an object with a member toString has no text")
		}
	}
}

// joinElements is String(array): null and undefined elements are empty texts.
func (n value) joinElements(v []any) string {
	parts := make([]string, len(v))
	for i, element := range v {
		if e := (value{v: element, path: n.path}); !e.missing() {
			parts[i] = e.string()
		}
	}
	return strings.Join(parts, ",")
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

// lower is JavaScript's toLowerCase. It differs from Go's for one letter whose lower case is
// two characters.
func lower(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "\u0130", "i\u0307"))
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
