package subject

import (
	"fmt"
	"strings"
)

const ledgerPrefix = "aap.ledger."

// Ledgers is the filter for the subjects of all agents' ledgers.
const Ledgers = ledgerPrefix + "*"

// Ledger returns the subject on which an agent publishes the entries of its own ledger.
func Ledger(agentID string) string { return ledgerPrefix + Token(agentID) }

// ParseLedger returns the agent to whose ledger a subject belongs.
func ParseLedger(subject string) (agentID string, err error) {
	token, ok := strings.CutPrefix(subject, ledgerPrefix)
	if !ok {
		return "", fmt.Errorf("%q is not the subject of a ledger", subject)
	}
	if agentID, err = Agent(token); err != nil {
		return "", fmt.Errorf("subject %q: %w", subject, err)
	}
	return agentID, nil
}
