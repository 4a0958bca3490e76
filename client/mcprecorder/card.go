package mcprecorder

import (
	"encoding/json"
	"fmt"
	"time"
)

// Card returns a minimal card of an agent: it permits the tools that its server offers, declares
// no values, and expires after a year.
func Card(cardID, agentID string, tools []string, now time.Time) ([]byte, error) {
	type object map[string]any
	card, err := json.MarshalIndent(object{
		"aap_version": "0.1.0", "card_id": cardID, "agent_id": agentID,
		"issued_at":  now.UTC().Format(time.RFC3339),
		"expires_at": now.UTC().AddDate(1, 0, 0).Format(time.RFC3339),
		"principal":  object{"type": "unspecified", "relationship": "delegated_authority"},
		"values":     object{"declared": []string{}},
		"autonomy_envelope": object{
			"bounded_actions": append([]string{}, tools...), "escalation_triggers": []object{},
		},
		"audit_commitment": object{"trace_format": "ap-trace-v1", "retention_days": 90, "queryable": false},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write a card: %w", err)
	}
	return card, nil
}
