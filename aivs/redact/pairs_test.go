package redact

import (
	"strings"
	"testing"
)

// pairCase is JSON with the redacted result; "" for JSON that does not change.
type pairCase struct{ raw, want string }

func checkPairs(t *testing.T, rules Rules, cases map[string]pairCase) {
	t.Helper()
	for name, c := range cases {
		if c.want == "" {
			c.want = c.raw
		}
		if got, _, err := rules.Record([]byte(c.raw)); err != nil || string(got) != c.want {
			t.Errorf("%s: %s became %s, want %s, error %v", name, c.raw, got, c.want, err)
		}
	}
}

// A member called name, or the like, names the value in a member called value of the same object.
// It must be one of the first eight members, before any object or array.
func TestNameNextToItsValue(t *testing.T) {
	few := strings.Repeat(`"a":1,`, maxPairMembers-1)
	escaped := strings.Repeat(`\u0050`, maxNameBytes/len(`\u0050`)+1) + `assword`
	checkPairs(t, AllRules, map[string]pairCase{
		"behind a number":              {`{"a":1,"name":"password","value":"x"}`, `{"a":1,"name":"password","value":"[REDACTED]"}`},
		"behind a text with a comma":   {`{"a":"b, c","name":"password","value":"x"}`, `{"a":"b, c","name":"password","value":"[REDACTED]"}`},
		"behind a text with a brace":   {`{"a":"b}","name":"password","value":"x"}`, `{"a":"b}","name":"password","value":"[REDACTED]"}`},
		"in a member called Parameter": {`{"Parameter":"password","value":"x"}`, `{"Parameter":"password","value":"[REDACTED]"}`},
		"with white space":             {`{ "name" : "password" , "value" : "x" }`, `{ "name" : "password" , "value" : "[REDACTED]" }`},
		"the eighth member":            {`{` + few + `"name":"password","value":"x"}`, `{` + few + `"name":"password","value":"[REDACTED]"}`},
		"the ninth member":             {`{"b":2,` + few + `"name":"password","value":"x"}`, ""},
		"no name":                      {`{"a":1,"value":"x"}`, ""},
		"no name among nine":           {`{"b":2,` + few + `"c":3,"value":"x"}`, ""},
		"behind an object":             {`{"a":{},"name":"password","value":"x"}`, ""},
		"within an object":             {`{"a": {"b":1,"name":"password"},"value":"x"}`, ""},
		"behind an array":              {`{"a":[1],"name":"password","value":"x"}`, ""},
		"a member without a name":      {`{"comment":"password","value":"x"}`, ""},
		"a number for a name":          {`{"name":5,"value":"x"}`, ""},
		"an empty name":                {`{"name":"","value":"x"}`, ""},
		"an empty object":              {`{"a":{},"value":"x"}`, ""},
		"in escapes":                   {`{"name":"\u0070assword","value":"x"}`, `{"name":"\u0070assword","value":"[REDACTED]"}`},
		"in many escapes":              {`{"name":"` + escaped + `","value":"x"}`, `{"name":"` + escaped + `","value":"[REDACTED]"}`},
		"as long as a name may be":     {`{"name":"` + longName("password", maxNameBytes) + `","value":"x"}`, `{"name":"` + longName("password", maxNameBytes) + `","value":"[REDACTED]"}`},
		"longer than a name may be":    {`{"name":"` + longName("password", maxNameBytes+1) + `","value":"x"}`, ""},
		"disguised":                    {`{"name":"ｐａｓｓｗｏｒｄ","value":"x"}`, `{"name":"ｐａｓｓｗｏｒｄ","value":"[REDACTED]"}`},
		"words that are no one's name": {`{"name":"token of thanks","value":"x"}`, ""},
		"several words":                {`{"name":"API password","value":"x"}`, `{"name":"API password","value":"[REDACTED]"}`},
	})
	checkPairs(t, AllRules&^RuleUnicode, map[string]pairCase{
		"disguised, without the rule": {`{"name":"ｐａｓｓｗｏｒｄ","value":"x"}`, ""},
		"a member, without the rule":  {`{"ｐａｓｓｗｏｒｄ":"x","token":"x"}`, `{"ｐａｓｓｗｏｒｄ":"x","token":"[REDACTED]"}`},
	})
}

// The name of an attribute of OpenTelemetry stays, and its value is hidden if that names a secret. In texts, key is a sensitive name as
// everywhere.
func TestAttributes(t *testing.T) {
	for raw, want := range map[string]string{
		`[{"key":"tool.name","value":{"stringValue":"search"}}]`:                          `[{"key":"tool.name","value":{"stringValue":"search"}}]`,
		`[{"key":"api_key","value":{"stringValue":"hunter2"}}]`:                           `[{"key":"api_key","value":"[REDACTED]"}]`,
		`[{"key":"http.request.header.authorization","value":{"stringValue":"hunter2"}}]`: `[{"key":"http.request.header.authorization","value":"[REDACTED]"}]`,
		`[{"key":"input","value":{"stringValue":"{\"key\": \"hunter2\"}"}}]`:              `[{"key":"input","value":{"stringValue":"{\"key\": \"[REDACTED]\"}"}}]`,
		`{"token":"hunter2","key":"password=hunter2"}`:                                    `{"token":"[REDACTED]","key":"password=[REDACTED]"}`,
	} {
		if got, _, err := AllRules.Attributes([]byte(raw)); err != nil || string(got) != want {
			t.Errorf("%s became %s, want %s, error %v", raw, got, want, err)
		}
	}
}

// longName returns a name of that length that contains a word.
func longName(word string, length int) string { return word + strings.Repeat("x", length-len(word)) }

// A pair of texts within a list is a name and its value. In a list whose name contains "header",
// so are every two elements.
func TestListsOfHeaders(t *testing.T) {
	checkPairs(t, AllRules, map[string]pairCase{
		"a pair":                       {`[["password","x"]]`, `[["password","[REDACTED]"]]`},
		"a pair, with white space":     {`[ [ "password" , "x" ] ]`, `[ [ "password" , "[REDACTED]" ] ]`},
		"one text":                     {`[["password"],"x"]`, ""},
		"no pair: four texts":          {`[["a","b","password","x"]]`, ""},
		"no pair: a number first":      {`[[1,"b","password","x"]]`, ""},
		"no pair: a number second":     {`[["a",1,"password","x"]]`, ""},
		"a list of headers":            {`{"headers":["a","b","password","x"]}`, `{"headers":["a","b","password","[REDACTED]"]}`},
		"a value that is called so":    {`{"headers":["a","password","b","x"]}`, ""},
		"as long as a name may be":     {`{"` + longName("header", maxNameBytes) + `":["password","x"]}`, `{"` + longName("header", maxNameBytes) + `":["password","[REDACTED]"]}`},
		"longer than a name may be":    {`{"` + longName("header", maxNameBytes+1) + `":["password","x"]}`, ""},
		"a list of texts, not headers": {`{"words":["password","x"]}`, ""},
	})
}
