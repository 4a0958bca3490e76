package aivs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/aivs/aivstest"
)

// reforged returns a bundle of our own dialect that somebody with a key made and signed again,
// with the open row's text and any other row changed.
func reforged(t testing.TB, old, replacement string, spoil func(*Row)) []byte {
	t.Helper()
	return rechained(t, old, replacement, spoil, (*Chain).Link)
}

// rechained is reforged with another way to link the rows.
func rechained(t testing.TB, old, replacement string, spoil func(*Row), link func(*Chain, *Row)) []byte {
	t.Helper()
	in := sampleInput(2)
	opening, chain := openingOf(t, in, testKey("k")), NewChain()
	open, err := opening.row()
	if err != nil || !strings.Contains(open.InputsJSON, old) {
		t.Fatalf("no %s in %s: %v", old, open.InputsJSON, err)
	}
	open.InputsJSON = strings.Replace(open.InputsJSON, old, replacement, 1)
	if o, err := parseOpening(open.InputsJSON); err == nil {
		opening = o // makes the other files agree with it
	}
	log := ""
	add := func(r Row) {
		r.SessionID, r.ActionType, r.ToolName = Encode(opening.SessionID), Encode(r.ActionType), Encode(r.ToolName)
		spoil(&r)
		link(chain, &r)
		log += string(r.AppendJSON(nil)) + "\n"
	}
	add(open)
	for r, err := range in.Rows {
		if err != nil {
			t.Fatal(err)
		}
		add(*r)
	}
	add(Row{ActionType: ActionSeal, ToolName: sealTool + chain.Content(), InputsJSON: "{}", OutputsJSON: "{}", Timestamp: open.Timestamp})
	return tarOfFiles(t, attestedFiles(t, in, opening, chain, log)...)
}

// attestedFiles returns all files of a bundle with the given log.
func attestedFiles(t testing.TB, in *Input, open *Opening, chain *Chain, log string) []Member {
	t.Helper()
	key, hash := testKey("k"), chain.Hash()
	manifest, err := open.manifest(chain.Rows(), hash)
	if err != nil {
		t.Fatal(err)
	}
	members := []Member{{Name: logFile, Data: []byte(log)}, {Name: manifestFile, Data: manifest}, {Name: keyFile, Data: publicKeyFile(publicOf(key))},
		{Name: signatureName, Data: signatureFile(key, hash)}, {Name: verifierFile, Data: verifier}, {Name: previousFile, Data: []byte(open.PreviousBundleHash)}}
	var files []attested
	members = append(members, in.Members...)
	for _, m := range members {
		files = append(files, attested{m.Name, hexSHA256(m.Data)})
	}
	payload, err := payloadOf(files, open.predicate(chain.Rows(), hash))
	if err != nil {
		t.Fatal(err)
	}
	text, err := attest(key, payload)
	if err != nil {
		t.Fatal(err)
	}
	return append(members, Member{Name: attestationFile, Data: text})
}

