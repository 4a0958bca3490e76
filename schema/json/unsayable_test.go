package jsonschema_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/schema"
)

// unsayable maps the rules that no JSON Schema can express to the messages of the decoders
// about them. The list is complete: any other difference is a fault of a schema or of a
// decoder.
var unsayable = map[string]*regexp.Regexp{
	"one of the option_ids is selected":         regexp.MustCompile(`no alternative has the option_id ".*"$`),
	"option_ids are unique":                     regexp.MustCompile(`is the option_id of an earlier alternative too$`),
	"key_ids are unique":                        regexp.MustCompile(`is the key_id of an earlier key too$`),
	"a length is counted in bytes":              regexp.MustCompile(`^\d+ bytes, at most 512 are allowed$`),
	"a record has so many bytes":                regexp.MustCompile(`^\d+ bytes, (a trace|a card|a handshake message) may have \d+$`),
	"times are those of a range":                regexp.MustCompile(`(is outside 1970\.\.2105|in UTC its year is outside 0\.\.9999)$`),
	"the zero time is not a time":               regexp.MustCompile(`is the zero time, which means absent$`),
	"an integer has neither point nor exponent": regexp.MustCompile(`^want an integer of at least 0$`),
	"numbers are those of a 64-bit float":       regexp.MustCompile(`beyond the range of a 64-bit float`),
	"nesting has a depth":                       regexp.MustCompile(`^nested deeper than 64 levels$`),
	"names in an object are unique":             regexp.MustCompile(`^duplicate object member name`),
	"text is UTF-8":                             regexp.MustCompile(`^invalid (UTF-8|surrogate pair)`),
	"a card expires after its issue":            regexp.MustCompile(`^is not after issued_at$`),
	"declared values are defined":               regexp.MustCompile(`is no standard value and has no definition$`),
	"no value subsumes itself":                  regexp.MustCompile(`cannot subsume itself$`),
	"no action is bounded and forbidden":        regexp.MustCompile(`is one of bounded_actions too`),
}

// ruleOf returns the rule of unsayable that a message is about, empty if there is none.
func ruleOf(message string) string {
	for rule, says := range unsayable {
		if says.MatchString(message) {
			return rule
		}
	}
	return ""
}

// Every rule of the list is needed: for each there is a record that the schema admits and that
// the decoder refuses because of this rule alone.
func TestRulesOutsideTheSchemasAreApplied(t *testing.T) {
	replace := func(record, old, by string) string {
		if !strings.Contains(record, old) {
			t.Fatalf("no %s in the record", old)
		}
		return strings.Replace(record, old, by, 1)
	}
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	key := `{"key_id": "k", "algorithm": "Ed25519", "public_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}`
	broken := map[string][]string{
		"one of the option_ids is selected":         {replace(fullTrace, `"selected": "A"`, `"selected": "Z"`)},
		"option_ids are unique":                     {replace(fullTrace, `"option_id": "B"`, `"option_id": "A"`)},
		"key_ids are unique":                        {replace(fullCard, `"keys": [`, `"keys": [`+key+`,`)},
		"a length is counted in bytes":              {replace(fullTrace, "tr-1", strings.Repeat("é", 400)), replace(fullCard, "ac-1", strings.Repeat("é", 400))},
		"a record has so many bytes":                {replace(fullTrace, "whatever", strings.Repeat("x", schema.MaxTraceBytes)), replace(fullCard, "thrift\"]", `thrift"], "x": "`+strings.Repeat("x", schema.MaxCardBytes)+`"`), replace(cardRequest, `"own": {}`, `"own": "`+strings.Repeat("x", schema.MaxHandshakeBytes)+`"`)},
		"times are those of a range":                {replace(fullTrace, "2026-01-31T12:30", "9999-01-31T12:30"), replace(fullCard, "2026-01-01", "1969-01-01"), replace(cardRequest, "2026", "2106"), replace(fullTrace, "2026-01-31T12:31:00Z", "9999-12-31T23:59:60Z"), replace(fullTrace, "2026-01-31T12:31:00Z", "0000-01-01T00:00:00+01:00")},
		"the zero time is not a time":               {replace(fullTrace, "2026-01-31T12:31:00Z", "0001-01-01T00:00:00Z")},
		"an integer has neither point nor exponent": {replace(fullTrace, `"conversation_turn": 3`, `"conversation_turn": 3.0`), replace(fullCard, "90,", "9e1,")},
		"numbers are those of a 64-bit float":       {replace(fullTrace, "45.5", "1e400"), replace(fullCard, `"own": 1`, `"own": -1e400`), replace(cardRequest, `"own": {}`, `"own": {"x": 1e400}`)},
		"nesting has a depth":                       {replace(fullTrace, "[true]", deep), replace(fullCard, `"own": 1`, `"own": `+deep), replace(cardRequest, `"own": {}`, `"own": `+deep)},
		"names in an object are unique":             {replace(fullTrace, `"own":`, `"own": 1, "own":`), replace(fullCard, `"own":`, `"own": 1, "own":`), replace(cardRequest, `"own":`, `"own": 1, "own":`)},
		"text is UTF-8":                             {replace(fullTrace, "whatever", "\xff"), replace(fullTrace, "whatever", `\ud800`), replace(fullCard, "spend little", "\xff"), replace(cardRequest, "compare", `\udc00x`)},
		"a card expires after its issue":            {replace(fullCard, "2026-12-31", "2026-01-01")},
		"declared values are defined":               {replace(fullCard, `"honesty"`, `"speed"`), replace(cardResponse, `"honesty"`, `"speed"`)},
		"no value subsumes itself":                  {replace(fullCard, "saving", "thrift")},
		"no action is bounded and forbidden":        {replace(fullCard, `"delete"`, `"search"`)},
	}
	for rule := range unsayable {
		if len(broken[rule]) == 0 {
			t.Errorf("no record breaks the rule that %s", rule)
		}
		for _, record := range broken[rule] {
			checkBroken(t, rule, record)
		}
	}
}

// A number counts as the nearest 64-bit float: a number that exceeds a range by less than the
// rounding is inside it. A validator that counts exactly refuses it.
func TestRangesAreThoseOfFloats(t *testing.T) {
	oracle := compile(t, "ap-trace", nil)
	for _, number := range []string{"1.00000000000000000001", "-1e-400"} {
		record := strings.Replace(fullTrace, "0.85", number, 1)
		if _, err := schema.Admit("", []byte(record)); err != nil {
			t.Errorf("score %s: %v", number, err)
		}
		if oracle.Validate(parse(t, []byte(record))) == nil {
			t.Errorf("score %s: the oracle counts in floats as well; this test is not needed", number)
		}
	}
}

func checkBroken(t *testing.T, rule, record string) {
	t.Helper()
	s := subjects[0]
	switch {
	case strings.Contains(record, "message_type"):
		s = subjects[2]
	case strings.Contains(record, "issued_at"):
		s = subjects[1]
	}
	if err := compile(t, s.schema, nil).Validate(parse(t, []byte(record))); err != nil {
		t.Errorf("%s: the schema refuses it as well: %v", rule, err)
	}
	var refusal *schema.Refusal
	if err := s.decode([]byte(record)); !errors.As(err, &refusal) {
		t.Errorf("%s: not refused (%v)", rule, err)
		return
	}
	for _, fault := range refusal.Faults {
		if got := ruleOf(fault.Message); got != rule {
			t.Errorf("%s: %s: %s (%s)", rule, fault.Pointer, fault.Message, got)
		}
	}
}
