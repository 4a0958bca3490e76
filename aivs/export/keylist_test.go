package export_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/export"
	"github.com/plumbline/plumbline/aivs/keyring"
)

// An ended key signs no later bundle, also if it is the key that is given. verify_all.py says so in the words of bundle verify.
func TestEndedKey(t *testing.T) {
	a := month(t) // the first key ends on day 6, and the second one begins on day 5
	old, next := keyOf(1), keyOf(2)
	late, early := part(t, "late", 1, 8, true, "", old), part(t, "early", 1, 3, true, "", next)
	a.Bundles = []export.Bundle{bundle(t, "late.tar.gz", late), bundle(t, "early.tar.gz", early), bundle(t, "right.tar.gz", part(t, "right", 1, 4, true, "", old))}
	archive, _ := written(t, a)
	directory := unpacked(t, archive, nil)
	ring, err := keyring.Parse(a.KeyList)
	if err != nil {
		t.Fatal(err)
	}
	for _, pins := range [][]ed25519.PrivateKey{{old}, {next}, {keyOf(9), old}} {
		var arguments []string
		var keys []ed25519.PublicKey
		for _, pin := range pins {
			arguments, keys = append(arguments, "--key", hexOf(pin)), append(keys, pin.Public().(ed25519.PublicKey))
		}
		passed, output := verifyAll(t, directory, arguments...)
		if passed || !strings.Contains(output, "\nINTACT  bundles/right.tar.gz") && !strings.HasPrefix(output, "INTACT  bundles/right.tar.gz") {
			t.Errorf("%s", output)
		}
		for name, content := range map[string][]byte{"late": late, "early": early} {
			report, err := aivs.Verify(bytes.NewReader(content), aivs.Options{Signer: func(key ed25519.PublicKey, at time.Time) error { return ring.Accept(keys, key, keyring.Session, at) }})
			if err != nil || len(report.Faults) != 2 { // of the tests' rows, which do not repeat their traces, and of the key
				t.Fatalf("%v %+v", err, report.Faults)
			}
			want := "NOT INTACT  bundles/" + name + ".tar.gz  Verdict recorded inside: not read, since the bundle is not intact.\n"
			for _, f := range report.Faults {
				want += "      FAIL  " + f.Line() + "\n"
			}
			if !strings.Contains(output, want) {
				t.Errorf("want %q:\n%s", want, output)
			}
		}
	}
	// A list that has none of the given keys leads nowhere.
	if passed, output := verifyAll(t, directory, "--key", hexOf(keyOf(9))); passed || strings.Count(output, "FAIL  public_key.pem: signed by ") != 3 {
		t.Error(output)
	}
	// A given key that is not on the list counts for nothing once another one is.
	a.Bundles = []export.Bundle{bundle(t, "other.tar.gz", part(t, "other", 1, 4, true, "", keyOf(9)))}
	archive, _ = written(t, a)
	if passed, output := verifyAll(t, unpacked(t, archive, nil), "--key", hexOf(keyOf(9)), "--key", hexOf(old)); passed || !strings.Contains(output, "FAIL  public_key.pem: signed by "+hexOf(keyOf(9))) {
		t.Error(output)
	}
}

// A verdict that is too large to be read is not called none, in the index and by verify_all.py.
func TestVerdictThatIsTooLarge(t *testing.T) {
	large := strings.Repeat(" ", 256<<10) + "{}"
	archive, index := written(t, &export.Archive{Bundles: []export.Bundle{bundle(t, "large.tar.gz", partWith(t, "a", 1, 4, true, "", keyOf(1), large))}})
	directory := unpacked(t, archive, nil)
	text, err := os.ReadFile(filepath.Join(directory, "index.txt"))
	if err != nil || index.Bundles[0].VerdictOver != 256<<10 || !strings.Contains(string(text), "recorded verdict not read: session.json is larger than 262144 bytes\n") {
		t.Errorf("%v %+v\n%s", err, index.Bundles[0], text)
	}
	if passed, output := verifyAll(t, directory); !passed || !strings.Contains(output, "Verdict recorded inside: not read, since session.json is larger than 262144 bytes.") {
		t.Error(output)
	}
	called := map[string]func([]byte) []byte{"index.json": edited(t, func(x map[string]any) { delete(entry(x, 0), "verdict_over") })}
	if passed, output := verifyAll(t, unpacked(t, archive, called)); passed || !strings.Contains(output, "the index says something else about it than the bundle (verdict)") {
		t.Error(output)
	}
}

// listKey is an entry of a key list; its times are absent if they are empty.
type listKey struct {
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"`
	Purpose   string `json:"purpose"`
	NotBefore string `json:"not_before,omitempty"`
	NotAfter  string `json:"not_after,omitempty"`
}

func entryOf(key ed25519.PrivateKey, purpose, notBefore, notAfter string) listKey {
	return listKey{aivs.KeyID(key.Public().(ed25519.PublicKey)), hexOf(key), purpose, notBefore, notAfter}
}

