package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// list returns a JSON array of n equal elements.
func list(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// Hostile records are refused within the limits, each with a readable message. Harmless ones
// are admitted.
func TestHostileRecords(t *testing.T) {
	admit := func(raw string) error { _, err := Admit("", []byte(raw)); return err }
	register := func(raw string) error { _, err := DecodeCard([]byte(raw)); return err }
	handshake := func(raw string) error { _, err := DecodeHandshake([]byte(raw)); return err }
	of := func(text, old, by string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the text", old)
		}
		return strings.Replace(text, old, by, 1)
	}
	const request = `{"message_type": "alignment_card_request", "request_id": "r", "timestamp": "2026-01-01T00:00:00Z",
		"requester": {"agent_id": "a", "card_id": "c"}, "task_context": {"task_type": "t", "values_required": ["honesty"]}}`
	const trigger, triggers = `{"condition":"a","action":"log","reason":""}`, `{"condition": "amount > 5", "action": "deny", "reason": "too much"}`
	manyTriggers := func(n int) string { return of(goodCard, triggers, strings.Trim(list(n, trigger), "[]")) }
	brackets := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		read func(string) error
		raw  string
		want string // "" where it is admitted
	}{
		"10,000 triggers":              {register, manyTriggers(10_000), "too_large: 450974 bytes, a card may have 262144"},
		"5,000 triggers":               {register, manyTriggers(5_000), "/autonomy_envelope/escalation_triggers: 5000 triggers, a card may have 500"},
		"500 triggers":                 {register, manyTriggers(500), ""},
		"100,000 bounded actions":      {register, of(goodCard, `["search"]`, list(100_000, `"a"`)), "a card may have 262144"},
		"50,000 bounded actions":       {register, of(goodCard, `["search"]`, list(50_000, `"a"`)), ""},
		"card, text of a megabyte":     {register, of(goodCard, `"ac-1"`, `"`+strings.Repeat("x", 1<<20)+`"`), "too_large: 1049"},
		"card, id of 200 KB":           {register, of(goodCard, `"ac-1"`, `"`+strings.Repeat("x", 200_000)+`"`), "/card_id: 200000 bytes, at most 512 are allowed"},
		"card, 10,000 deep":            {register, of(goodCard, `[1, {"deep": null}]`, brackets(10_000)), "exceeded max depth"},
		"card, time without a zone":    {register, of(goodCard, `2026-01-01T00:00:00Z`, `2026-01-01T00:00:00`), `/issued_at: "2026-01-01T00:00:00" is not an RFC 3339 time with a zone`},
		"card of the year 9999":        {register, of(goodCard, `2026-12-31`, `9999-12-31`), "/expires_at: 9999-12-31T21:59:59Z is outside 1970..2105"},
		"card of the year 1":           {register, of(goodCard, `2026-01-01`, `0001-01-01`), "/issued_at: \"0001-01-01T00:00:00Z\" is the zero time, which means absent"},
		"card, number beyond floats":   {register, of(goodCard, `99.5`, `1e999`), "/autonomy_envelope/max_autonomous_value/amount: number is beyond the range"},
		"card, number of many digits":  {register, of(goodCard, `99.5`, `0.`+strings.Repeat("9", MaxIDBytes-1)), "/autonomy_envelope/max_autonomous_value/amount: a number of 513 bytes, at most 512 are allowed"},
		"card, NaN":                    {register, of(goodCard, `99.5`, `NaN`), "invalid_json: /autonomy_envelope/max_autonomous_value/amount: invalid character 'N'"},
		"card, byte order mark":        {register, "\ufeff" + goodCard, `invalid_json: invalid character '\ufeff' at start of value`},
		"card, lone surrogate":         {register, of(goodCard, `Spend little`, `\udead`), "invalid_json: /values/definitions/thrift/description: invalid surrogate pair"},
		"time without a zone":          {admit, edit(t, `13:30:00.25+01:00`, `13:30:00`), `/timestamp: "2026-01-31T13:30:00" is not an RFC 3339 time with a zone, such as`},
		"date alone":                   {admit, edit(t, `2026-01-31T13:30:00.25+01:00`, `2026-01-31`), `/timestamp: "2026-01-31" is not an RFC 3339 time with a zone`},
		"year 1":                       {admit, edit(t, `2026-01-31T13:30:00.25+01:00`, `0001-01-01T00:00:00Z`), `/timestamp: "0001-01-01T00:00:00Z" is the zero time, which means absent`},
		"year 1, a day later":          {admit, edit(t, `2026-01-31T13:30:00.25+01:00`, `0001-01-02T00:00:00Z`), "/timestamp: 0001-01-02T00:00:00Z is outside 1970..2105"},
		"year 0":                       {admit, edit(t, `2026-01-31T13`, `0000-01-31T13`), "/timestamp: 0000-01-31T12:30:00Z is outside 1970..2105"},
		"year 9999":                    {admit, edit(t, `2026-01-31T13`, `9999-12-31T13`), "/timestamp: 9999-12-31T12:30:00Z is outside 1970..2105"},
		"year 10000":                   {admit, edit(t, `2026-01-31T13`, `10000-01-01T13`), "is not an RFC 3339 time"},
		"a year far away in a reply":   {admit, edit(t, `2026-01-31T12:31:00Z`, `9999-01-01T00:00:00Z`), ""},
		"id of 700 KB":                 {admit, edit(t, `"tr-1"`, `"`+strings.Repeat("x", 700_000)+`"`), "/trace_id: 700000 bytes, at most 512 are allowed"},
		"id of a megabyte":             {admit, edit(t, `"tr-1"`, `"`+strings.Repeat("x", 1<<20)+`"`), "too_large: 1049971 bytes, a trace may have 786432"},
		"64 deep":                      {admit, edit(t, `"in raw"`, brackets(62)), ""},
		"65 deep":                      {admit, edit(t, `"in raw"`, brackets(63)), "/unknown: nested deeper than 64 levels"},
		"100,000 deep":                 {admit, edit(t, `"in raw"`, brackets(100_000)), "exceeded max depth"},
		"10,000 alternatives":          {admit, edit(t, `{"option_id": "B"`, alternatives(10_000)+`{"option_id": "B"`), "/decision/alternatives_considered/256: more than 256 alternatives"},
		"100,000 values":               {admit, edit(t, `["honesty"]`, list(100_000, `"v"`)), ""},
		"NaN":                          {admit, edit(t, `"quantity": 2`, `"quantity": NaN`), "invalid_json: /action/parameters/quantity: invalid character 'N'"},
		"number beyond floats":         {admit, edit(t, `"quantity": 2`, `"quantity": 1e999`), "beyond the range of a 64-bit float"},
		"number of a million digits":   {admit, edit(t, `"quantity": 2`, `"quantity": `+strings.Repeat("9", 700_000)), "beyond the range of a 64-bit float"},
		"exponent of a million digits": {admit, edit(t, `"quantity": 2`, `"quantity": 0e`+strings.Repeat("9", 700_000)), ""},
		"lone surrogate":               {admit, edit(t, `"reason": "r"`, `"reason": "\ud800"`), "invalid_json: /escalation/reason: invalid surrogate pair"},
		"lone surrogate in a name":     {admit, edit(t, `"kept"`, `"\udfff"`), "invalid surrogate pair"},
		"byte order mark":              {admit, "\ufeff" + whole, `invalid_json: invalid character '\ufeff' at start of value`},
		"NUL byte in a text":           {admit, edit(t, `"in raw"`, "\"\x00\""), `invalid_json: /unknown/kept: invalid character '\x00'`},
		"NUL bytes behind the record":  {admit, whole + "\x00\x00", "unexpected text after the record (byte 1399)"},
		"NUL as an escape":             {admit, edit(t, `"in raw"`, `"\u0000"`), ""},
		"UTF-16":                       {admit, "{\x00\"\x00", "invalid_json: "},
		"message of a megabyte":        {handshake, of(request, `"r"`, `"`+strings.Repeat("x", 1<<20)+`"`), "too_large: 1048"},
		"message, 100,000 values":      {handshake, of(request, `["honesty"]`, list(100_000, `"v"`)), "/task_context/values_required: 100000 names, at most 1024 are allowed"},
		"message, time without a zone": {handshake, of(request, `00:00:00Z`, `00:00:00`), "/timestamp: \"2026-01-01T00:00:00\" is not an RFC 3339 time"},
		"message, 10,000 deep":         {handshake, of(request, `["honesty"]`, brackets(9_990)), "/task_context/values_required/0: want a string, found an array"},
	} {
		t.Run(name, func(t *testing.T) { checkHostile(t, c.read(c.raw), c.want) })
	}
}

