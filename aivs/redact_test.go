package aivs

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
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
		{`{"body":"{ \"passwd\": not JSON"}`, `{"body":"{ \"passwd\": not JSON"}`, 0},
		{`{"text":"the password is x"}`, `{"text":"the password is x"}`, 0},
		{`{"p\u0061ssphrase":"x"}`, `{"p\u0061ssphrase":"[REDACTED]"}`, 1},
		{"{\"pa\u017f\u017fword\":1,\"authorİzation\":2}", "{\"pa\u017f\u017fword\":\"[REDACTED]\",\"authorİzation\":\"[REDACTED]\"}", 2},
		{`{"a.b.passphrase.c":1,"":{"X-Api-Key":2},"db":{"PASSWD":[{"x":1}]}}`, `{"a.b.passphrase.c":"[REDACTED]","":{"X-Api-Key":"[REDACTED]"},"db":{"PASSWD":"[REDACTED]"}}`, 3},
		{"{\"\u212aey\":1}", "{\"\u212aey\":\"[REDACTED]\"}", 1},
		{`{"key":"[REDACTED]"}`, `{"key":"[REDACTED]"}`, 0},
		{`{"a":1,"credentials":[1,2,{"b":3}],"z":4}`, `{"a":1,"credentials":"[REDACTED]","z":4}`, 1},
	}
	for _, c := range cases {
		got, count, err := RedactInputs([]byte(c.raw))
		if err != nil || string(got) != c.want || count != c.count {
			t.Errorf("%s\n became %s (%d), want %s (%d), error %v", c.raw, got, count, c.want, c.count, err)
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
		{`{"action":{"parameters":{"max_tokens":1}},"max_tokens":1}`, `{"action":{"parameters":{"max_tokens":"[REDACTED]"}},"max_tokens":1}`, 1},
		{`{"reasoning":"{\"password\":\"x\",\"mytoken\":1}"}`, `{"reasoning":"{\"password\":\"[REDACTED]\",\"mytoken\":1}"}`, 1},
		{`{"outputs":["[{\"a\":\"{\\\"secret\\\":1}\"}]"]}`, `{"outputs":["[{\"a\":\"{\\\"secret\\\":\\\"[REDACTED]\\\"}\"}]"]}`, 1},
		{`{"a":"{\"inputs\":{\"max_tokens\":1}}"}`, `{"a":"{\"inputs\":{\"max_tokens\":\"[REDACTED]\"}}"}`, 1},
		{`{"text":"{the password is x}","code":"\"password\""}`, `{"text":"{the password is x}","code":"\"password\""}`, 0},
		{`{"execution":{"inputs":"{\"mytoken\":1}","outputs":"{\"mytoken\":1}"}}`, `{"execution":{"inputs":"{\"mytoken\":\"[REDACTED]\"}","outputs":"{\"mytoken\":1}"}}`, 1},
	}
	for _, c := range cases {
		got, count, err := RedactRecord([]byte(c.raw))
		if err != nil || string(got) != c.want || count != c.count {
			t.Errorf("%s\n became %s (%d), want %s (%d), error %v", c.raw, got, count, c.want, c.count, err)
		}
	}
}

func TestRedactReturnsItsInputWhenNothingMatches(t *testing.T) {
	for _, raw := range []string{`{"path":"/tmp"}`, `{"text":"a token","max_tokens":5}`} {
		in := []byte(raw)
		if out, count, err := RedactRecord(in); err != nil || count != 0 || &out[0] != &in[0] {
			t.Errorf("%s: %s, %d, %v", raw, out, count, err)
		}
	}
}

func TestRedactRefusesBrokenJSON(t *testing.T) {
	for _, raw := range []string{`{"token":`, `{"token":1`, `{"a":[1,"token"`, `{"token" 1}`} {
		if out, _, err := RedactInputs([]byte(raw)); err == nil {
			t.Errorf("%s became %s", raw, out)
		}
	}
}

// However deep a secret lies, it is gone, and redaction has nothing left to do.
func TestRedactIsCompleteAndIdempotent(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		raw := nest(r, `"hunter2"`, rapid.IntRange(0, 5).Draw(r, "depth"))
		out, count, err := RedactInputs([]byte(raw))
		if err != nil || count != 1 || strings.Contains(string(out), "hunter2") || !jsontext.Value(out).IsValid() {
			r.Fatalf("%s became %s (%d): %v", raw, out, count, err)
		}
		if again, count, err := RedactInputs(out); err != nil || count != 0 || string(again) != string(out) {
			r.Fatalf("%s became %s (%d): %v", out, again, count, err)
		}
	})
}

// nest puts a secret below objects, arrays and strings of JSON text.
func nest(r *rapid.T, secret string, depth int) string {
	value := `{"` + rapid.SampledFrom([]string{"PassWord", "x_token_y", "t\\u006fken", "monkey"}).Draw(r, "name") + `":` + secret + `}`
	for range depth {
		switch rapid.IntRange(0, 2).Draw(r, "layer") {
		case 0:
			value = `[1, ` + value + `]`
		case 1:
			value = `{"a" :` + value + `,"b":[]}`
		default:
			value = string(appendString(nil, value))
		}
	}
	return value
}

func TestOutputsTruncation(t *testing.T) {
	raw := []byte(`{"text":"` + strings.Repeat(`é\"x`, 1000) + `","token":"hunter2"}`)
	text, count, err := Outputs(raw, DefaultOutputLimit)
	if err != nil || count != 1 || len(text) > DefaultOutputLimit || len(text) < DefaultOutputLimit-10 {
		t.Fatalf("%d bytes, %d redactions, %v", len(text), count, err)
	}
	var short struct {
		Truncated    bool
		Bytes        int
		SHA256, Head string
	}
	if err := json.Unmarshal([]byte(text), &short, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	whole, _, err := Outputs(raw, 0)
	if err != nil || strings.Contains(whole, "hunter2") {
		t.Fatal(whole, err)
	}
	if !short.Truncated || short.Bytes != len(whole) || short.SHA256 != hexSHA256([]byte(whole)) || !strings.HasPrefix(whole, short.Head) {
		t.Errorf("%+v is not of the %d bytes of the redacted text", short, len(whole))
	}
	if absent, _, err := Outputs(nil, 10); err != nil || absent != "{}" {
		t.Errorf("absent outputs are %s, %v", absent, err)
	}
}
