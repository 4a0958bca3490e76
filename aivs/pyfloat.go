package aivs

import (
	"math"
	"strconv"
	"time"
)

// AppendPyFloat appends f as Python prints it. The draft's row hash and every verifier use this
// form for a timestamp: the shortest decimal that parses back to f, in exponent form below 1e-4
// and from 1e16 on, otherwise with a decimal point. f must be finite.
func AppendPyFloat(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, '.', '0')
}

// PyFloat returns the text that AppendPyFloat appends.
func PyFloat(f float64) string { return string(AppendPyFloat(nil, f)) }

// UnixSeconds returns t as a row's timestamp: seconds since 1970, to the microsecond. That is the
// finest step that a float64 represents exactly for present times.
func UnixSeconds(t time.Time) float64 {
	return float64(t.UnixMicro()) / 1e6
}
