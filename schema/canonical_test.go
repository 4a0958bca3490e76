package schema

import (
	"testing"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1.0, "a":[true,null," "]}`:  `{"a":[true,null," "],"b":1}`,
		` "x" `:                           `"x"`,
		`12e1`:                            `120`,
		`9007199254740992`:                `9007199254740992`,
		`100000000000000000000`:           `100000000000000000000`,
		`9007199254740993`:                "",
		`{"a":[{"b":-9007199254740993}]}`: "",
		`{"a":1,"a":1}`:                   "",
		`{`:                               "",
		``:                                "",
		`1 2`:                             "",
		`1e400`:                           "",
		"\"\xff\"":                        "",
	} {
		got, err := Canonical([]byte(in))
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%s: %s, error %v; want %s", in, got, err, want)
		}
	}
}