// listLine returns a line of a key list, signed by the signers.
func listLine(t testing.TB, version int, issued string, keys []listKey, signers ...ed25519.PrivateKey) string {
	t.Helper()
	text, err := json.Marshal(struct {
		Type     string    `json:"type"`
		Version  int       `json:"version"`
		IssuedAt string    `json:"issued_at"`
		Keys     []listKey `json:"keys"`
	}{"plumbline-keys/1", version, issued, keys})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	canonical, err := json.Marshal(members) // sorted, and all of it is ASCII: the JCS form
	if err != nil {
		t.Fatal(err)
	}
	var signatures []string
	for _, key := range signers {
		signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key, append([]byte("plumbline-keys/1\n"), canonical...)))
		signatures = append(signatures, fmt.Sprintf(`{"key_id":"%s","value":"%s"}`, aivs.KeyID(key.Public().(ed25519.PublicKey)), signature))
	}
	return strings.TrimSuffix(string(text), "}") + `,"signatures":[` + strings.Join(signatures, ",") + "]}\n"
}

// verify_all.py accepts the key lists that Go accepts, and no others.
func TestKeyListsOfGoAndPython(t *testing.T) {
	const day1, day2, day3, day4 = "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z"
	a, b, c, log := keyOf(1), keyOf(2), keyOf(3), keyOf(4)
	first := listLine(t, 1, day2, []listKey{entryOf(a, "session", "", "")}, a)
	second := func(issued string, keys ...listKey) string { return first + listLine(t, 2, issued, keys, a, b) }
	right := second(day2, entryOf(a, "session", "", day3), entryOf(b, "session", day2, ""))
	third := func(signers []ed25519.PrivateKey, keys ...listKey) string {
		return right + listLine(t, 3, day3, keys, signers...)
	}
	cases := map[string]struct {
		text string
		good bool
	}{
		"one key":     {first, true},
		"two keys":    {right, true},
		"another end": {third([]ed25519.PrivateKey{b, c}, entryOf(a, "session", "", day2), entryOf(b, "session", day2, day4), entryOf(c, "session", day3, "")), true},
		"a log key":   {third([]ed25519.PrivateKey{log}, entryOf(a, "session", "", day3), entryOf(b, "session", day2, ""), entryOf(log, "log", "", "")), true},

		"nothing":                      {"", false},
		"issued before":                {second(day1, entryOf(a, "session", "", day3), entryOf(b, "session", day2, "")), false},
		"issued at no time":            {second("when I like", entryOf(a, "session", "", day3), entryOf(b, "session", day2, "")), false},
		"issued within a second":       {second("2026-03-02T00:00:00.5Z", entryOf(a, "session", "", day3), entryOf(b, "session", day2, "")), false},
		"issued in a zone":             {second("2026-03-02T00:00:00+00:00", entryOf(a, "session", "", day3), entryOf(b, "session", day2, "")), false},
		"a successor, and no end":      {second(day2, entryOf(a, "session", "", ""), entryOf(b, "session", day2, "")), false},
		"a successor, no beginning":    {second(day2, entryOf(a, "session", "", day3), entryOf(b, "session", "", "")), false},
		"an end that is no time":       {second(day2, entryOf(a, "session", "", "9"), entryOf(b, "session", day2, "~")), false},
		"an end before the beginning":  {second(day2, entryOf(a, "session", "", day3), entryOf(b, "session", day2, day1)), false},
		"an unknown purpose":           {listLine(t, 1, day2, []listKey{entryOf(a, "bundles", "", "")}, a), false},
		"a later end":                  {third([]ed25519.PrivateKey{b, c}, entryOf(a, "session", "", day4), entryOf(b, "session", day2, day4), entryOf(c, "session", day3, "")), false},
		"a log key that ends another":  {third([]ed25519.PrivateKey{log}, entryOf(a, "session", "", day2), entryOf(b, "session", day2, ""), entryOf(log, "log", "", "")), false},
		"upper case":                   {listLine(t, 1, day2, []listKey{{entryOf(a, "", "", "").KeyID, strings.ToUpper(hexOf(a)), "session", "", ""}}, a), false},
		"a signature of another name":  {strings.Replace(first, `"signatures":[{"key_id":"`, `"signatures":[{"key_id":"0`, 1), false},
		"blanks":                       {strings.Replace(first, `,"keys"`, `, "keys"`, 1), false},
		"a further member":             {strings.Replace(first, `,"signatures"`, `,"x":1,"signatures"`, 1), false},
		"cut":                          {strings.TrimSuffix(right, "\n"), false},
		"a line twice":                 {first + first, false},
		"without the signature before": {first + listLine(t, 2, day2, []listKey{entryOf(a, "session", "", day3), entryOf(b, "session", day2, "")}, b), false},
	}
	archive, _ := written(t, month(t))
	for name, c := range cases {
		if _, err := keyring.Parse([]byte(c.text)); (err == nil) != c.good {
			t.Errorf("%s: Go says %v", name, err)
		}
		_, output := verifyAll(t, unpacked(t, archive, map[string]func([]byte) []byte{"keys.jsonl": func([]byte) []byte { return []byte(c.text) }}))
		if refused := strings.HasPrefix(output, "FAIL  keys.jsonl: "); refused == c.good {
			t.Errorf("%s: %s", name, output)
		}
	}
}
