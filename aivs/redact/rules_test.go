package redact

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline/plumbline/schema/published"
	"pgregory.net/rapid"
)

// hidingCases are values that each rule hides, as the value of a member whose name is not
// sensitive. The secret is "hunter2" with the text attached to it.
var hidingCases = []struct {
	rule       Rules
	text, want string // as a text; a case of JSON begins with { or [
}{
	{RuleAuthorization, `curl -H 'Authorization: Bearer hunter2' https://a/`, `curl -H 'Authorization: Bearer [REDACTED]' https://a/`},
	{RuleAuthorization, "GET / HTTP/1.1\r\nProxy-authorization: basic aHVudGVyMg==\r\nHost: a", "GET / HTTP/1.1\r\nProxy-authorization: basic [REDACTED]\r\nHost: a"},
	{RuleAuthorization, `Authorization: Digest username="u", response="hunter2"`, `Authorization: Digest [REDACTED]`},
	{RuleAuthorization, "X-Api-Key: hunter2\nAccept: *", "X-Api-Key: [REDACTED]\nAccept: *"},
	{RuleAuthorization, `sent Bearer hunter2hunter2, got 401`, `sent Bearer [REDACTED], got 401`},
	{RuleAuthorization, `["Accept: */*","Authorization: Bearer hunter2"]`, `["Accept: */*","Authorization: Bearer [REDACTED]"]`},
	{RuleHeaderList, `[["Accept","*/*"],["Authorization","hunter2"]]`, `[["Accept","*/*"],["Authorization","[REDACTED]"]]`},
	{RuleHeaderList, `{"rawHeaders":["Accept","*/*","X-Api-Key","hunter2"]}`, `{"rawHeaders":["Accept","*/*","X-Api-Key","[REDACTED]"]}`},
	{RuleHeaderList, `[('Accept', '*/*'), ('Authorization', 'hunter2')]`, `[('Accept', '*/*'), ('Authorization', '[REDACTED]')]`},
	{RuleHeaderList, `[(b'x-api-key', b'hunter2')]`, `[(b'x-api-key', b'[REDACTED]')]`},
	{RuleNameValue, `[{"name":"Authorization","value":"hunter2"},{"name":"Accept","value":"*"}]`, `[{"name":"Authorization","value":"[REDACTED]"},{"name":"Accept","value":"*"}]`},
	{RuleNameValue, `{"Value":"hunter2","Name":"DB_PASSWORD"}`, `{"Value":"[REDACTED]","Name":"DB_PASSWORD"}`},
	{RuleNameValue, `{"field":"\u0061pi_key","value":{"stringValue":"hunter2"}}`, `{"field":"\u0061pi_key","value":"[REDACTED]"}`},
	{RuleNameValue, `<add key="DbPassword" value="hunter2" />`, `<add key="DbPassword" value="[REDACTED]" />`},
	{RuleNameValue, `<param name='token'>hunter2</param>`, `<param name='token'>[REDACTED]</param>`},
	{RuleNameValue, `x [{'name': 'Authorization', 'value': 'hunter2'}]`, `x [{'name': 'Authorization', 'value': '[REDACTED]'}]`},
	{RuleURL, `see https://a.example/b?page=2&access_token=hunter2&x=1#key=hunter2.`, `see https://a.example/b?page=2&access_token=[REDACTED]&x=1#key=[REDACTED].`},
	{RuleURL, `POST https://a/?user[name]=u&user[Password]=hunter2&a[b][token]=hunter2`, `POST https://a/?user[name]=u&user[Password]=[REDACTED]&a[b][token]=[REDACTED]`},
	{RuleURL, `user%5Btoken%5D=hunter2&user%5bapi_key%5d=hunter2&n=1`, `user%5Btoken%5D=[REDACTED]&user%5bapi_key%5d=[REDACTED]&n=1`},
	{RuleURL, `[link](https://a/?key=hunter2)`, `[link](https://a/?key=[REDACTED])`},
	{RuleAssignment, `mysql --user=root --password=hunter2 db`, `mysql --user=root --password=[REDACTED] db`},
	{RuleAssignment, `export PGPASSWORD="hunter2 x"; API_KEY = hunter2`, `export PGPASSWORD="[REDACTED]"; API_KEY = [REDACTED]`},
	{RuleAssignment, `connect(user='u', password='hunter2', port=1)`, `connect(user='u', password='[REDACTED]', port=1)`},
	{RuleAssignment, `Server=s;Password=hunter2;Database=d`, `Server=s;Password=[REDACTED];Database=d`},
	{RuleAssignment, `login --token hunter2hunter2 now`, `login --token [REDACTED] now`},
	{RuleAssignment, `a=1,password=hun,ter2hunter2,b=2`, `a=1,password=[REDACTED],b=2`},
	{RuleYAML, "db:\n  user: u\n  password: hunter2 # the old one\n  port: 1\n", "db:\n  user: u\n  password: [REDACTED] # the old one\n  port: 1\n"},
	{RuleYAML, "user: u\npassphrase: correct horse hunter2\n", "user: u\npassphrase: [REDACTED]\n"},
	{RuleYAML, "private_key: |\n  hunter2\n\n  hunter2\nnext: 1", "private_key: [REDACTED]\nnext: 1"},
	{RuleYAML, "- name: a\n  credentials:\n    id: 1\n    word: hunter2\n  c: 1", "- name: a\n  credentials:\n    [REDACTED]\n  c: 1"},
	{RuleYAML, "'api_key': \"hunter2\"\nb: 1", "'api_key': \"[REDACTED]\"\nb: 1"},
	{RuleXML, "<a><ns:Password type=\"x\">\n hunter2 </ns:Password><b>1</b></a>", "<a><ns:Password type=\"x\">\n [REDACTED] </ns:Password><b>1</b></a>"},
	{RuleXML, `<secret><value>hunter2</value></secret><c/>`, `<secret>[REDACTED]</secret><c/>`},
	{RuleXML, `<auth><password>hunter`, `<auth><password>[REDACTED]`},
	{RuleRepr, `{'user': 'u', 'password': 'it\'s hunter2', 'n': 1}`, `{'user': 'u', 'password': '[REDACTED]', 'n': 1}`},
	{RuleRepr, `{'credential': {'a': ['}', "hunter2"]}, 'n': 1}`, `{'credential': [REDACTED], 'n': 1}`},
	{RuleRepr, `{'token': b'hunter2', 'key': 12}`, `{'token': b'[REDACTED]', 'key': [REDACTED]}`},
	{RuleRepr, `{:a=>1, "b"=>2, 'secret'=>'hunter2'}`, `{:a=>1, "b"=>2, 'secret'=>'[REDACTED]'}`},
	{RuleRepr, `"{\'password\': \'hunter2\', \'n\': 1}"x`, `"{\'password\': \'[REDACTED]\', \'n\': 1}"x`},
	{RuleRepr, `{password: 'hunter2', n: 1}`, `{password: '[REDACTED]', n: 1}`},
	{RuleRepr, `{'password': 'hunter`, `{'password': '[REDACTED]`},
	{RuleUnicode, `{"ｐａｓｓｗｏｒｄ":"hunter2"}`, `{"ｐａｓｓｗｏｒｄ":"[REDACTED]"}`},
	{RuleUnicode, "{\"to\u200bken\":[\"hunter2\"],\"a\u00adb\":1}", "{\"to\u200bken\":\"[REDACTED]\",\"a\u00adb\":1}"},
	{RuleUnicode | RuleAssignment, "x ｐａｓｓｗｏｒｄ＝hunter2 y", "x ｐａｓｓｗｏｒｄ＝[REDACTED] y"},
	{RuleUnicode | RuleRepr, "{'pass\u200dword': 'hunter2'}", "{'pass\u200dword': '[REDACTED]'}"},
	{RuleBase64, encode64(`{"password":"hunter2"}`), encode64(`{"password":"[REDACTED]"}`)},
	{RuleBase64, "data:application/json;base64," + encode64(`[{"a":{"token":"hunter2"}}]`) + " ok", "data:application/json;base64," + encode64(`[{"a":{"token":"[REDACTED]"}}]`) + " ok"},
	{RuleBase64, "https://h.example/share-with/" + encode64(`{"password":"hunter2"}`) + "#x", "https://h.example/share-with/" + encode64(`{"password":"[REDACTED]"}`) + "#x"},
	{RuleBase64, base64.RawURLEncoding.EncodeToString([]byte(`{"key":"hunter2???>>>"}`)), base64.RawURLEncoding.EncodeToString([]byte(`{"key":"[REDACTED]"}`))},
	{RuleBase64, encode64(`{"a":"` + encode64(`{"secret":1}`) + `"}`), encode64(`{"a":"` + encode64(`{"secret":"[REDACTED]"}`) + `"}`)},
}

