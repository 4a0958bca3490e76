package schema

import (
	"bytes"
	"testing"

	"github.com/gowebpki/jcs"
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

// Another implementation of RFC 8785 gives the same form.
func FuzzCanonical(f *testing.F) {
	for _, value := range []string{
		`{"a":[1,2.5e3,"x\u00e9\u2028\u0000<&>"],"b":{"\ud83d\ude00":null,"\ufb33":-0,"\/":"\""}}`,
		` [5e-324, 1e21, 1E22, 0.000001, 1e-7, 1.5e300, 123456789012345680000] `,
		`{"é":1,"e":2,"":3,"aa":{"b":[],"a":{}},"a":true}`,
	} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := Canonical(value)
		if err != nil {
			return
		}
		if want, err := jcs.Transform(value); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %s, another implementation: %s (%v)", value, got, want, err)
		}
	})
}
