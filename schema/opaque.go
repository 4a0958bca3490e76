package schema

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// beyondLimits says what is wrong with a value that Plumbline does not interpret: nesting
// deeper than MaxDepth (depth levels already surround the value), or a number that no float64
// holds. For most values a quick look at the bytes is enough.
func beyondLimits(v []byte, depth int) string {
	switch jsontext.Value(v).Kind() {
	case '"', 't', 'f', 'n':
		return ""
	}
	deep := depth + bytes.Count(v, []byte{'{'}) + bytes.Count(v, []byte{'['})
	if deep <= MaxDepth && !mayOverflow(v) {
		return ""
	}
	return inspect(v, depth)
}

// mayOverflow reports whether v may hold a number beyond float64: an exponent of three digits,
// or very many digits.
func mayOverflow(v []byte) bool {
	for i := 1; i+3 < len(v); i++ {
		if c := v[i] | 0x20; c != 'e' || !digit(v[i-1]) {
			continue
		}
		e := v[i+1:]
		if e[0] == '+' || e[0] == '-' {
			e = e[1:]
		}
		if len(e) >= 3 && digit(e[0]) && digit(e[1]) && digit(e[2]) {
			return true
		}
	}
	return hasManyDigits(v)
}

// safeDigits is the number of digits before the point that a number may have without
// inspection: with an exponent of two digits it stays below 1e300.
const safeDigits = 200

// hasManyDigits reports whether v has a run of more than safeDigits digits. Every such run has
// a digit at a multiple of safeDigits.
func hasManyDigits(v []byte) bool {
	for at := safeDigits; at < len(v); at += safeDigits {
		if !digit(v[at]) {
			continue
		}
		from, to := at, at
		for from > 0 && digit(v[from-1]) {
			from--
		}
		for to < len(v) && digit(v[to]) {
			to++
		}
		if to-from > safeDigits {
			return true
		}
	}
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// inspect walks v token by token.
func inspect(v []byte, depth int) string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return "" // the end: v was read as a complete value before
		}
		if depth+dec.StackDepth() > MaxDepth {
			return fmt.Sprintf("nested deeper than %d levels", MaxDepth)
		}
		if token.Kind() != '0' {
			continue
		}
		if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
			return fmt.Sprintf("a number is beyond the range of a 64-bit float (%s)", clip(string(dec.StackPointer())))
		}
	}
}