func encode64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// inRecord puts a text, or JSON, into a record.
func inRecord(text string) string {
	if strings.HasPrefix(text, `{"`) || strings.HasPrefix(text, `["`) || strings.HasPrefix(text, `[[`) || strings.HasPrefix(text, `[{"`) {
		return `{"a":` + text + `}`
	}
	return `{"a":` + quoted(text) + `}`
}

// Each rule hides its cases, alone and with all others, and its replacements are counted
// separately. Without the rule the text stays.
func TestOptionalRules(t *testing.T) {
	for _, c := range hidingCases {
		raw, want := inRecord(c.text), inRecord(c.want)
		for _, rules := range []Rules{c.rule, AllRules} {
			got, count, err := rules.Record([]byte(raw))
			marks := strings.Count(want, "[REDACTED]")
			if marks == 0 && c.rule == RuleBase64 {
				marks = 1
			}
			if err != nil || string(got) != want || count.Draft != 0 || count.Optional != marks {
				t.Errorf("%s, of %d rules:\n%s became\n%s (%+v), want\n%s, error %v", nameOfRule(c.rule), rules, raw, got, count, want, err)
			}
			if again, count, err := rules.Record(got); err != nil || count != (Count{}) || string(again) != string(got) {
				t.Errorf("%s: redacted again, %s became %s (%+v), %v", nameOfRule(c.rule), got, again, count, err)
			}
		}
		if got, count, err := NoRules.Record([]byte(raw)); err != nil || string(got) != raw || count != (Count{}) {
			t.Errorf("the draft's rule alone: %s became %s (%+v), %v", raw, got, count, err)
		}
		for _, r := range ruleTable {
			if got, _, _ := (AllRules &^ r.rule).Record([]byte(raw)); c.rule == r.rule && string(got) == want && !alsoHides(c.text) {
				t.Errorf("%s: hidden without the rule: %s", r.name, got)
			}
		}
	}
}

