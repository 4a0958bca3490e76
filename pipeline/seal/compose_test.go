package seal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/aivstest"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/schema/signature"
)

const secret = "hunter2"

// secretive has the secret at every place where an agent could put one, each time under a name
// that shows it.
const secretive = `{"aap_version":"0.1.0","trace_id":"{\"token\":\"hunter2\"}","agent_id":"a","card_id":"c","timestamp":"2026-01-02T03:04:05Z",` +
	`"action":{"type":"execute","name":"read","category":"bounded","parameters":{"deep":[{"My_PassWord":"hunter2"}]}},` +
	`"decision":{"alternatives_considered":[{"option_id":"x","description":"d"}],"selected":"x","selection_reasoning":"as {\"secret\": \"hunter2\"} says",` +
	`"values_applied":["v"]},` +
	`"context":{"session_id":"s","metadata":{"Authorization":"hunter2","execution":{"tool_name":"web.get",` +
	`"inputs":{"monkey":"hunter2","body":"{\"a\":\"[{\\\"max_tokens\\\":\\\"hunter2\\\"}]\"}"},` +
	`"outputs":{"api_key":"hunter2","text":"[{\"credential\":\"hunter2\"}]"},"error":"500: {\"bearer\":\"hunter2"}}}}`

// built returns the bundle of a part, its input and its contents.
func built(t *testing.T, part *Part, rules redact.Rules) (*aivs.Bundle, *aivs.Input, *Contents) {
	t.Helper()
	contents, _, err := Read(part, false, redact.DefaultOutputLimit, rules)
	if err != nil {
		t.Fatal(err)
	}
	in, err := Compose(part, contents, "Plumbline", "https://example.org")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := aivs.Build(in, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return bundle, in, contents
}

// The value of a sensitive name is in no file of a bundle, nor is the digest of the trace that
// contained it.
func TestNoSecretEntersABundle(t *testing.T) {
	verdict := &schema.Verdict{TraceID: `{"token":"hunter2"}`}
	verdict.Metadata.TraceDigest = schema.DigestOf([]byte(secretive))
	part := &Part{AgentID: "a", SessionID: "s", Plan: Record{Part: 1, LastPart: true},
		Traces:  []*store.StoredTrace{stored(t, secretive, verdict)},
		Verdict: &schema.SessionVerdict{AgentID: "a", Findings: []schema.SessionFinding{{TraceID: `{"token":"hunter2"}`}}}}
	bundle, in, contents := built(t, part, redact.NoRules)
	content := string(aivstest.Gunzip(t, bundle.Bytes))
	for what, text := range map[string]string{"the secret": secret, "the digest of the trace": schema.DigestOf([]byte(secretive)).String()} {
		if at := strings.Index(content, text); at >= 0 {
			t.Errorf("%s is in the bundle: …%s…", what, content[max(0, at-200):at+50])
		}
	}
	if marks := strings.Count(string(contents.lines), "[REDACTED]"); marks != 9 || !strings.Contains(content, `"redactions": 9`) {
		t.Errorf("the manifest counts %d redactions, of %d in %s", in.Redactions, marks, contents.lines)
	}
	report, err := aivs.Verify(bytes.NewReader(bundle.Bytes), aivs.Options{})
	if err != nil || !report.Intact {
		t.Errorf("%+v, %v", report, err)
	}
}

// The agent's signature over a record confirms no guess of what is redacted in it: the bundle has
// none. Over a record that is not redacted it stays, and can be checked.
func TestSignatureOverARedactedRecordIsHidden(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public := []schema.Key{{KeyID: "k1", PublicKey: key.Public().(ed25519.PublicKey)}}
	for parameters, hidden := range map[string]bool{`{"password":"4711"}`: true, `{"amount":"4711"}`: false} {
		signed, err := signature.Signed([]byte(traceOf("t1", "2026-01-02T03:04:05Z", `"type":"execute","name":"pay","parameters":`+parameters, ``)), "k1", key)
		if err != nil {
			t.Fatal(err)
		}
		part := &Part{AgentID: "a", SessionID: "s", Plan: Record{Part: 1, LastPart: true}, Verdict: &schema.SessionVerdict{AgentID: "a"},
			Traces: []*store.StoredTrace{stored(t, string(signed), new(schema.Verdict))}}
		bundle, in, _ := built(t, part, redact.AllRules)
		report, err := aivs.Verify(bytes.NewReader(bundle.Bytes), aivs.Options{})
		if err != nil || !report.Intact {
			t.Errorf("%+v, %v", report, err)
		}
		line := bytes.TrimSpace(in.Members[0].Data)
		var record struct{ Signature schema.Signature }
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		record.Signature.KeyID = "k1" // its name shows a secret to the rules
		guess := bytes.Replace(line, []byte(`"password":"[REDACTED]"`), []byte(`"password":"4711"`), 1)
		if err := signature.Verify(guess, record.Signature, public); (err != nil) != hidden {
			t.Errorf("%s: the signature %q over the guess: %v", parameters, record.Signature.Value, err)
		}
		if marks := int64(bytes.Count(line, []byte(redact.Mark))); marks != in.Redactions || (marks == 3) != hidden {
			t.Errorf("%s: %d marks, %d counted", parameters, marks, in.Redactions)
		}
	}
}

// optional has the secret at places where no name of a member shows it.
const optional = `{"aap_version":"0.1.0","trace_id":"t?token=hunter2","agent_id":"a","card_id":"c","timestamp":"2026-01-02T03:04:05Z",` +
	`"action":{"type":"execute","name":"Bearer hunter2hunter2","category":"bounded","parameters":{"headers":["Authorization","hunter2"]}},` +
	`"decision":{"alternatives_considered":[{"option_id":"x","description":"d"}],"selected":"x","selection_reasoning":"sent Authorization: Bearer hunter2",` +
	`"values_applied":["v"]},"context":{"session_id":"s"}}`

const optionalTool = `{"aap_version":"0.1.0","trace_id":"t2","agent_id":"a","card_id":"c","timestamp":"2026-01-02T03:04:06Z",` +
	`"action":{"type":"execute","name":"read","category":"bounded"},` +
	`"decision":{"alternatives_considered":[{"option_id":"x","description":"d"}],"selected":"x","selection_reasoning":"r","values_applied":["v"]},` +
	`"context":{"session_id":"s","metadata":{"execution":{"tool_name":"web.get?api_key=hunter2",` +
	`"inputs":{"url":"https://a/?access_token=hunter2","env":[{"name":"DB_PASSWORD","value":"hunter2"}],"ｐａｓｓｗｏｒｄ":"hunter2"},` +
	`"outputs":{"config":"db:\n  password: hunter2\n","xml":"<password>hunter2</password>","repr":"{'password': 'hunter2'}",` +
	`"encoded":"eyJwYXNzd29yZCI6Imh1bnRlcjIifQ=="},"error":"login with password=hunter2 failed"}}}}`

// A value that the optional rules hide is in no file of a bundle, and the manifest counts it
// separately. Without these rules the value stays.
func TestOptionalRedactionsAreCountedSeparately(t *testing.T) {
	compose := func(rules redact.Rules) (content string, report *aivs.Report) {
		verdict := &schema.Verdict{Violations: []schema.Remark{{Description: `"Bearer hunter2hunter2" is forbidden`}}}
		verdict.Metadata.TraceDigest = schema.DigestOf([]byte(optional))
		part := &Part{AgentID: "a", SessionID: "s", Plan: Record{Part: 1, LastPart: true},
			Traces: []*store.StoredTrace{stored(t, optional, verdict), stored(t, optionalTool, &schema.Verdict{})}, Verdict: &schema.SessionVerdict{}}
		bundle, _, _ := built(t, part, rules)
		var err error
		if report, err = aivs.Verify(bytes.NewReader(bundle.Bytes), aivs.Options{}); err != nil {
			t.Fatal(err)
		}
		return string(aivstest.Gunzip(t, bundle.Bytes)), report
	}
	content, report := compose(redact.AllRules)
	for what, text := range map[string]string{"the secret": secret, "its base64": "Imh1bnRlcjIi", "the digest of the trace": schema.DigestOf([]byte(optional)).String()} {
		if at := strings.Index(content, text); at >= 0 {
			t.Errorf("%s is in the bundle: …%s…", what, content[max(0, at-200):at+50])
		}
	}
	if !report.Intact || report.Opening.Redactions != 0 || report.Opening.OptionalRedactions != 13 || !strings.Contains(content, `"optional_redactions": 13`) {
		t.Errorf("%+v, %+v", report, report.Opening)
	}
	content, report = compose(redact.NoRules)
	if !report.Intact || report.Opening.OptionalRedactions != 0 || strings.Contains(content, `"optional_redactions": `) || !strings.Contains(content, "password=hunter2") {
		t.Errorf("without the rules: %+v, %+v", report, report.Opening)
	}
}

// stored returns a trace as its row.
func stored(t *testing.T, raw string, verdict *schema.Verdict) *store.StoredTrace {
	t.Helper()
	trace, err := schema.Admit("", []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return &store.StoredTrace{
		AgentID: trace.AgentID, TraceID: trace.TraceID, Digest: trace.Digest, CardID: trace.CardID,
		SessionID: schema.SessionID(trace), EventTime: trace.Timestamp, Raw: trace.Raw, Verdict: verdict,
	}
}

// An agent cannot hide its DENY behind long ids: the file of the verdict on the session is never
// larger than verifiers read. It lists the gravest findings, and counts all of them. The verdict for
// the tables keeps all of them, also if a second attempt adopts the file of a first one.
func TestLongIDsDoNotHideTheVerdict(t *testing.T) {
	const traces = 110
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	attempt := func() (*Part, *aivs.Input) {
		part := &Part{AgentID: "a", SessionID: "s", Plan: Record{Part: 1, LastPart: true, ExportedAt: 1773502245, KeyID: aivs.KeyID(key.Public().(ed25519.PublicKey)), File: "f.tar.gz"}}
		for i := range traces {
			id := fmt.Sprint(i)
			id += strings.Repeat(`\u0001`, schema.MaxIDBytes-len(id)) // JSON writes this character in six bytes
			raw := traceOf(id, fmt.Sprintf("2026-01-02T03:%02d:%02dZ", i/60, i%60), `"type":"execute","name":"steal"`, ``)
			raw = strings.Replace(raw, `"session_id":"s"`, fmt.Sprintf(`"session_id":"s","conversation_turn":%d`, 1000-i), 1)
			part.Traces = append(part.Traces, stored(t, raw, &schema.Verdict{RecommendedAction: schema.Deny, Status: schema.StatusJudged,
				Violations: []schema.Remark{{Type: schema.ForbiddenAction, Severity: schema.SeverityCritical}}}))
		}
		contents, judge, err := Read(part, false, redact.DefaultOutputLimit, redact.AllRules)
		if err != nil {
			t.Fatal(err)
		}
		part.Verdict, _ = judge.Finish(nil, time.Unix(part.Plan.ExportedAt, 0))
		in, err := Compose(part, contents, "Plumbline", "https://example.org")
		if err != nil {
			t.Fatal(err)
		}
		return part, in
	}
	part, in := attempt()
	bundle, err := aivs.Build(in, key)
	if err != nil {
		t.Fatal(err)
	}
	report, err := aivs.Verify(bytes.NewReader(bundle.Bytes), aivs.Options{})
	if err != nil || !report.Intact || report.Verdict == nil || report.Verdict.RecommendedAction != schema.Deny || report.Verdict.Violations != traces {
		t.Fatalf("%s %s %v", report.Conclusion(), report.VerdictText(), err)
	}
	inFile, err := SessionVerdict(bundle.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	listed, all := len(inFile.Findings), part.Verdict.Findings
	if listed < 50 || listed >= len(all) || !reflect.DeepEqual(inFile.Findings, all[:listed]) || !maps.Equal(inFile.FindingCounts, part.Verdict.FindingCounts) {
		t.Errorf("the file lists %d of %d findings, and counts %v of %v", listed, len(all), inFile.FindingCounts, part.Verdict.FindingCounts)
	}
	if size := len(in.Members[2].Data); size > maxSessionMember || size < maxSessionMember-20_000 {
		t.Errorf("%s has %d bytes", in.Members[2].Name, size)
	}

	dir := t.TempDir()
	if _, err := Place(dir, part, in, key); err != nil {
		t.Fatal(err)
	}
	again, in := attempt()
	if adopted, err := Place(dir, again, in, key); err != nil || adopted.SHA256 != bundle.SHA256 || !reflect.DeepEqual(again.Verdict, part.Verdict) {
		t.Errorf("the second attempt: %+v, %d findings for the tables, %v", adopted, len(again.Verdict.Findings), err)
	}
	in.Members[2].Data = []byte("{}\n") // as if other verdicts were stored meanwhile
	if _, err := Place(dir, again, in, key); err != nil || !reflect.DeepEqual(again.Verdict.Findings, inFile.Findings) {
		t.Errorf("of another verdict in the file, %d findings for the tables, %v", len(again.Verdict.Findings), err)
	}
}
