package redact

import (
	"strings"
	"testing"
)

// The value of each form is hidden where the text begins with it, quotes it or is truncated. The
// text after the value stays.
func TestFormsHideTheirValues(t *testing.T) {
	for _, c := range []struct {
		says       string
		rules      Rules
		text, want string
	}{
		{"a form may begin with an object", RuleURL, `a[token]=hunter2&b=1`, `a[token]=[REDACTED]&b=1`},
		{"an object may have no name", RuleURL, `[token]=hunter2&b=1`, `[token]=[REDACTED]&b=1`},
		{"objects nest, encoded or not", RuleURL, `?a%5Bb%5d%5Btoken%5D=hunter2`, `?a%5Bb%5d%5Btoken%5D=[REDACTED]`},

		{"a header may be quoted", RuleAuthorization, `Authorization: "hunter2"`, `Authorization: "[REDACTED]"`},
		{"so may its scheme", RuleAuthorization, `authorization: 'Bearer hunter2'`, `authorization: 'Bearer [REDACTED]'`},
		{"a header may be assigned with its scheme", RuleAuthorization, `authorization=Bearer hunter2, then`, `authorization=Bearer [REDACTED], then`},
		{"what is assigned to bearer keeps its sign", AllRules, `bearer=hunter2hunter2`, `bearer=[REDACTED]`},

		{"an element may follow the end of another", RuleXML, `</a><password>hunter2</password>`, `</a><password>[REDACTED]</password>`},
		{"an empty element has no content, the next one does", RuleXML, `<a><password/><b>1</b></a><a><password>hunter2</password></a>`, `<a><password/><b>1</b></a><a><password>[REDACTED]</password></a>`},

		{"a pair may be in lists of any bracket", RuleHeaderList, `x ['password', 'hunter2']`, `x ['password', '[REDACTED]']`},
		{"a list may be in a string", RuleHeaderList, `"[(\'token\', \'hunter2\')]"x`, `"[(\'token\', \'[REDACTED]\')]"x`},
		{"a list may be cut off", RuleHeaderList, `x [('Authorization', 'hunter`, `x [('Authorization', '[REDACTED]`},

		{"a value ends before the next member", RuleRepr, `{'key': 12, 'n': 1}`, `{'key': [REDACTED], 'n': 1}`},
		{"a value may be cut off", RuleRepr, `{'key': 12`, `{'key': [REDACTED]`},
		{"a value that is redacted stays", RuleRepr, `{'key': [REDACTED], 'token': 12}`, `{'key': [REDACTED], 'token': [REDACTED]}`},

		{"a line of YAML may have blanks before its colon", RuleYAML, "user     : u\n'password' : hunter2\n", "user     : u\n'password' : [REDACTED]\n"},
		{"one with two words may follow another", RuleYAML, "user: u\npassword: hunter2 hunter2", "user: u\npassword: [REDACTED]"},
		{"or another may follow it", RuleYAML, "password: hunter2 hunter2\r\n\r\nuser :\r\n  u", "password: [REDACTED]\r\n\r\nuser :\r\n  u"},
		{"a block may end with the text, and have blank lines", RuleYAML, "  private_key: |\n    hunter2\n \n    hunter2\n", "  private_key: [REDACTED]\n"},

		{"an assignment may declare", RuleAssignment, `password := "hunter2"`, `password := "[REDACTED]"`},
		{"an option may have one dash", RuleAssignment, `login -token hunter2hunter2 now`, `login -token [REDACTED] now`},
	} {
		got, count := c.rules.Text(c.text)
		if marks := strings.Count(c.want, Mark) - strings.Count(c.text, Mark); got != c.want || count != (Count{Optional: marks}) {
			t.Errorf("%s:\n%s became\n%s (%+v), want\n%s", c.says, c.text, got, count, c.want)
		}
		if again, count := c.rules.Text(got); again != got || count != (Count{}) {
			t.Errorf("%s: redacted again, %s became %s (%+v)", c.says, got, again, count)
		}
	}
}

// All rules leave text unchanged that only resembles a form.
func TestWhatResemblesAFormStays(t *testing.T) {
	for says, text := range map[string]string{
		"an object needs both of its brackets":          `[key=5] is the entry`,
		"an element of an array is no parameter":        `then a[key]=5`,
		"a parameter without object begins with a mark": `key=5&b=1`,
		"a header that is assigned has a scheme":        `authorization=required`,
		"a tag ends before the next begins":             `a <password b<c>d</password>`,
		"a pair says what the name is":                  `the 'password' value: 'required'`,
		"the name of a pair is quoted on both sides":    `name="password value="required"`,
		"a pair in a list is at its beginning":          `columns ('login', 'password', 'email')`,
		"a pair in a list has two elements":             `fields ['password', 'username', 'email']`,
		"the comparison of a column is no structure":    `select * from t where "key" = 5`,
		"a line of YAML is no line of a program":        "password: readPassword,\nsecret: string;\ncredential: Credential {\npassphrase: ask(\n",
		"YAML is in the line before, not further away":  "Note: this is how it goes.\n\nIt is easy.\nPassword: any word you like",
		"a comparison is no assignment":                 `if password==entered || secret =~ pattern || password!=given:`,
		"an option has a dash":                          `the token hunter2hunter2 is one`,
		"an option has a blank behind it":               `--token/--tokenfile2 name a file`,
	} {
		if got, count := AllRules.Text(text); got != text || count != (Count{}) {
			t.Errorf("%s:\n%s became\n%s (%+v)", says, text, got, count)
		}
	}
}