// alsoHides reports whether several rules hide a case.
func alsoHides(text string) bool {
	return slices.ContainsFunc([]string{"'api_key': \"hunter2\"", "Proxy", "Bearer hunter2", "X-Api-Key: ", "--token"}, func(s string) bool { return strings.Contains(text, s) })
}

func nameOfRule(rule Rules) string {
	for _, r := range ruleTable {
		if r.rule == rule {
			return r.name
		}
	}
	return "several"
}

// Every rule hides its example in docs/BUNDLES.md.
func TestExamplesOfTheRules(t *testing.T) {
	for _, r := range ruleTable {
		got, count, err := r.rule.Record([]byte(inRecord(r.example)))
		if err != nil || count != (Count{Optional: 1}) || strings.Contains(string(got), "hunter2") {
			t.Errorf("%s: %s (%+v), %v", r.name, got, count, err)
		}
	}
}

// Texts that mention secrets and contain none do not change.
func TestHarmlessTextsStay(t *testing.T) {
	for _, text := range []string{
		"Reset your password: go to the settings, then choose a new one.",
		"Password: must be at least eight characters long, with a digit",
		"The key: be patient. The token: a word or a piece of one.",
		"I need your authorization: may I book the flight?",
		"the bearer of this letter, a bearer token, Bearer authentication",
		"sorted(items, key=len); max(d, key=lambda x: x[1]); if token == next_token:",
		"password=os.environ['DB_PASSWORD'], token=get_token(user), api_key=$API_KEY, secret=${SECRET}, password=None",
		"usage: login --password <password> --token TOKEN [--key FILE]",
		"key: app\ntoken: next\nkey: value",
		"## API key\n\n- Token: the token that the server gave\n- Key: the key to use",
		"key = the value that opens it; token = word",
		`{"required":["password","username"]}`, `["token","key"]`, `[["a","b"],["password","username","email"]]`,
		`{"name":"Key West","value":3}`, `{"name":"password","value":""}`, `{"name":"token enabled","value":true}`,
		"<key>app</key><p>the <token> in it</p>",
		"eyJ is how it begins; eyJhIjoxfQ== has nothing", "W3siYSI6MX1d",
		"monkey=5 keyboard: 3 turkey='x' secretary: Ann tokenizer=bpe maxTokens: 5",
		"password: ${DB_PASSWORD}\nuser: u", "password: {{ vault.password }}\nuser: u", "api_key: ********\nuser: u",
		"https://a.example/?q=password&page=2", "select * from t where key = 5 and token in (1, 2)",
		"// the secret to good code: keep it simple", "x-request-id: 7f3a-11\nsort-key: name, then date, then size",
	} {
		raw := inRecord(text)
		if got, count, err := AllRules.Record([]byte(raw)); err != nil || count != (Count{}) {
			t.Errorf("%s became %s (%+v), %v", raw, got, count, err)
		}
	}
}

