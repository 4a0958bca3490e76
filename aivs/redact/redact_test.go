package redact

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/plumbline/plumbline/aivs/pyjson"
)

func TestRedactInputs(t *testing.T) {
	cases := []struct {
		raw, want string
		count     int
	}{
		{`{"path":"/tmp","n": 1.50}`, `{"path":"/tmp","n": 1.50}`, 0},
		{`{"api_key":"k", "n": 1.50}`, `{"api_key":"[REDACTED]", "n": 1.50}`, 1},
		{`{"monkey":1,"max_tokens":2,"MyPassWord":null}`, `{"monkey":"[REDACTED]","max_tokens":"[REDACTED]","MyPassWord":"[REDACTED]"}`, 3},
		{`[{"a":{"Authorization":{"x":[1]}}},{"bearer":false}]`, `[{"a":{"Authorization":"[REDACTED]"}},{"bearer":"[REDACTED]"}]`, 2},
		{`{"body":"{\"user\":\"u\",\"passwd\":\"p\"}"}`, `{"body":"{\"user\":\"u\",\"passwd\":\"[REDACTED]\"}"}`, 1},
		{`"{\"a\":\"[{\\\"secret\\\":1}]\"}"`, `"{\"a\":\"[{\\\"secret\\\":\\\"[REDACTED]\\\"}]\"}"`, 1},
		{`{"body":"{\"passwd\":1}\n{\"token\":2}"}`, `{"body":"{\"passwd\":\"[REDACTED]\"}\n{\"token\":\"[REDACTED]\"}"}`, 2},
		{`{"body":"{ \"passwd\": not JSON"}`, `{"body":"{ \"passwd\": \"[REDACTED]\""}`, 1},
		{`"{\"api_key\":\"x\"} and then"`, `"{\"api_key\":\"[REDACTED]\"} and then"`, 1},
		{`"POST {\"a\":[{\"token\": 12 }],\"key\":{\"b\":\"}\"}} 200"`, `"POST {\"a\":[{\"token\": \"[REDACTED]\" }],\"key\":\"[REDACTED]\"} 200"`, 2},
		{`"say \"hi\": {\"b\":\"{\\\"secret\\\": \\\"x\\\"}\"}!"`, `"say \"hi\": {\"b\":\"{\\\"secret\\\": \\\"[REDACTED]\\\"}\"}!"`, 1},
		{`"cut: {\"b\":\"{\\\"secret\\\":\\\"x"`, `"cut: {\"b\":\"{\\\"secret\\\":\\\"[REDACTED]\\\""`, 1},
		{`"{\"token\": true}\n{\"token\":[1,2]}\n---\n{\"token\":null"`, `"{\"token\": \"[REDACTED]\"}\n{\"token\":\"[REDACTED]\"}\n---\n{\"token\":\"[REDACTED]\""`, 3},
		{`"see {\\u0022token\\u0022:1}"`, `"[REDACTED]"`, 1},
		{`{"{\"token\":1}":"x","a {\"token\":1}":2}`, `{"{\"token\":\"[REDACTED]\"}":"[REDACTED]","a {\"token\":\"[REDACTED]\"}":"[REDACTED]"}`, 4},
		{`"the \"token\" and a key: value, \"x\": 1"`, `"the \"token\" and a key: value, \"x\": 1"`, 0},
		{`{"text":"the password is x"}`, `{"text":"the password is x"}`, 0},
		{`{"p\u0061ssphrase":"x"}`, `{"p\u0061ssphrase":"[REDACTED]"}`, 1},
		{"{\"pa\u017f\u017fword\":1,\"authorİzation\":2}", "{\"pa\u017f\u017fword\":\"[REDACTED]\",\"authorİzation\":\"[REDACTED]\"}", 2},
		{`{"a.b.passphrase.c":1,"":{"X-Api-Key":2},"db":{"PASSWD":[{"x":1}]}}`, `{"a.b.passphrase.c":"[REDACTED]","":{"X-Api-Key":"[REDACTED]"},"db":{"PASSWD":"[REDACTED]"}}`, 3},
		{"{\"\u212aey\":1}", "{\"\u212aey\":\"[REDACTED]\"}", 1},
		{`{"key":"[REDACTED]"}`, `{"key":"[REDACTED]"}`, 0},
		{`{"a":1,"credentials":[1,2,{"b":3}],"z":4}`, `{"a":1,"credentials":"[REDACTED]","z":4}`, 1},
	}
	for _, c := range cases {
		for _, rules := range []Rules{NoRules, AllRules} { // the optional rules change nothing in it
			got, count, err := rules.Inputs([]byte(c.raw))
			if want := (Count{Draft: c.count}); err != nil || string(got) != c.want || count != want {
				t.Errorf("%b: %s\n became %s (%+v), want %s (%+v), error %v", rules, c.raw, got, count, c.want, want, err)
			}
		}
	}
}

