package aivs

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/pyjson"
)

// foreignFiles returns a signed bundle of the draft's own dialect, as another vendor's generator
// writes it: compact rows, no final line feed, any member order.
func foreignFiles(key ed25519.PrivateKey) map[string]string {
	chain, log := NewChain(), []string{}
	for i := range 3 {
		row := Row{SessionID: "sess-é", ActionType: ActionToolCall, ToolName: "browser.click", InputsJSON: `{"n":1}`, Timestamp: float64(i) / 2}
		chain.Link(&row)
		log = append(log, fmt.Sprintf(`{"row_hash":"%s","prev_hash":"%s","id":%d,"session_id":"%s","action_type":"%s","tool_name":"%s",`+
			`"inputs_json":"{\"n\":1}","outputs_json":"","cost_cents":0,"error":"","timestamp":%s}`,
			row.RowHash, row.PrevHash, row.ID, row.SessionID, row.ActionType, row.ToolName, pyjson.AppendFloat(nil, row.Timestamp)))
	}
	return map[string]string{
		logFile:       strings.Join(log, "\n"),
		manifestFile:  fmt.Sprintf(`{"chain_hash":"%s","action_count":3,"session_id":"sess-é"}`, chain.Hash()),
		signatureName: string(signatureFile(key, chain.Hash())),
		keyFile:       string(publicKeyFile(publicOf(key))),
	}
}

// envelopeOf signs a statement about some of the files; form changes its text.
func envelopeOf(key ed25519.PrivateKey, files map[string]string, frame string, form func(string) string) string {
	var subjects []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		subjects = append(subjects, fmt.Sprintf(`{"name":"%s","digest":{"sha256":"%s"}}`, name, hexSHA256([]byte(files[name]))))
	}
	payload := []byte(fmt.Sprintf(frame, strings.Join(subjects, ",")))
	sig := ed25519.Sign(key, preAuthentication(payloadType, payload))
	return fmt.Sprintf(`{"signatures":[{"sig":"AAAA"},7,{"keyid":5,"sig":"%s"}],"payloadType":"%s","payload":"%s"}`,
		form(base64.StdEncoding.EncodeToString(sig)), payloadType, form(base64.StdEncoding.EncodeToString(payload)))
}