func TestParseRules(t *testing.T) {
	var every []string
	for _, r := range ruleTable {
		every = append(every, r.name)
	}
	for _, c := range []struct {
		names []string
		want  Rules
		fault string
	}{
		{[]string{"all"}, AllRules, ""}, {[]string{"none"}, NoRules, ""}, {[]string{"url", "yaml"}, RuleURL | RuleYAML, ""},
		{every, AllRules, ""}, {nil, 0, "no redaction rule is named"}, {[]string{"url", "all"}, 0, `called "all"`}, {[]string{"URL"}, 0, `called "URL"`},
	} {
		got, err := ParseRules(c.names)
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: %b, %v", c.names, got, err)
		}
	}
}

// However forms adjoin, overlap or nest: the result is JSON, nothing outside strings changes, and
// redacting again changes nothing.
func TestOptionalRulesAreIdempotent(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 8).Draw(r, "pieces") {
			piece := rapid.SampledFrom(hidingCases).Draw(r, "piece").text
			cut := rapid.IntRange(0, len(piece)).Draw(r, "cut")
			text.WriteString(strings.ToValidUTF8(piece[:cut], "\u200b"))
			text.WriteString(rapid.StringOfN(rapid.SampledFrom([]rune("\"'\\\\{}[]()<>:,;=&?#-. \n\t a1K/\u200bｋ")), 0, 5, -1).Draw(r, "debris"))
		}
		raw := []byte(inRecord(text.String()))
		if !rapid.Bool().Draw(r, "as JSON") {
			raw = []byte(`{"a":[` + quoted(text.String()) + `,1.50]}`)
		}
		checkIdempotent(r, raw)
	})
}

