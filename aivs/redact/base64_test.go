package redact

import (
	"encoding/base64"
	"strings"
	"testing"
)

// JSON in base64 is redacted at any place, and encoded again in the same form: in its alphabet,
// with padding where it had some. All other text stays.
func TestBase64OfJSON(t *testing.T) {
	const hidden, marks = `{"key":"[REDACTED]"}`, `{"a":"???>>>","key":"[REDACTED]"}`
	shortest := encode64(`{"key":1}`)
	for name, c := range map[string]struct{ text, want string }{
		"the shortest":                         {shortest, encode64(hidden)},
		"behind other text":                    {"hello world " + shortest, "hello world " + encode64(hidden)},
		"at the beginning of a path":           {"/" + shortest, "/" + encode64(hidden)},
		"with one character of padding":        {encode64(`{"key":"a"}`), encode64(hidden)},
		"without that":                         {base64.RawStdEncoding.EncodeToString([]byte(`{"key":"a"}`)), base64.RawStdEncoding.EncodeToString([]byte(hidden))},
		"with two":                             {encode64(`{"key":12}`), encode64(hidden)},
		"without these":                        {base64.RawStdEncoding.EncodeToString([]byte(`{"key":12}`)), base64.RawStdEncoding.EncodeToString([]byte(hidden))},
		"a third is none":                      {shortest + "===", encode64(hidden) + "="},
		"the alphabet of URLs":                 {base64.URLEncoding.EncodeToString([]byte(`{"a":"???>>>","key":12}`)), base64.URLEncoding.EncodeToString([]byte(marks))},
		"the alphabet of URLs, no padding":     {base64.RawURLEncoding.EncodeToString([]byte(`{"a":"???>>>","key":12}`)), base64.RawURLEncoding.EncodeToString([]byte(marks))},
		"both alphabets":                       {strings.Replace(encode64(`{"a":"???>>>","key":12}`), "/", "_", 1), base64.URLEncoding.EncodeToString([]byte(marks))},
		"not JSON, of the least length":        {"a token in " + encode64("passwd=hx"), ""},
		"not JSON, a blank second":             {"a token in " + encode64("a passwd=hunter2"), ""},
		"not JSON, longer":                     {"a token in " + encode64("passwd=hunter2"), ""},
		"not JSON, shorter":                    {"a token in other text cGFzc3dkPWg", ""},
		"cut off before any value of a length": {"behind other text " + shortest[:11], ""},
	} {
		if c.want == "" {
			c.want = c.text
		}
		if got, _ := AllRules.Text(c.text); got != c.want {
			t.Errorf("%s: %s became %s, want %s", name, c.text, got, c.want)
		}
	}
}

// In truncated base64 the secret at its beginning is hidden, too.
func TestBase64ThatIsCutOff(t *testing.T) {
	whole := encode64(`{"key":"hunter2","n":1}`)
	for end := leastEncoded; end < len(whole); end++ {
		got, _ := AllRules.Text("see " + whole[:end])
		decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimPrefix(got, "see "), "="))
		if err != nil && len(got)%4 != 1 || strings.Contains(string(decoded), "h") {
			t.Errorf("%s became %s, which is %s (%v)", whole[:end], got, decoded, err)
		}
	}
}

// Base64 is searched as deep as strings: each string and each base64 counts as one of maxTexts.
// Deeper text is hidden whole.
func TestBase64WithinBase64(t *testing.T) {
	nested := func(value string, times int) string {
		for i := range times {
			if i > 0 {
				value = encode64(value)
			}
			value = `{"a":"` + value + `"}`
		}
		return value
	}
	secret, hidden := encode64(`{"key":"hunter2"}`), encode64(`{"key":"[REDACTED]"}`)
	for times, want := range map[int]string{
		1:              nested(hidden, 1),
		maxTexts / 2:   nested(hidden, maxTexts/2),
		maxTexts/2 + 1: nested(Mark, maxTexts/2+1),
	} {
		if got, _, err := AllRules.Record([]byte(nested(secret, times))); err != nil || string(got) != want {
			t.Errorf("%d times: %s, want %s, error %v", times, got, want, err)
		}
	}
}
