package aivs

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRowHashKnownAnswer(t *testing.T) {
	row := Row{ID: 1, SessionID: "sess-abc123", ActionType: ActionToolCall, ToolName: "browser.navigate", Timestamp: 1710252645.123456}
	if got := NewChain().hash(&row); got != "75e6a4dfa8e3a214f4f41085faa00b1cae229db7aeaa5996ddec2e191edc5707" {
		t.Errorf("row hash %s", got)
	}
	if got := NewChain().Hash(); got != "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d" {
		t.Errorf("chain hash of no rows %s", got)
	}
}

func TestTimestampHasMicroseconds(t *testing.T) {
	row := Row{Timestamp: UnixSeconds(time.Date(2024, 3, 12, 14, 10, 45, 123456789, time.UTC))}
	if got := string(row.AppendJSON(nil)); !strings.Contains(got, `"timestamp": 1710252645.123456,`) {
		t.Errorf("row %s", got)
	}
}

func TestEncodeIsReversibleAndFreeOfColons(t *testing.T) {
	if got := Encode("a:b%3A"); got != "a%3Ab%253A" {
		t.Errorf("encoded %s", got)
	}
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String().Draw(r, "text")
		encoded := Encode(text)
		decoded, err := url.PathUnescape(encoded)
		if err != nil || decoded != text || strings.Contains(encoded, ":") {
			r.Fatalf("%q became %q became %q: %v", text, encoded, decoded, err)
		}
	})
}

func TestRowTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String()
		row := Row{ID: rapid.Int64Range(1, maxCost).Draw(r, "id"), SessionID: text.Draw(r, "session"), ActionType: text.Draw(r, "action"),
			ToolName: text.Draw(r, "tool"), InputsJSON: text.Draw(r, "inputs"), OutputsJSON: text.Draw(r, "outputs"), Error: text.Draw(r, "error"),
			CostCents: rapid.Int64Range(0, maxCost).Draw(r, "cost"), Timestamp: rapid.Float64().Draw(r, "timestamp"), PrevHash: "p", RowHash: "h"}
		line := row.AppendJSON(nil)
		parsed, err := ParseRow(line)
		if err != nil || parsed != row {
			r.Fatalf("%s\nread as %+v: %v", line, parsed, err)
		}
		for _, c := range line {
			if c < ' ' || c > '~' {
				r.Fatalf("byte %#x in %s", c, line)
			}
		}
	})
}

func TestParseRowIsStrict(t *testing.T) {
	good := string((&Row{ID: 1, SessionID: "s", ActionType: "a", ToolName: "t", Timestamp: 1.5}).AppendJSON(nil))
	if _, err := ParseRow([]byte(good)); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"missing":          strings.Replace(good, `"error": "", `, "", 1),
		"duplicate":        strings.Replace(good, `"error": ""`, `"error": "", "error": ""`, 1),
		"integer time":     strings.Replace(good, "1.5", "1", 1),
		"infinite time":    strings.Replace(good, "1.5", "1e999", 1),
		"NaN time":         strings.Replace(good, "1.5", "NaN", 1),
		"float cost":       strings.Replace(good, `"cost_cents": 0`, `"cost_cents": 0.0`, 1),
		"text cost":        strings.Replace(good, `"cost_cents": 0`, `"cost_cents": "0"`, 1),
		"negative cost":    strings.Replace(good, `"cost_cents": 0`, `"cost_cents": -1`, 1),
		"huge cost":        strings.Replace(good, `"cost_cents": 0`, `"cost_cents": 9007199254740992`, 1),
		"null text":        strings.Replace(good, `"tool_name": "t"`, `"tool_name": null`, 1),
		"other case":       strings.Replace(good, `"tool_name"`, `"Tool_Name"`, 1),
		"half a surrogate": strings.Replace(good, `"tool_name": "t"`, `"tool_name": "\ud800"`, 1),
		"two values":       good + good,
		"array":            "[" + good + "]",
		"cut":              good[:len(good)-1],
		"empty":            "",
	}
	for name, line := range cases {
		if row, err := ParseRow([]byte(line)); err == nil {
			t.Errorf("%s: read as %+v", name, row)
		}
	}
}

func TestFileName(t *testing.T) {
	for session, want := range map[string]string{
		"sess-abc123":      "aivs_proof_sess-abc_7.tar.gz",
		"../../etc/passwd": "aivs_proof_______et_7.tar.gz",
		"é日本":              "aivs_proof_____7.tar.gz",
		"~utc-2026-01-01":  "aivs_proof__utc-202_7.tar.gz",
	} {
		if got := FileName(session, 7); got != want {
			t.Errorf("%s: %s, want %s", session, got, want)
		}
	}
}

func TestParseKeyForms(t *testing.T) {
	key := publicOf(testKey("k"))
	file := string(publicKeyFile(key))
	lines := strings.SplitAfter(file, "\n")
	for _, text := range []string{file, strings.Join(lines[:3], ""), lines[3], lines[3] + strings.Join(lines[:3], ""),
		strings.TrimPrefix(lines[3], keyComment), strings.ReplaceAll(file, "\n", "\r\n")} {
		if got, err := ParseKey(text); err != nil || !got.Equal(key) {
			t.Errorf("%q: %x, %v", text, got, err)
		}
	}
	other := string(publicKeyFile(publicOf(testKey("other"))))
	for _, text := range []string{"", noKey, "abc", strings.Repeat("g", 64), lines[3] + other, strings.Replace(file, "MCow", "MDow", 1), keyComment + " 12\n"} {
		if got, err := ParseKey(text); err == nil {
			t.Errorf("%q: read as %x", text, got)
		}
	}
}