// A signature does not make a bundle valid in our own dialect: both verifiers refuse anything
// that the builder never writes, regardless of the signer.
func TestReforgedBundles(t *testing.T) {
	leave := func(*Row) {}
	only := func(action string, spoil func(*Row)) func(*Row) {
		return func(r *Row) {
			if r.ActionType == action {
				spoil(r)
			}
		}
	}
	inputs := func(edit func(string) string) func(*Row) {
		return only("aap.execute", func(r *Row) { r.InputsJSON = edit(r.InputsJSON) })
	}
	const at = `"exported_at":"2026-03-14T15:30:45Z"`
	cases := []struct {
		old, replacement string
		spoil            func(*Row)
		passes           bool
	}{
		{``, ``, leave, true},
		{`"part":2`, `"part":1`, leave, true},
		{`"part":2`, `"part":0`, leave, false},
		{`"part":2`, `"part":2.0`, leave, false},
		{`"part":2`, `"part":9223372036854775808`, leave, false},
		{`"last_part":true`, `"last_part":1`, leave, false},
		{`"last_part":true`, `"last_part":null`, leave, false},
		{`"redactions":3`, `"redactions":-3`, leave, false},
		{`"redactions":3`, `"redactions":9007199254740992`, leave, false},
		{`"optional_redactions":2`, `"optional_redactions":7`, leave, true},
		{`"optional_redactions":2`, `"optional_redactions":0`, leave, false},
		{`"optional_redactions":2`, `"optional_redactions":-2`, leave, false},
		{`"optional_redactions":2`, `"optional_redactions":true`, leave, false},
		{`"optional_redactions":2,`, ``, leave, true},
		{`"trace_count":2`, `"trace_count":3`, leave, false},
		{`"generator":"Plumbline"`, `"generator":"\/"`, leave, false},
		{`"agent_id":"agent:7"`, `"agent_id":""`, leave, false},
		{`"agent_id":"agent:7",`, ``, leave, true},
		{`"session_id":"`, `"x":1,"session_id":"`, leave, false},
		{`"previous_bundle_hash":"`, `"previous_bundle_hash":"z`, leave, false},
		{`"key_id":"`, `"key_id":"0`, leave, false},
		{`"name":"cards/c1.json"`, `"name":"cards/../c1.json"`, leave, false},
		{`"name":"cards/c1.json"`, `"name":"manifest.json"`, leave, false},
		{at, `"exported_at":""`, leave, false},
		{at, `"exported_at":"2026-03-14T15:30:46Z"`, leave, false}, // differs from the open row's own time
		{at, `"exported_at":"2026-02-30T15:30:45Z"`, leave, false},
		{at, `"exported_at":"2026-03-14T15:30:45.5Z"`, leave, false},
		{at, `"exported_at":"2026-03-14T15:30:60Z"`, leave, false},
		{at, `"exported_at":"1960-03-14T15:30:45Z"`, leave, false},
		{``, ``, only(ActionOpen, func(r *Row) { r.Timestamp++ }), false},
		{``, ``, only(ActionOpen, func(r *Row) { r.Error = "x" }), false},
		{``, ``, only(ActionOpen, func(r *Row) { r.ToolName = openFamily + "2" }), false},
		{``, ``, only(ActionSeal, func(r *Row) { r.Timestamp-- }), false},
		{``, ``, only(ActionSeal, func(r *Row) { r.CostCents = 1 }), false},
		{``, ``, only(ActionSeal, func(r *Row) { r.InputsJSON = "[]" }), false},
		{``, ``, only(ActionSeal, func(r *Row) { r.OutputsJSON = "" }), false},
		{``, ``, only(ActionSeal, func(r *Row) { r.Error = "x" }), false},
		{``, ``, only(ActionSeal, func(r *Row) { r.ActionType = "end" }), false},
		{``, ``, inputs(strings.ToUpper), false},
		{``, ``, inputs(func(s string) string { return strings.Replace(s, "{", `{"TRACE_SHA256":"x","y":1e400,`, 1) }), true},
		{``, ``, inputs(func(s string) string { return strings.Replace(s, "{", `{"trace_sha256":"x",`, 1) }), false},
		{``, ``, inputs(func(s string) string { return strings.Replace(s, "{", `{"y":"\ud800",`, 1) }), false},
		{``, ``, inputs(func(s string) string { return strings.TrimSuffix(s, "}") + `,"y":"\ud800"}` }), false},
		{``, ``, inputs(func(string) string { return "null" }), false},
	}
	place := t.TempDir()
	for i, c := range cases {
		content := reforged(t, c.old, c.replacement, c.spoil)
		if report := judge(t, aivstest.Gzip(t, content), Options{}); report.Intact != c.passes {
			t.Errorf("case %d, %s: %+v", i, c.replacement, report.Faults)
		}
		unpackInto(t, filepath.Join(place, fmt.Sprintf("%03d", i)), content)
	}
	for i, line := range judgeAll(t, place, len(cases)) {
		if strings.HasPrefix(line, "0") != cases[i].passes {
			t.Errorf("case %d, %s: verify.py reports %s", i, cases[i].replacement, line)
		}
	}
}
