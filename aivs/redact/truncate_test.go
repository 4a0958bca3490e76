package redact

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOutputsTruncation(t *testing.T) {
	raw := []byte(`{"text":"` + strings.Repeat(`é\"x`, 1000) + `","token":"hunter2"}`)
	text, count, err := AllRules.Outputs(raw, DefaultOutputLimit)
	if err != nil || count.Draft != 1 || len(text) > DefaultOutputLimit || len(text) < DefaultOutputLimit-10 {
		t.Fatalf("%d bytes, %+v, %v", len(text), count, err)
	}
	var short struct {
		Truncated    bool
		Bytes        int
		SHA256, Head string
	}
	if err := json.Unmarshal([]byte(text), &short); err != nil {
		t.Fatal(err)
	}
	whole, _, err := AllRules.Outputs(raw, 0)
	if err != nil || strings.Contains(whole, "hunter2") {
		t.Fatal(whole, err)
	}
	if !short.Truncated || short.Bytes != len(whole) || short.SHA256 != digestOf([]byte(whole)) || !strings.HasPrefix(whole, short.Head) {
		t.Errorf("%+v is not of the %d bytes of the redacted text", short, len(whole))
	}
	if absent, _, err := AllRules.Outputs(nil, 10); err != nil || absent != "{}" {
		t.Errorf("absent outputs are %s, %v", absent, err)
	}
}

// characters matches the characters of JSON text that take more than one byte.
var characters = regexp.MustCompile(`\\u[dD][89abAB]..\\u....|\\u....|\\.`)

// Truncated outputs are JSON, not longer than the limit, and end after a whole character, as
// close to the limit as possible.
func TestTruncatedOutputsAreJSON(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("\"\\/\b\t\n\r\x00\x7f\u0085 a1é中\u2028😀𐀀{}[]:,")), 0, 300, -1)
	rapid.Check(t, func(r *rapid.T) {
		value := map[string]any{text.Draw(r, "name"): []any{text.Draw(r, "text"), rapid.Float64().Draw(r, "number"), nil}}
		raw, err := json.MarshalIndent(value, "", rapid.SampledFrom([]string{"", "\t"}).Draw(r, "indent"))
		if err != nil {
			r.Fatal(err)
		}
		whole, _, err := AllRules.Outputs(raw, 0)
		if err != nil || !json.Valid([]byte(whole)) {
			r.Fatalf("%s became %s: %v", raw, whole, err)
		}
		limit := rapid.IntRange(LeastOutputLimit, 1000).Draw(r, "limit")
		got, _, err := AllRules.Outputs(raw, limit)
		if err != nil || !json.Valid([]byte(got)) || len(got) > limit && got != whole || len(got) != len([]rune(got)) {
			r.Fatalf("limit %d: %d bytes of %s, %v", limit, len(got), got, err)
		}
		if len(whole) <= limit {
			if got != whole {
				r.Fatalf("limit %d: %s was cut to %s", limit, whole, got)
			}
			return
		}
		var short struct {
			Truncated bool
			Head      *string
		}
		if err := json.Unmarshal([]byte(got), &short); err != nil || !short.Truncated {
			r.Fatalf("%s, %v", got, err)
		}
		if short.Head == nil {
			return
		}
		end := len(*short.Head)
		inside := slices.ContainsFunc(characters.FindAllStringIndex(whole, -1), func(at []int) bool { return at[0] < end && end < at[1] })
		if !strings.HasPrefix(whole, *short.Head) || inside {
			r.Fatalf("%q of %q ends within a character", *short.Head, whole)
		}
		if room := limit - len(got); room > len(`\\ud83d\\ude00`) {
			r.Fatalf("limit %d: %d bytes are left", limit, room)
		}
	})
}