func TestRedactRecord(t *testing.T) {
	cases := []struct {
		raw, want string
		count     int
	}{
		{`{"usage":{"max_tokens":1,"tokenizer":"x","keyboard":2}}`, `{"usage":{"max_tokens":1,"tokenizer":"x","keyboard":2}}`, 0},
		{`{"api_key":1,"apiKey":2,"API-KEY":3,"apikey":4,"access token":5,"accessToken":6}`,
			`{"api_key":"[REDACTED]","apiKey":"[REDACTED]","API-KEY":"[REDACTED]","apikey":"[REDACTED]","access token":"[REDACTED]","accessToken":"[REDACTED]"}`, 6},
		{`{"APIKey":1,"key2":2,"x.secret":3}`, `{"APIKey":"[REDACTED]","key2":"[REDACTED]","x.secret":"[REDACTED]"}`, 3},
		{`{"OAUTHToken":1,"DB_PASSWORD":2,"TOKENS":3,"JWTs":4}`, `{"OAUTHToken":"[REDACTED]","DB_PASSWORD":"[REDACTED]","TOKENS":3,"JWTs":4}`, 2},
		{`{"action":{"parameters":{"max_tokens":1}},"max_tokens":1}`, `{"action":{"parameters":{"max_tokens":"[REDACTED]"}},"max_tokens":1}`, 1},
		{`{"reasoning":"{\"password\":\"x\",\"mytoken\":1}"}`, `{"reasoning":"{\"password\":\"[REDACTED]\",\"mytoken\":1}"}`, 1},
		{`{"outputs":["[{\"a\":\"{\\\"secret\\\":1}\"}]"]}`, `{"outputs":["[{\"a\":\"{\\\"secret\\\":\\\"[REDACTED]\\\"}\"}]"]}`, 1},
		{`"x {\"max_tokens\":1,\"inputs\":{\"max_tokens\":1},\"monkey\":1}"`, `"x {\"max_tokens\":1,\"inputs\":{\"max_tokens\":\"[REDACTED]\"},\"monkey\":1}"`, 1},
		{`{"a":"{\"inputs\":{\"max_tokens\":1}}"}`, `{"a":"{\"inputs\":{\"max_tokens\":\"[REDACTED]\"}}"}`, 1},
		{`{"text":"{the password is x}","code":"\"password\""}`, `{"text":"{the password is x}","code":"\"password\""}`, 0},
		{`{"execution":{"inputs":"{\"mytoken\":1}","outputs":"{\"mytoken\":1}"}}`, `{"execution":{"inputs":"{\"mytoken\":\"[REDACTED]\"}","outputs":"{\"mytoken\":1}"}}`, 1},
	}
	for _, c := range cases {
		for _, rules := range []Rules{NoRules, AllRules} {
			got, count, err := rules.Record([]byte(c.raw))
			if want := (Count{Draft: c.count}); err != nil || string(got) != c.want || count != want {
				t.Errorf("%b: %s\n became %s (%+v), want %s (%+v), error %v", rules, c.raw, got, count, c.want, want, err)
			}
		}
	}
}

func TestRedactReturnsItsInputWhenNothingMatches(t *testing.T) {
	for _, raw := range []string{`{"path":"/tmp"}`, `{"text":"a token","max_tokens":5}`} {
		in := []byte(raw)
		if out, count, err := AllRules.Record(in); err != nil || count != (Count{}) || &out[0] != &in[0] {
			t.Errorf("%s: %s, %+v, %v", raw, out, count, err)
		}
	}
}

func TestRedactRefusesBrokenJSON(t *testing.T) {
	broken := []string{`{"token" 1}`, `[{"token":1]`, `["token" 1]`}
	for whole, end := `{"token":1,"a":[1,{"b":2},"c"],"d":{"e":null}}`, len(`{"token"`); end < len(whole); end++ {
		broken = append(broken, whole[:end]) // truncated
	}
	for _, raw := range broken {
		if out, _, err := AllRules.Inputs([]byte(raw)); err == nil {
			t.Errorf("%s became %s", raw, out)
		}
	}
}

// A secret is redacted at any depth and in any surrounding text, every replacement is counted,
// and redacting again changes nothing.
func TestRedactIsCompleteAndIdempotent(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		raw := nest(r, `"hunter2"`, rapid.IntRange(0, 6).Draw(r, "depth"))
		rules := rapid.SampledFrom([]Rules{NoRules, AllRules}).Draw(r, "rules")
		out, count, err := rules.Inputs([]byte(raw))
		if err != nil || count.Sum() == 0 || rules == NoRules && count.Draft != strings.Count(string(out), "[REDACTED]") || strings.Contains(string(out), "hunt") || !jsontext.Value(out).IsValid() {
			r.Fatalf("%s became %s (%+v): %v", raw, out, count, err)
		}
		if again, count, err := rules.Inputs(out); err != nil || count.Sum() != 0 || string(again) != string(out) {
			r.Fatalf("%s became %s (%+v): %v", out, again, count, err)
		}
	})
}

