package stream

import (
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/pipeline/subject"
)

// AgentInbox returns the inbox prefix of an agent. Only that agent may read the subjects below
// it.
func AgentInbox(agentID string) string { return "_INBOX_agent." + subject.Token(agentID) }

// Inbox returns the inbox prefix of a role.
func (r Role) Inbox() string { return "_INBOX_service." + string(r) }

// CheckInboxPrefix returns an error for an invalid inbox prefix; "" is the default prefix.
func CheckInboxPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if len(prefix) > maxSubjectBytes {
		return fmt.Errorf("the inbox prefix has %d bytes, the limit is %d", len(prefix), maxSubjectBytes)
	}
	for token := range strings.SplitSeq(prefix, ".") {
		if token == "" || strings.ContainsAny(token, "*> \t\r\n\x00") || strings.HasPrefix(prefix, "$") {
			return fmt.Errorf("%q: want tokens separated by dots, without wildcards and white space, such as %s", prefix, RoleIngest.Inbox())
		}
	}
	return nil
}
