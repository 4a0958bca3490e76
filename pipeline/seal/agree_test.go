package seal

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/aivs/report"
	"github.com/plumbline/plumbline/schema"
)

// The report finds no contradiction between the rows and the records of a bundle that was made of
// them, whatever the agent writes and the rules hide.
func TestSealedRowsAgreeWithTheirRecords(t *testing.T) {
	parts, _ := fleetParts(t)
	parts = parts[:len(parts)/4]
	odd := Part{AgentID: "a", SessionID: "s", Plan: Record{Part: 1, LastPart: true}}
	raws := []string{secretive, optional, optionalTool}
	for i, metadata := range []string{
		``, `"execution":null`, `"execution":{}`, `"execution":{"tool_name":"x:y%z","inputs":null,"outputs":null}`,
		`"execution":{"tool_name":"\u00e9.\ud83d\ude00","inputs":{"n":1.0,"m":1e2,"big":12345678901234567890,"z":-0,"d":0.10},"outputs":[1,{"a":"\u0041\/"}],"cost_cents":3}`,
		`"execution":{"tool_name":"t","outputs":"` + strings.Repeat("x", 5000) + `","error":"line\nline\u0000\ufffd"}`,
		`"execution":{"tool_name":"t","outputs":{"a":[` + strings.Repeat(`"x",`, 5000) + `1]},"cost_cents":9007199254740991}`,
		`"execution":{"tool_name":"t","inputs":{"body":"eyJwYXNzd29yZCI6Imh1bnRlcjIifQ==","list":[["Authorization","hunter2"]]},"outputs":"<password>hunter2</password>","error":"Bearer hunter2hunter2"}`,
	} {
		for j, parameters := range []string{``, `,"parameters":{}`, `,"parameters":null`, `,"parameters":{"b":1,"a":{"token":"t"},"n":1.50}`} {
			for k, at := range []string{"2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.9999999+02:00", "2039-01-30T11:33:20.000003Z"} {
				raws = append(raws, traceOf(fmt.Sprint("o-", i, j, k), at, `"type":"execute","name":"a:b%c"`+parameters, metadata))
			}
		}
	}
	for _, raw := range raws {
		if _, err := schema.Admit("", []byte(raw)); err != nil {
			t.Logf("not admitted: %v", err)
			continue
		}
		odd.Traces = append(odd.Traces, stored(t, raw, new(schema.Verdict)))
	}
	if len(odd.Traces) < len(raws)/2 {
		t.Fatalf("%d of %d records were admitted", len(odd.Traces), len(raws))
	}
	read := 0
	parts = append(parts, odd)
	for i := range parts {
		part := &parts[i]
		for _, rules := range []redact.Rules{redact.AllRules, redact.NoRules} {
			contents, judge, err := Read(part, Order(part.Traces), redact.DefaultOutputLimit, rules)
			if err != nil {
				t.Fatal(err)
			}
			part.Verdict, _ = judge.Finish(nil, time.Unix(part.Plan.ExportedAt, 0))
			in, err := Compose(part, contents, "Plumbline", "https://example.org")
			if err != nil {
				t.Fatal(err)
			}
			bundle, err := aivs.Build(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			var kept report.Contents
			verified, err := aivs.Verify(bytes.NewReader(bundle.Bytes), aivs.Options{Row: kept.Row, File: kept.File})
			if err != nil || !verified.Intact {
				t.Fatalf("%+v, %v", verified, err)
			}
			var page strings.Builder
			if err := (&report.Page{Report: verified, Contents: &kept}).Write(&page); err != nil {
				t.Fatal(err)
			}
			if found := regexp.MustCompile(`CONTRADICTION[^<]*`).FindString(page.String()); found != "" {
				t.Errorf("%s, rules %d: %s", part.SessionID, rules, found)
			}
			read += len(part.Traces)
		}
	}
	if read < 1000 {
		t.Errorf("only %d records were compared", read)
	}
}
