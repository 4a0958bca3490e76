package condition

import (
	"cmp"
	"strconv"
	"strings"
)

// decimal is an exact decimal number: 0.DIGITS times ten to the power of point. DIGITS are the
// digits of the whole part and the fraction without leading zeros; zero has none.
type decimal struct {
	negative        bool
	whole, fraction string
	point           int64
}

// farthest bounds the exponents that are compared exactly. No text that fits into a trace has
// so many digits.
const farthest = 1 << 62

// newDecimal reads a number as decimalLength accepts it.
func newDecimal(text string) decimal {
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		d.point, _ = strconv.ParseInt(text[at+1:], 10, 64) // beyond 64 bits: the nearest 64-bit value
		d.point = min(max(d.point, -farthest), farthest)
		text = text[:at]
	}
	d.whole, d.fraction, _ = strings.Cut(text, ".")
	d.whole = strings.TrimLeft(d.whole, "0")
	d.point += int64(len(d.whole))
	if d.whole == "" {
		significant := strings.TrimLeft(d.fraction, "0")
		d.point -= int64(len(d.fraction) - len(significant))
		d.fraction = significant
	}
	return d
}

func (d *decimal) sign() int {
	switch {
	case d.whole == "" && d.fraction == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// digit returns digit i after the point of 0.DIGITS.
func (d *decimal) digit(i int) byte {
	if i < len(d.whole) {
		return d.whole[i]
	}
	if i -= len(d.whole); i < len(d.fraction) {
		return d.fraction[i]
	}
	return '0'
}

// compareDecimals orders two decimal numbers exactly: amounts in wei, for example, have more
// digits than a 64-bit float.
func compareDecimals(a, b string) int {
	x, y := newDecimal(a), newDecimal(b)
	sign := x.sign()
	if order := cmp.Compare(sign, y.sign()); order != 0 || sign == 0 {
		return order
	}
	if order := cmp.Compare(x.point, y.point); order != 0 {
		return order * sign
	}
	for i := range max(len(x.whole)+len(x.fraction), len(y.whole)+len(y.fraction)) {
		if order := cmp.Compare(x.digit(i), y.digit(i)); order != 0 {
			return order * sign
		}
	}
	return 0
}