// Both verifiers report the same about bundles of other generators, including the place of a
// fault.
func TestForeignBundles(t *testing.T) {
	const frame = `{"_type":"https://in-toto.io/Statement/v1","predicate":[1,"x>?é"],"subject":[%s]}`
	key := testKey("k")
	public := publicOf(key)
	same := func(text string) string { return text }
	urlSafe := strings.NewReplacer("+", "-", "/", "_").Replace
	becomes := func(name, text string) func(map[string]string) { return func(f map[string]string) { f[name] = text } }
	replace := func(name, old, with string) func(map[string]string) {
		return func(f map[string]string) { f[name] = strings.ReplaceAll(f[name], old, with) }
	}
	member := func(text string) func(map[string]string) {
		return replace(logFile, `"error":""`, `"error":"","x":`+text)
	}
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	huge := strings.Repeat("9", 20_000)
	cases := map[string]struct {
		spoil func(map[string]string)
		where string // of the fault; "": there is none
	}{
		"as it is":                     {func(map[string]string) {}, ""},
		"carriage returns":             {replace(logFile, "\n", "\r\n"), ""},
		"empty lines":                  {replace(logFile, "\n", "\n\n \t\n"), ""},
		"byte order mark":              {replace(manifestFile, `{"chain`, "\ufeff{\"chain"), manifestFile},
		"further member":               {member(`{"a":[1e400,-0,"\u00e9"]}`), ""},
		"huge number in further":       {member(huge), ""},
		"huge number in manifest":      {replace(manifestFile, `{`, `{"x":`+huge+`,`), ""},
		"deep further member":          {member(nested(maxDepth - 1)), ""},
		"deeper further member":        {member(nested(maxDepth)), "row 1"},
		"deepest further member":       {member(nested(200_000)), "row 1"},
		"brackets in a text":           {member(`"\"` + strings.Repeat("[", 2*maxDepth) + `"`), ""},
		"deep manifest":                {replace(manifestFile, `{`, `{"x":`+nested(maxDepth-1)+`,`), ""},
		"deeper manifest":              {replace(manifestFile, `{`, `{"x":`+nested(maxDepth)+`,`), manifestFile},
		"half a character":             {member(`"\ud800"`), "row 1"},
		"member twice in further":      {member(`{"a":1,"\u0061":2}`), "row 1"},
		"no number":                    {member(`NaN`), "row 1"},
		"count as float":               {replace(manifestFile, `:3`, `:3.0`), manifestFile},
		"count as text":                {replace(manifestFile, `:3`, `:"3"`), manifestFile},
		"members in other case":        {replace(manifestFile, `{`, `{"Action_Count":4,`), ""},
		"big manifest":                 {replace(manifestFile, `{`, `{`+strings.Repeat(" ", 300<<10)), manifestFile},
		"previous bundle":              {becomes(previousFile, hexSHA256(nil)+"\n"), ""},
		"previous bundle is no digest": {becomes(previousFile, "hello"), previousFile},
		"previous bundle in capitals":  {becomes(previousFile, strings.ToUpper(hexSHA256(nil))), previousFile},
		"key in digits":                {becomes(keyFile, strings.ToUpper(hex.EncodeToString(public))+"\n"), ""},
		"key in base64":                {becomes(keyFile, base64.StdEncoding.EncodeToString(public)+"\n"), ""},
		"key in its bytes":             {becomes(keyFile, string(public)), ""},
		"key in other bytes":           {becomes(keyFile, strings.Repeat("\xff", 32)), signatureName},
		"key next to other bytes":      {replace(keyFile, "# Ed", "\xff\n# Ed"), ""},
		"no key":                       {becomes(keyFile, "# No signing key configured\n"), keyFile},
		"signature next to bytes":      {replace(signatureName, "signature:", "# \xff\nsignature:"), ""},
		"not signed":                   {becomes(signatureName, "# Ed25519 signing not available\n"), ""},
		"unsigned said in words":       {replace(signatureName, "signature:", "signature:unsigned "), signatureName},
		"attested":                     {func(f map[string]string) { f[attestationFile] = envelopeOf(key, f, frame, same) }, ""},
		"attested in the other base64": {func(f map[string]string) { f[attestationFile] = envelopeOf(key, f, frame, urlSafe) }, ""},
		"attested twice": {func(f map[string]string) {
			f[attestationFile] = envelopeOf(key, f, strings.Replace(frame, "%s", "%[1]s,%[1]s", 1), same)
		}, attestationFile},
		"attested by another": {func(f map[string]string) { f[attestationFile] = envelopeOf(testKey("other"), f, frame, same) }, attestationFile},
		"attested too much": {func(f map[string]string) {
			f["gone.txt"] = ""
			f[attestationFile] = envelopeOf(key, f, frame, same)
			delete(f, "gone.txt")
		}, attestationFile},
		"attested many times": {func(f map[string]string) {
			f[attestationFile] = strings.Replace(envelopeOf(key, f, frame, same), "[", "["+strings.Repeat("7,", 200), 1)
		}, attestationFile},
		"attestation nested": {func(f map[string]string) {
			f[attestationFile] = envelopeOf(key, f, strings.Replace(frame, "[1,", nested(maxDepth)+`,"x":[1,`, 1), same)
		}, attestationFile},
	}
	place, names := t.TempDir(), slices.Sorted(maps.Keys(cases))
	for _, name := range names {
		c, files := cases[name], foreignFiles(key)
		c.spoil(files)
		members := membersOf(files)
		slices.Reverse(members)
		content := tarOfFiles(t, members...)
		report := judge(t, aivstest.Gzip(t, content), Options{})
		if report.Intact != (c.where == "") {
			t.Errorf("%s: %+v", name, report)
		} else if fault := fmt.Sprint(report.Faults); !strings.Contains(fault, c.where) {
			t.Errorf("%s: %s, want a fault at %s", name, fault, c.where)
		}
		unpackInto(t, filepath.Join(place, name), content)
	}
	for i, line := range judgeAll(t, place, len(names)) {
		want := "0 "
		where := cases[names[i]].where
		if where != "" {
			want = "1 FAIL  " + where
		}
		if !strings.HasPrefix(line, want) || where == "" && line != want {
			t.Errorf("%s: verify.py reports %.300s, want %s", names[i], line, want)
		}
	}
}
