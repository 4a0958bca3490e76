package redact

import (
	"testing"

	"pgregory.net/rapid"
)

// The signature of a record that is redacted is hidden, since it would confirm a guess of what was
// hidden. It stays where it can still be checked.
func TestSignatureOfARedactedRecord(t *testing.T) {
	const s = `"signature":{"algorithm":"Ed25519","value":"c2ln","key_id":"k1"}`
	const withoutKey = `"signature":{"algorithm":"Ed25519","value":"c2ln","key_id":"[REDACTED]"}`
	const without = `"signature":{"algorithm":"Ed25519","value":"[REDACTED]","key_id":"[REDACTED]"}`
	for _, c := range []struct {
		record, want string
		count        Count
	}{
		{`{"password":"4711",` + s + `}`, `{"password":"[REDACTED]",` + without + `}`, Count{Draft: 3}},
		{`{` + s + ` , "password" : 4711}`, `{` + without + ` , "password" : "[REDACTED]"}`, Count{Draft: 3}},
		{`{"text":"password=4711",` + s + `}`, `{"text":"password=[REDACTED]",` + without + `}`, Count{Draft: 2, Optional: 1}},
		{`{"amount":4711,` + s + `}`, `{"amount":4711,` + withoutKey + `}`, Count{Draft: 1}},
		{`{"amount":4711}`, `{"amount":4711}`, Count{}},
		{`{"password":"4711","\u0073ignature":{"v\u0061lue":"c2ln"}}`, `{"password":"[REDACTED]","\u0073ignature":{"v\u0061lue":"[REDACTED]"}}`, Count{Draft: 2}},
		{`{"password":"4711","signature":"c2ln"}`, `{"password":"[REDACTED]","signature":"[REDACTED]"}`, Count{Draft: 2}},
		{`{"password":"4711","signature":{}}`, `{"password":"[REDACTED]","signature":{}}`, Count{Draft: 1}},
		{`{"password":"4711","a":{"signature":{"value":"c2ln"}}}`, `{"password":"[REDACTED]","a":{"signature":{"value":"c2ln"}}}`, Count{Draft: 1}},
	} {
		got, count, err := AllRules.Signed([]byte(c.record))
		if err != nil || string(got) != c.want || count != c.count {
			t.Errorf("%s: %s, %+v, %v", c.record, got, count, err)
		}
		if again, count, err := AllRules.Signed(got); err != nil || string(again) != string(got) || count != (Count{}) {
			t.Errorf("%s: redacted again: %s, %+v, %v", c.record, again, count, err)
		}
	}
	if _, _, err := AllRules.Signed([]byte(`{"password":`)); err == nil {
		t.Error("half a record has no error")
	}
}

// Of any record the rules leave the signature of what they leave, and no other.
func TestSignatureStaysOnlyOfWholeRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"password", "amount", "text", "parameters"}).Draw(t, "name")
		value := rapid.SampledFrom([]string{`"4711"`, `"token=hunter2hunter2"`, `{"monkey":1}`, `[1]`, `"{\"secret\":1}"`}).Draw(t, "value")
		body := `"` + name + `":` + value
		record := []byte(`{` + body + `,"signature":{"value":"c2ln"}}`)
		unsigned, _, err := AllRules.Record([]byte(`{` + body + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := AllRules.Signed(record)
		if err != nil || (string(got) == string(record)) != (string(unsigned) == `{`+body+`}`) {
			t.Fatalf("%s: %s, %v", record, got, err)
		}
	})
}