func checkIdempotent(t rapid.TB, raw []byte) {
	t.Helper()
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true)) {
		return
	}
	for _, redact := range []func([]byte) ([]byte, Count, error){AllRules.Inputs, AllRules.Record} {
		out, count, err := redact(raw)
		if err != nil || !jsontext.Value(out).IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("%s became %s, which is not JSON: %v", raw, out, err)
		}
		again, more, err := redact(out)
		if err != nil || more != (Count{}) || string(again) != string(out) {
			t.Fatalf("%s became %s (%+v), and that %s (%+v), %v", raw, out, count, again, more, err)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, c := range hidingCases {
		f.Add([]byte(inRecord(c.text)))
		f.Add([]byte(`"` + c.text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		checkIdempotent(t, raw)
		checkIdempotent(t, []byte(quoted(strings.ToValidUTF8(string(raw), "?"))))
	})
}

// disguiseLeads contains the first bytes of all characters that plainRune changes.
func TestDisguiseLeads(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if plainRune(r) != r && strings.IndexByte(disguiseLeads, string(r)[0]) < 0 {
			t.Errorf("%U begins with %#x", r, string(r)[0])
		}
	}
}

// Recorded conversations and tool calls contain no secret: no rule hides anything in them.
func TestOptionalRulesOnTheCorpus(t *testing.T) {
	for _, line := range published.Lines(t, "corpus/traces.jsonl.gz") {
		if out, count, err := AllRules.Record(line); err != nil || count.Optional != 0 {
			t.Errorf("%s became %s (%+v), %v", line, out, count, err)
		}
	}
}

// corpus returns the recorded traces, or skips the test.
// If a record is clean, no value and no text of it has anything to hide, whatever its name is.
func TestNothingInACleanRecordIsHidden(t *testing.T) {
	clean := 0
	check := func(t interface{ Fatalf(string, ...any) }, rules Rules, raw []byte) {
		if !rules.Clean(raw) {
			return
		}
		clean++
		same := func(got []byte, count Count, err error, want []byte) {
			if err != nil || count != (Count{}) || !bytes.Equal(got, want) {
				t.Fatalf("%b: %s became %s (%+v, %v), and %s is clean", rules, want, got, count, err, raw)
			}
		}
		got, count, err := rules.Record(raw)
		same(got, count, err, raw)
		for decoder := jsontext.NewDecoder(bytes.NewReader(raw)); ; {
			if kind := decoder.PeekKind(); kind == '{' || kind == '[' {
				value, err := jsontext.NewDecoder(bytes.NewReader(bytes.TrimLeft(raw[decoder.InputOffset():], " ,:"))).ReadValue()
				if err != nil {
					t.Fatalf("%s: %v", raw, err)
				}
				got, count, err := rules.Inputs(value)
				same(got, count, err, value)
			}
			token, err := decoder.ReadToken()
			if err != nil {
				return
			}
			if token.Kind() == '"' {
				text := token.String()
				hidden, count := rules.Text(text)
				same([]byte(hidden), count, nil, []byte(text))
				quoted, err := jsontext.AppendQuote(nil, text)
				if err != nil {
					t.Fatalf("%s: %v", raw, err)
				}
				got, count, err := rules.Inputs(quoted)
				same(got, count, err, quoted)
			}
		}
	}
	pieces := []string{"to", "ken", "key", "api_", "pass", "word", "eyJ", "W3s", "W1si", `\/`, `\\`, `\"`, `\n`, `\u0061`, "\u212a", "ｐ", "é", " ", ":", "=", "{", "}", `{\"a\":1}`, "b", "1"}
	text := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6)
	rapid.Check(t, func(r *rapid.T) {
		draw := func(name string) string { return strings.Join(text.Draw(r, name), "") }
		raw := fmt.Sprintf(`{"%s":["%s",{"%s":"%s"}],"inputs":{"x%s":{"y":"%s"}}}`, draw("a"), draw("b"), draw("c"), draw("d"), draw("e"), draw("f"))
		for _, rules := range []Rules{NoRules, AllRules, RuleBase64, AllRules &^ RuleUnicode} {
			check(r, rules, []byte(raw))
		}
	})
	for _, raw := range published.Lines(t, "corpus/traces.jsonl.gz") {
		check(t, AllRules, raw)
	}
	if clean == 0 {
		t.Error("no record was clean")
	}
}