// checkHostile checks the message of a refusal and the bounds of messages.
func checkHostile(t *testing.T, err error, want string) {
	if err == nil || want == "" {
		if err != nil || want != "" {
			t.Fatalf("error is %.300v, want %q", err, want)
		}
		return
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("%v is not a refusal", err)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("refused with %.300q, want %q", err, want)
	}
	for _, fault := range refusal.Faults {
		if len(fault.Message) > 300 || len(fault.Pointer) > 2<<10 {
			t.Errorf("a fault of %d and %d bytes", len(fault.Pointer), len(fault.Message))
		}
	}
}

// A record with thousands of faults is refused with a hundred of them.
func TestFaultsOfHostileRecordsAreBounded(t *testing.T) {
	for name, raw := range map[string]string{
		"values of another type": edit(t, `["honesty"]`, list(100_000, "7")),
		"long names":             edit(t, `"kept": "in raw"`, `"`+strings.Repeat("x", 100_000)+`": 1e999, "`+strings.Repeat("y", 100_000)+`": 1e999`),
		"triggers":               edit(t, `"triggers_checked": [`, `"triggers_checked": [`+strings.Repeat(`{"matched":0},`, 20_000)),
	} {
		_, err := Admit("", []byte(raw))
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %.100v is not a refusal", name, err)
			continue
		}
		size := 0
		for _, fault := range refusal.Faults {
			size += len(fault.Pointer) + len(fault.Message)
		}
		if len(refusal.Faults) > MaxFaults+1 || size > 64<<10 {
			t.Errorf("%s: %s", name, fmt.Sprintf("%d faults of %d bytes", len(refusal.Faults), size))
		}
	}
}
