package aivs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Only a line feed ends a line, the last line may have none, and no line may be longer than the
// limit, including its line feed.
func TestEachLine(t *testing.T) {
	long := strings.Repeat("x", 40<<10) // longer than one read
	for _, c := range []struct {
		text  string
		limit int
		want  []string
		fault string
	}{
		{"", 4, nil, ""},
		{"a\n\nb\r\n", 4, []string{"a true", " true", "b\r true"}, ""},
		{"a\nb", 4, []string{"a true", "b false"}, ""},
		{"abc\nabcd", 4, []string{"abc true", "abcd false"}, ""},
		{"a\nabcd\n", 4, []string{"a true"}, "a line is longer than 4 bytes"},
		{"abcde", 4, nil, "a line is longer than 4 bytes"},
		{long + "\n" + long, len(long) + 1, []string{long + " true", long + " false"}, ""},
		{long + "\n", len(long), nil, fmt.Sprintf("a line is longer than %d bytes", len(long))},
	} {
		var got []string
		err := eachLine(strings.NewReader(c.text), c.limit, func(line []byte, ended bool) { got = append(got, fmt.Sprint(string(line), " ", ended)) })
		if !slices.Equal(got, c.want) || (err == nil) != (c.fault == "") || err != nil && err.Error() != c.fault {
			t.Errorf("%.20q, limit %d: %.80q, %v", c.text, c.limit, got, err)
		}
	}
}
