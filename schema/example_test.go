package schema_test

import (
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/schema"
)

func ExampleAdmit() {
	line := []byte(`{"trace_id": "tr-1", "agent_id": "did:web:shop.example", "card_id": "ac-1", "timestamp": "yesterday",
		"action": {"type": "execute", "name": "search", "category": "bounded"},
		"decision": {"alternatives_considered": [{"option_id": "A", "description": "search the catalogue"}],
			"selected": "B", "selection_reasoning": "the user asked for it"}}`)
	_, err := schema.Admit("did:web:shop.example", line)
	var refusal *schema.Refusal
	if errors.As(err, &refusal) {
		for _, fault := range refusal.Faults {
			fmt.Println(fault.Pointer, fault.Message)
		}
	}

	// Output:
	// /timestamp "yesterday" is not an RFC 3339 time with a zone, such as 2026-01-31T12:30:00Z
	// /decision/values_applied is missing (required)
	// /decision/selected no alternative has the option_id "B"
}
