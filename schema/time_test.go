package schema

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

func TestParseTime(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-31T12:30:00Z":              "2026-01-31T12:30:00Z",
		"2026-01-31t12:30:00z":              "2026-01-31T12:30:00Z",
		"2026-01-31T12:30:00z":              "2026-01-31T12:30:00Z",
		"2026-01-31t12:30:00.25+02:00":      "2026-01-31T10:30:00.25Z",
		"2026-01-31T12:30:00-00:00":         "2026-01-31T12:30:00Z",
		"2026-01-31T12:30:00.123456789123Z": "2026-01-31T12:30:00.123456789Z",
		"2016-12-31T23:59:60Z":              "2017-01-01T00:00:00Z", // a leap second counts as the following second
		"2016-12-31t23:59:60.5z":            "2017-01-01T00:00:00.5Z",
		"1990-12-31T15:59:60-08:00":         "1991-01-01T00:00:00Z",
		"2017-01-01T08:59:60+09:00":         "2017-01-01T00:00:00Z",
	} {
		at, err := ParseTime(text)
		if err != nil || at.Format(time.RFC3339Nano) != want || at.Location() != time.UTC {
			t.Errorf("%s: got %v, %v; want %s", text, at, err, want)
		}
	}
	for _, text := range []string{
		"", "Z", "2026-01-31", "2026-01-31T12:30Z", "2026-01-31T12:30:00", "2026-01-31 12:30:00Z", "2026-01-31T24:00:00Z", "2026-02-30T00:00:00Z",
		"2026-01-31T12:30:60Z", "2016-12-31T23:59:60+01:00", "2016-12-31T22:59:60Z", "2016-12-31T23:58:60Z", "2016-12-31T23:59:61Z",
		"2026-01-31T1:30:00Z", "2026-01-31T1:30:060Z", "2026-01-31T12:30:00,5Z", "2026-01-31T12:30:00+05:60", "2026-01-31T12:30:00+24:00", "2026-01-31T12:30:00ZZ",
		" 2026-01-31T12:30:00Z", "2026-01-31T12:30:00Z\n", "2026-01-31T12:30:60", "2026-01-31T23:59:600Z",
	} {
		if at, err := ParseTime(text); !errors.Is(err, ErrTime) {
			t.Errorf("%q is read as %v", text, at)
		}
	}
}

// All times of a record are read in the same way.
func TestTimesOfRecords(t *testing.T) {
	for _, text := range []string{"2026-03-01t12:00:00z", "2026-06-30T23:59:60Z"} {
		trace, err := Admit("", []byte(`{"trace_id":"t","agent_id":"a","card_id":"c","timestamp":"`+text+`","action":{"type":"deny","name":"n","category":"bounded"},`+
			`"decision":{"alternatives_considered":[{"option_id":"o","description":"d"}],"selected":"o","selection_reasoning":"r","values_applied":[]},`+
			`"escalation":{"principal_response":{"timestamp":"`+text+`"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		want, err := ParseTime(text)
		if err != nil || !trace.Timestamp.Equal(want) || !trace.Escalation.Response.Timestamp.Equal(want) {
			t.Errorf("%s: %v, %v, want %v", text, trace.Timestamp, trace.Escalation.Response.Timestamp, want)
		}
		card, err := DecodeCard([]byte(`{"aap_version":"0.1.0","card_id":"c","agent_id":"a","issued_at":"2026-01-01t00:00:00z","expires_at":"` + text + `",` +
			`"principal":{"type":"human","relationship":"advisory"},"values":{"declared":[]},"autonomy_envelope":{"bounded_actions":[],"escalation_triggers":[]},` +
			`"audit_commitment":{"trace_format":"x","retention_days":1,"queryable":false}}`))
		if err != nil || !card.ExpiresAt.Equal(want) {
			t.Errorf("%s: card %v (%v)", text, card, err)
		}
		message, err := DecodeHandshake([]byte(`{"message_type":"alignment_card_request","request_id":"r","requester":{"agent_id":"a","card_id":"c"},` +
			`"task_context":{"task_type":"x"},"timestamp":"` + text + `"}`))
		if err != nil || !message.Time().Equal(want) {
			t.Errorf("%s: message %v (%v)", text, message, err)
		}
	}
}

// Foreign JSON, flags and settings accept the same forms of times.
func TestTimeInJSON(t *testing.T) {
	for text, want := range map[string]string{
		`"2026-01-31t12:30:00z"`: "2026-01-31T12:30:00Z", `"2016-12-31T23:59:60Z"`: "2017-01-01T00:00:00Z", `"2026-01-31T12:30:00\u005a"`: "2026-01-31T12:30:00Z",
		`null`: "2000-01-01T00:00:00Z", `"today"`: "", `7`: "", `true`: "", `{}`: "", `""`: "", `"2026-01-31T12:30:60Z"`: "",
	} {
		for name, read := range map[string]func([]byte, any) error{
			"encoding/json": json.Unmarshal, "json/v2": func(raw []byte, to any) error { return jsonv2.Unmarshal(raw, to) },
		} {
			holder := struct{ At Time }{Time{time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}}
			err := read([]byte(`{"At":`+text+`}`), &holder)
			if (err != nil) != (want == "") || want != "" && holder.At.Format(time.RFC3339) != want {
				t.Errorf("%s of %s: %v, %v; want %s", name, text, holder.At, err, want)
			}
		}
	}
	written, err := json.Marshal(Time{time.Date(2026, 1, 31, 12, 30, 0, 0, time.UTC)})
	if err != nil || string(written) != `"2026-01-31T12:30:00Z"` {
		t.Errorf("written as %s, %v", written, err)
	}
}
