package redact

import (
	"strings"
	"testing"
)

// textCase is a text with the rule that hides its value and the result of all redaction rules.
// An empty want means that the text does not change.
type textCase struct{ shows, text, want string }

func checkTexts(t *testing.T, cases []textCase) {
	t.Helper()
	for _, c := range cases {
		if c.want == "" {
			c.want = c.text
		}
		if got, _ := AllRules.Text(c.text); got != c.want {
			t.Errorf("%s:\n%s became\n%s, want\n%s", c.shows, c.text, got, c.want)
		}
	}
}

// A name in a text is a word with its digits and the marks that join it to others, of at most 128
// bytes.
func TestNamesInText(t *testing.T) {
	longest := strings.Repeat("n", 128-len("_password")) + "_password"
	checkTexts(t, []textCase{
		{"digits belong to a name", `PASSWORD_0=hunter2 password9=hunter2`, `PASSWORD_0=[REDACTED] password9=[REDACTED]`},
		{"the longest name", longest + `=hunter2`, longest + `=[REDACTED]`},
		{"a longer word is not a name", `n` + longest + `=hunter2`, ``},
		{"a mark at its end does not belong to it: this subtracts", `token-=amount12; key.-=amount12`, ``},
		{"a mark at its beginning does not belong to it", `-password=hunter2 .token=hunter2hunter2`, `-password=[REDACTED] .token=[REDACTED]`},
		{"any quotation marks hold a name", "map[string]string{`password`: `hunter2`}", "map[string]string{`password`: `[REDACTED]`}"},
		{"a name without them is no member of a structure", `: the password of the day`, ``},
	})
}

// If a name alone is a common word, its value is hidden only when it has at least eight
// characters, with letters and digits. Only the first 256 bytes of the value are checked.
func TestValuesThatLookSecret(t *testing.T) {
	long := strings.Repeat("a1", 128)
	checkTexts(t, []textCase{
		{"eight characters", `token=hunter22`, `token=[REDACTED]`},
		{"seven", `token=hunter2`, ``},
		{"no letter", `token=12345678`, ``},
		{"no digit", `token=hunterxx`, ``},
		{"the first letter is one", `token=1234567a`, `token=[REDACTED]`},
		{"the last letter is one", `token=1234567Z`, `token=[REDACTED]`},
		{"white space within 256 bytes", `token="hunter22 is it"`, ``},
		{"white space behind them", `token="` + long + ` is it"`, `token="[REDACTED]"`},
	})
}

// A value of up to 128 bytes that refers to another is not hidden, and neither is an empty one.
func TestValuesThatStay(t *testing.T) {
	longest := `read(` + strings.Repeat("a", 128-len(`read(`))
	checkTexts(t, []textCase{
		{"the longest reference", `password=` + longest, ``},
		{"what is longer is no reference", `password=x` + longest, `password=[REDACTED]`},
		{"an empty text", `connect(password='', user='u')`, ``},
	})
}

// A value in a text ends exactly where the surrounding text continues.
func TestEndsOfValues(t *testing.T) {
	longest := strings.Repeat("n", 128)
	checkTexts(t, []textCase{
		{"the mark that ends a sentence does not belong to it", `api_key = hunter2.`, `api_key = [REDACTED].`},
		{"a line break as a string has it", `x=1\npassword=hunter2\ny=2`, `x=1\npassword=[REDACTED]\ny=2`},
		{"a comma before another name with its value", `password=hunter2,` + longest + `=1`, `password=[REDACTED],` + longest + `=1`},
		{"a comma before what is too long for a name", `password=hunter2,n` + longest + `=1`, `password=[REDACTED]`},
		{"a comma before a name without a value", `password=hunt,er2 x`, `password=[REDACTED] x`},
		{"a comma without a name after it", `password=hunt,+er2 password=hunt,=er2`, `password=[REDACTED] password=[REDACTED]`},
		{"each form has its own bytes that end a value", `bearer password=hunter&n=b`, `bearer password=[REDACTED]&n=b`},
		{"an escaped quotation mark first", `password='\'hunter2' n='1'`, `password='[REDACTED]' n='1'`},
		{"an escaped backslash last", `password='hunter2\\' n='1'`, `password='[REDACTED]' n='1'`},
	})
}
