package web

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// diffLine is a line of a text, and whether it was added to or removed from the text before.
type diffLine struct {
	Sign string // +, - or a blank
	Text string
}

// readable returns JSON with one member or item in each line; what is not JSON, as it is.
func readable(raw string) string {
	value := jsontext.Value(raw).Clone()
	if err := value.Canonicalize(); err != nil {
		return raw
	}
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return raw
	}
	return string(value)
}

// Cards have some dozen lines. Nested lists of a hostile one make a hundred times its bytes.
const (
	mostShown = 128 << 10 // bytes of a card's text on a page
	mostDiff  = 2000      // lines of a text that is compared
)

// tooLarge reports whether a text is too large to be compared on a page.
func tooLarge(text string) bool {
	return len(text) > mostShown || strings.Count(text, "\n") >= mostDiff
}

// diff returns the lines of the text after, with those that were removed from the one before in their places: the
// longest common subsequence stays. compared is false where there is no text before.
func diff(before, after []string, compared bool) (lines []diffLine) {
	if !compared {
		for _, text := range after {
			lines = append(lines, diffLine{" ", text})
		}
		return lines
	}
	// common[i][j] is the length of the longest common subsequence of before[i:] and after[j:].
	common := make([][]int32, len(before)+1)
	for i := range common {
		common[i] = make([]int32, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			lines = append(lines, diffLine{" ", after[j]})
			i, j = i+1, j+1
		case i < len(before) && (j == len(after) || common[i+1][j] >= common[i][j+1]):
			lines = append(lines, diffLine{"-", before[i]})
			i++
		default:
			lines = append(lines, diffLine{"+", after[j]})
			j++
		}
	}
	return lines
}
