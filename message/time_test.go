package message_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/message"
)

// An envelope stays valid when its time is written in another form of RFC 3339.
func TestTimesOfEnvelopes(t *testing.T) {
	key, m := newKey(t), sample()
	mac := key.Sign(&m)
	text, err := json.Marshal(message.Envelope{Message: m})
	if err != nil {
		t.Fatal(err)
	}
	written := `"timestamp":"2026-03-01T12:00:00Z"`
	if !strings.Contains(string(text), written) {
		t.Fatalf("no %s in %s", written, text)
	}
	for _, other := range []string{"2026-03-01t12:00:00z", "2026-03-01T13:00:00.0+01:00"} {
		var e message.Envelope
		if err := json.Unmarshal([]byte(strings.Replace(string(text), "2026-03-01T12:00:00Z", other, 1)), &e); err != nil {
			t.Errorf("%s: %v", other, err)
			continue
		}
		e.Text = m.Text
		if err := key.Verify(&e.Message, mac); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
}
