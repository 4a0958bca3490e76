package schema

import (
	"fmt"
	"strings"
	"testing"
)

// An id is any text of 1 to 512 bytes: the specification's tables require UUIDs, URIs and DIDs,
// but its own examples are none of these.
func TestIDsOfAnyForm(t *testing.T) {
	for id, valid := range map[string]bool{
		"f47ac10b-58cc-4372-a567-0e02b2c3d479":          true, // UUID
		"urn:uuid:f47ac10b-58cc-4372-a567-0e02b2c3d479": true, // URI
		"did:web:shopping.agent.example.com":            true, // DID
		"https://agents.example/a?b=c#d":                true, // URL
		"ac-f47ac10b-58cc-4372-a567-0e02b2c3d479":       true, // section 4.9
		"tr-abc123":                       true, // section 7.4
		"agent 7/ключ":                    true,
		strings.Repeat("x", MaxIDBytes):   true,
		strings.Repeat("x", MaxIDBytes+1): false,
		"":                                false,
	} {
		trace := fmt.Sprintf(`{"trace_id":%[1]q,"agent_id":%[1]q,"card_id":%[1]q,"timestamp":"2026-02-01T00:00:00Z",`+
			`"action":{"type":"execute","name":"search","category":"bounded"},`+
			`"decision":{"alternatives_considered":[{"option_id":%[1]q,"description":"d"}],"selected":%[1]q,"selection_reasoning":"r","values_applied":[]}}`, id)
		if _, err := Admit("", []byte(trace)); (err == nil) != valid {
			t.Errorf("a trace with the id %.40q: %v", id, err)
		}
		card := fmt.Sprintf(`{"aap_version":"0.1.0","card_id":%[1]q,"agent_id":%[1]q,"issued_at":"2026-01-01T00:00:00Z",`+
			`"principal":{"type":"human","relationship":"delegated_authority"},"values":{"declared":["honesty"]},`+
			`"autonomy_envelope":{"bounded_actions":["search"],"escalation_triggers":[]},`+
			`"audit_commitment":{"trace_format":"ap-trace-v1","retention_days":90,"queryable":false}}`, id)
		if _, err := DecodeCard([]byte(card)); (err == nil) != valid {
			t.Errorf("a card with the id %.40q: %v", id, err)
		}
		request := fmt.Sprintf(`{"message_type":"alignment_card_request","request_id":%[1]q,"timestamp":"2026-02-01T00:00:00Z","requester":{"agent_id":%[1]q,"card_id":%[1]q}}`, id)
		if _, err := DecodeHandshake([]byte(request)); (err == nil) != valid {
			t.Errorf("a request with the id %.40q: %v", id, err)
		}
	}
}
