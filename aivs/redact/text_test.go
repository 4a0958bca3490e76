package redact

import "testing"

// A text that is JSON is redacted as JSON, also inside a string of JSON text.
func TestTextThatIsJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"value":"x","n":[1],"name":"password"}`:            "",
		`{"value":"x","name":"password"}`:                    `{"value":"[REDACTED]","name":"password"}`,
		quoted(`{"value":"x","name":"password"}`):            quoted(`{"value":"[REDACTED]","name":"password"}`),
		quoted(`["a"]`) + ` {"value":"x","name":"password"}`: `"[\"a\"]" {"value":"[REDACTED]","name":"password"}`,
		quoted(`[["password","x"]]`):                         quoted(`[["password","[REDACTED]"]]`),
	} {
		if want == "" {
			want = text
		}
		if got, count := AllRules.Text(text); got != want {
			t.Errorf("%s became %s (%+v), want %s", text, got, count, want)
		}
	}
}

// In text that is not JSON as a whole, the value of each member with a sensitive name is hidden
// completely.
func TestMembersInText(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a text that is JSON follows escapes":     {`{"t\u006fken":"x","n":1}`, `{"t\u006fken":"[REDACTED]","n":1}`},
		"a text that is not JSON does not":        {`see {"t\u006fken":"x","n":1}`, Mark},
		"a word ends at a comma":                  {`x {"token": 12,"n":1}`, `x {"token": "[REDACTED]","n":1}`},
		"a word ends at a brace":                  {`x {"token": 12}, {"n":1}`, `x {"token": "[REDACTED]"}, {"n":1}`},
		"a word ends at a bracket":                {`x ["token": 12] y`, `x ["token": "[REDACTED]"] y`},
		"a word ends with the line":               {"x \"token\": 12 \r\ny\n", "x \"token\": \"[REDACTED]\" \r\ny\n"},
		"a word ends at a quotation mark":         {`x {"token": 12 "n":1}`, `x {"token": "[REDACTED]" "n":1}`},
		"an object ends at its own brace":         {`x {"token":{"a":{"b":1},"c":"x"},"n":1}`, `x {"token":"[REDACTED]","n":1}`},
		"an array ends with the string around it": {`x {"a":"{\"token\": [1, 2","n":"b"}`, `x {"a":"{\"token\": \"[REDACTED]\"","n":"b"}`},
		"white space is as a string writes it":    {`x "{\"token\"\n:\r\t\"x\"}"`, `x "{\"token\"\n:\r\t\"[REDACTED]\"}"`},
		"the text of a string, cut out of it":     {`\"token\":\"x\"`, `\"token\":\"[REDACTED]\"`},
		"a backslash alone is none":               {`x "{\"token\"\x:\"x\"}"`, `x "{\"token\"\x:\"x\"}"`},
		"a quotation mark may open a name, too":   {`x "token":"a"password":"x"`, `x "token":"[REDACTED]"password":"[REDACTED]"`},
		"below inputs, parts of words count":      {`x "inputs":{"a":{"max_tokens":1}}`, `x "inputs":{"a":{"max_tokens":"[REDACTED]"}}`},
		"behind inputs, whole words do":           {`x "inputs":{"a":1}"max_tokens":1`, `x "inputs":{"a":1}"max_tokens":1`},
		"below another name, whole words do":      {`x {"usage":{"max_tokens":1}}`, `x {"usage":{"max_tokens":1}}`},
		"no value is left out":                    {`x {"token":}, {"token": `, `x {"token":}, {"token": `},
	} {
		if got, count := NoRules.Text(c.text); got != c.want || (count.Sum() > 0) != (got != c.text) {
			t.Errorf("%s: %s became %s (%+v), want %s", name, c.text, got, count, c.want)
		}
	}
}