func TestTruncatedToNextToNothing(t *testing.T) {
	raw := []byte(`"` + strings.Repeat("x", 200) + `"`)
	for limit, want := range map[int]string{
		LeastOutputLimit: onlyTruncated, 115: onlyTruncated,
		116: `{"truncated":true,"bytes":202,"sha256":"` + digestOf(raw) + `","head":""}`,
		119: `{"truncated":true,"bytes":202,"sha256":"` + digestOf(raw) + `","head":"\"x"}`,
	} {
		if got, _, err := AllRules.Outputs(raw, limit); err != nil || got != want || len(got) > limit {
			t.Errorf("limit %d: %s (%d bytes), %v", limit, got, len(got), err)
		}
	}
}

// The head of truncated outputs ends between two characters in their written form: neither an
// escape nor the two escapes of one character beyond U+FFFF are split.
func TestHeadEndsBetweenCharacters(t *testing.T) {
	characters := []string{`"`, `a`, `\n`, `\"`, `\\`, `\u00e9`, `\u0900`, `b`, `\ud7ff`, `\uD800\uDC00`, `\ud83d\ude00`, `\udbff\udfff`, `\uDABC\uDEF0`, `\uE000`, `z`, `"`}
	whole := strings.Join(characters, "")
	if !json.Valid([]byte(whole)) {
		t.Fatal(whole)
	}
	var want, got []string
	for i := range characters {
		want = append(want, strings.Join(characters[:i], ""))
	}
	for limit := len(`""`); limit < len(quoted(whole)); limit++ {
		got = append(got, head([]byte(whole), limit, characterSize))
	}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("the heads are %q, want %q", got, want)
	}
}

// Outputs whose length equals the limit stay unchanged. Outputs that were truncated before have
// as much of their head as fits.
func TestOutputsOfJustTheLimit(t *testing.T) {
	raw := `{"text":"` + strings.Repeat("x", 200) + `"}`
	for limit, cut := range map[int]bool{len(raw): false, len(raw) + 1: false, len(raw) - 1: true} {
		if got, _, err := AllRules.Outputs([]byte(raw), limit); err != nil || (got != raw) != cut {
			t.Errorf("limit %d: %s, %v", limit, got, err)
		}
	}
	for limit, want := range map[int]string{
		LeastOutputLimit: onlyTruncated,
		27:               onlyTruncated,
		28:               `{"truncated":true,"head":""}`,
		29:               `{"truncated":true,"head":"a"}`,
		31:               `{"truncated":true,"head":"a"}`,
		32:               `{"truncated":true,"head":"a"}`,
		35:               `{"truncated":true,"head":"a\u00e9"}`,
		0:                `{"truncated":true,"head":"a\u00e9b"}`,
	} {
		if got, _ := AllRules.CutOutputs("aéb", limit); got != want {
			t.Errorf("limit %d: %s, want %s", limit, got, want)
		}
	}
}

// Outputs that another program truncated, at any place, become JSON that says so, and the value
// after a sensitive name is hidden.
func TestCutOutputs(t *testing.T) {
	whole := `{"a":[1,{"é":"x\\u00e9\\n"}],"password":"hunter2","b":"😀"}`
	for end := 1; end < len(whole); end++ {
		cut := strings.ToValidUTF8(whole[:end], "")
		if !IsCut(cut) {
			t.Fatalf("%s does not count as truncated", cut)
		}
		for _, limit := range []int{0, LeastOutputLimit, 27, 28, 40} {
			got, count := AllRules.CutOutputs(cut, limit)
			var short struct {
				Truncated bool
				Head      string
			}
			if err := json.Unmarshal([]byte(got), &short); err != nil || !short.Truncated || limit > 0 && len(got) > limit || strings.Contains(got, "hunt") {
				t.Fatalf("limit %d: %s became %s (%+v), %v", limit, cut, got, count, err)
			}
			if limit == 0 && count.Sum() == 0 && short.Head != cut {
				t.Fatalf("%s became %s", cut, got)
			}
		}
	}
	if !IsCut(`{"a":"b... [truncated 12 chars]`) || !IsCut("text... [truncated 12 chars]") {
		t.Error("the truncation mark of the draft's generator is not recognised")
	}
	for _, text := range []string{whole, "text", `{"a":1}}`, `{"a" 1`, `1`} {
		if IsCut(text) {
			t.Errorf("%s counts as truncated", text)
		}
	}
}

func digestOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
