package webhook

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// standard computes the signature by the formula of Standard Webhooks, without our code.
const standard = `
import base64, hashlib, hmac, sys
secret, id, timestamp, body = sys.argv[1:]
key = base64.b64decode(secret.removeprefix("whsec_"))
print("v1," + base64.b64encode(hmac.new(key, f"{id}.{timestamp}.{body}".encode(), hashlib.sha256).digest()).decode())
`

func TestSignatureIsThatOfTheStandard(t *testing.T) {
	for _, c := range []struct{ secret, id, body string }{
		{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`},
		{NewSecret().Text(), "violation_ab", `{"data":"ä € \u0000 <b>"}`},
		{NewSecret().Text(), "x", ""},
	} {
		secret, err := ParseSecret(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		header, at := http.Header{}, time.Unix(1614265330, 5)
		Sign(header, []Secret{secret, NewSecret()}, c.id, at, []byte(c.body))
		want, err := exec.CommandContext(t.Context(), "python3", "-I", "-c", standard, c.secret, c.id, "1614265330", c.body).Output()
		if err != nil {
			t.Fatal(err)
		}
		signatures := strings.Fields(header.Get(HeaderSignature))
		if len(signatures) != 2 || signatures[0] != strings.TrimSpace(string(want)) || header.Get(HeaderID) != c.id || header.Get(HeaderTimestamp) != "1614265330" {
			t.Errorf("%v, want the signature %s", header, want)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	secret, now, body := NewSecret(), time.Now(), []byte(`{"a":1}`)
	for name, change := range map[string]func(http.Header) (at time.Time, text []byte){
		"":                   func(http.Header) (time.Time, []byte) { return now, body },
		"no signature is by": func(http.Header) (time.Time, []byte) { return now, []byte(`{"a":2}`) },
		"clock":              func(http.Header) (time.Time, []byte) { return now.Add(6 * time.Minute), body },
		"want the headers":   func(h http.Header) (time.Time, []byte) { h.Del(HeaderID); return now, body },
		"seconds since":      func(h http.Header) (time.Time, []byte) { h.Set(HeaderTimestamp, "x"); return now, body },
		"by the expected":    func(h http.Header) (time.Time, []byte) { h.Set(HeaderID, "other"); return now, body },
		"no signature":       func(h http.Header) (time.Time, []byte) { h.Set(HeaderSignature, "v1,AAAA v2,x"); return now, body },
	} {
		header := http.Header{}
		Sign(header, []Secret{NewSecret(), secret}, "id", now, body)
		at, text := change(header)
		err := Verify(header, []Secret{secret}, at, text)
		if (name == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Every fault of a list of endpoints is reported, without URL and secret.
func TestFaultsOfEndpoints(t *testing.T) {
	dir := t.TempDir()
	good, open, short := filepath.Join(dir, "good"), filepath.Join(dir, "open"), filepath.Join(dir, "short")
	for path, mode := range map[string]os.FileMode{good: 0o600, open: 0o604, short: 0o600} {
		text := NewSecret().Text()
		if path == short {
			text = "whsec_c2VjcmV0"
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for list, want := range map[string]string{
		"":                      "0 are listed",
		"endpoint: []":          "field endpoint not found",
		"endpoints: [{nam: x}]": "field nam not found",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: GOOD}, {name: a, url: 'https://a.example/x', secret_file: GOOD}]": "given twice",
		"endpoints: [{name: a b, url: 'https://a.example/x', secret_file: GOOD}]":                                                         "name: want",
		"endpoints: [{name: a, url: 'http://a.example/SECRET', secret_file: GOOD}]":                                                       "plain http beyond this machine",
		"endpoints: [{name: a, url: 'https://u:SECRET@a.example/x', secret_file: GOOD}]":                                                  "has a user",
		"endpoints: [{name: a, url: 'file:///SECRET', secret_file: GOOD}]":                                                                "url: want https",
		"endpoints: [{name: a, url: 'https://a.example/x'}]":                                                                              "secret_file: is missing",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: whsec_SECRET}]":                                                   "is a secret itself",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: OPEN}]":                                                           "lets everyone read it",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: SHORT}]":                                                          "has 6 bytes, want 24 to 64",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: GOOD, types: [loop]}]":                                            "types: \"loop\"",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: GOOD, severity: low}]":                                            "severity: \"low\"",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: GOOD, give_up_after: 1s}]":                                        "give_up_after: 1s",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: GOOD, attempts: -1}]":                                             "attempts: -1",
		"endpoints: [{name: a, url: 'https://a.example/x', secret_file: GOOD, timeout: 1m}]":                                              "timeout: 1m",
	} {
		_, err := parseEndpoints([]byte(strings.NewReplacer("GOOD", good, "OPEN", open, "SHORT", short).Replace(list)))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: %v, want %q", list, err, want)
		}
	}
	endpoints, err := parseEndpoints([]byte("endpoints: [{name: a, url: 'http://127.0.0.1:1/x', secret_file: " + good + "}, {name: b, url: 'http://b.example', allow_http: true, secret_file: " + good + "}]"))
	if err != nil || len(endpoints) != 2 || endpoints[0].GiveUpAfter != 72*time.Hour || endpoints[0].Attempts != 12 || endpoints[0].Timeout != 15*time.Second {
		t.Errorf("%v, error %v", endpoints, err)
	}
	world := filepath.Join(dir, "list")
	if err := os.WriteFile(world, []byte("endpoints: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(world, 0o602); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadEndpoints(world); err == nil || !strings.Contains(err.Error(), "lets others change it") {
		t.Errorf("a list that everyone can change: %v", err)
	}
}

// A list that is too long is refused, not read in part: the endpoints at its end would get no alert.
func TestLongListIsRefused(t *testing.T) {
	dir := t.TempDir()
	secret, list := filepath.Join(dir, "secret"), filepath.Join(dir, "list")
	one := "endpoints:\n- {name: a, url: 'https://a.example/x', secret_file: " + secret + "}\n"
	for path, text := range map[string]string{secret: NewSecret().Text(), list: one + strings.Repeat("#\n", mostFileBytes/2)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if endpoints, err := ReadEndpoints(list); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("%v, error %v", endpoints, err)
	}
}