// nest puts a secret below objects, arrays and strings of JSON text, surrounded by other text.
func nest(r *rapid.T, secret string, depth int) string {
	value := `{"` + rapid.SampledFrom([]string{"PassWord", "x_token_y", "t\\u006fken", "monkey"}).Draw(r, "name") + `" :` + secret + `}`
	debris := rapid.StringOfN(rapid.SampledFrom([]rune("\"\"\\\\{}[]:,\n a1é")), 0, 12, -1)
	for range depth {
		switch rapid.IntRange(0, 5).Draw(r, "layer") {
		case 0:
			value = `[1, ` + value + `]`
		case 1:
			value = `{"a" :` + value + `,"b":[]}`
		case 2:
			value = `{` + quoted(value) + `:[]}`
		case 3:
			value = strings.ReplaceAll(quoted(value), `\"`, `\u0022`)
		case 4:
			value = quoted(debris.Draw(r, "before") + value + debris.Draw(r, "after"))
		default:
			value = quoted(value)
		}
	}
	return value
}

func quoted(text string) string { return string(pyjson.AppendString(nil, text)) }

// A secret is also redacted where the text is truncated, at any place.
func TestRedactTextThatIsCutOff(t *testing.T) {
	for _, text := range []string{`{"a":{"token" : "hunter2"}}`, `x "body":"{\"token\": [\"hunter2\"]}" y`, `[1,"{\"b\":\"{\\\"key\\\":{\\\"c\\\":\\\"hunter2\\\"}}\"}"]`} {
		for end := range len(text) {
			out, _, err := NoRules.Inputs([]byte(quoted(text[:end])))
			if err != nil || strings.Contains(string(out), "h") {
				t.Errorf("%s became %s: %v", text[:end], out, err)
			}
		}
	}
}

// Text that is nested in more strings than the limit is hidden whole.
func TestRedactHidesWhatIsTooDeep(t *testing.T) {
	value := `{"token":"hunter2"}`
	for range 2 * maxTexts {
		value = strings.NewReplacer(`\`, `\u005c`, `"`, `\u0022`).Replace(value)
		value = `"` + value + `"`
	}
	out, count, err := NoRules.Inputs([]byte(value))
	if err != nil || count.Draft != 1 || !strings.Contains(string(out), "[REDACTED]") || len(out) > len(value) {
		t.Errorf("%d of %d bytes, %+v, %v", len(out), len(value), count, err)
	}
}

// The quick check of a text finds every word, at any place and in any spelling, and none where
// there is none.
func TestMayApplyMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringMatching(`[a-zA-Z_":{} ]{0,40}`).Draw(t, "text"))
		if rapid.Bool().Draw(t, "planted") {
			word := []byte(rapid.SampledFrom(sensitive[:]).Draw(t, "word"))
			for i := range word {
				if rapid.Bool().Draw(t, "capital") {
					word[i] = bytes.ToUpper(word[i : i+1])[0]
				}
			}
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = slices.Insert(text, at, word...)
		}
		if got, want := NoRules.mayApply(text), holdsSensitive(string(text)); got != want {
			t.Fatalf("%q may hold a word: %v, want %v", text, got, want)
		}
	})
}

// A word that only begins like one of the draft's does not match.
func TestMayApplyFindsWholeWords(t *testing.T) {
	for _, text := range []string{"a passage, by an author", "the second API", "tok, cred, bear", `{"secured":"tokyo"}`, "passwor", "authorisation"} {
		if NoRules.mayApply([]byte(text)) {
			t.Errorf("mayApply(%q) is true, but none of the words matches", text)
		}
	}
}

// A text of our own quotes foreign texts as Go does: the content of a quotation is redacted as it
// was before quoting.
func TestMessageHidesWhatItQuotes(t *testing.T) {
	for text, want := range map[string]string{
		`action "password: hunter2" is in neither list`:           `action "password: [REDACTED]" is in neither list`,
		`session "{\"token\":\"hunter2\"}" of agent "a": gone`:    `session "{\"token\":\"[REDACTED]\"}" of agent "a": gone`,
		`read "https://a/?key=hunter2": it failed`:                `read "https://a/?key=[REDACTED]": it failed`,
		`"a" is executed, "Bearer hunter2hunter2" and "c\nd" too`: `"a" is executed, "Bearer [REDACTED]" and "c\nd" too`,
		`login with password=hunter2`:                             `login with password=[REDACTED]`,
		`an odd " and "token"`:                                    `an odd " and "token"`,
		`nothing to "hide", key "k1"`:                             `nothing to "hide", key "k1"`,
		`"session.key": permission denied`:                        `"session.key": permission denied`,
		`open "session.key": permission denied`:                   `open "session.key": permission denied`,
		`read {"token": "hunter2"}: no card`:                      `read {"token": "[REDACTED]"}: no card`,
		"":                                                        "",
	} {
		got, count := AllRules.Message(text)
		if got != want || (count.Sum() > 0) != (got != text) {
			t.Errorf("%s became %s (%+v), want %s", text, got, count, want)
		}
	}
}
