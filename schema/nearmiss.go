package schema

import "strings"

// nearStandardValue returns the standard value (AAP section 4.4) that value looks like but does
// not equal. The difference may be case, dashes and other separators, or a typing error: one
// letter, or two in long names.
func nearStandardValue(value string) (standard string, near bool) {
	letters := lettersOf(value)
	for _, standard := range StandardValues {
		if value == standard {
			return "", false
		}
	}
	for _, standard := range StandardValues {
		plain := lettersOf(standard)
		slips := 1
		if len(plain) >= 10 {
			slips = 2
		}
		if d := len(letters) - len(plain); max(d, -d) <= slips && distance(letters, plain) <= slips {
			return standard, true
		}
	}
	return "", false
}

// lettersOf returns the lower-case ASCII letters of s. It drops all other characters: they are
// separators or typing errors.
func lettersOf(s string) string {
	if len(s) > longestNearMiss {
		return ""
	}
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' {
			return c
		}
		return -1
	}, strings.ToLower(s))
}

// longestNearMiss bounds the comparison: no standard value is nearly as long.
const longestNearMiss = 64

// distance is the edit distance of two texts (Levenshtein). Exchanging two neighbouring letters
// is one step.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
