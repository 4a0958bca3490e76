package deadletter

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/otel"
	"github.com/plumbline/plumbline/pipeline/store"
)

// A span that is a dead letter is shown with the names of its attributes, and with the values of those that name a secret hidden.
// In another record, key is the name of a secret.
func TestContentOfASpan(t *testing.T) {
	raw := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x","attributes":[{"key":"aap.agent_id","value":{"stringValue":"shop"}},{"key":"api_key","value":{"stringValue":"hunter2"}}]}]}]}]}`
	letter := &store.MarkedLetter{}
	letter.Raw, letter.Reason = []byte(raw), otel.ReasonUnmapped
	c := ContentOf(letter)
	if shown := string(c.Record); !strings.Contains(shown, `"key":"aap.agent_id","value":{"stringValue":"shop"}`) || !strings.Contains(shown, `"key":"api_key","value":"[REDACTED]"`) || c.Redactions != 1 {
		t.Errorf("%d hidden: %s", c.Redactions, shown)
	}
	letter.Reason = "invalid_trace"
	if shown := string(ContentOf(letter).Record); strings.Contains(shown, "aap.agent_id") || strings.Contains(shown, "hunter2") {
		t.Errorf("of another record it shows %s", shown)
	}
}
