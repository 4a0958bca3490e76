package stream

import "github.com/plumbline/plumbline/pipeline/subject"

// AgentInbox returns the inbox prefix of an agent. Only that agent may read the subjects below
// it.
func AgentInbox(agentID string) string { return "_INBOX_agent." + subject.Token(agentID) }

// Inbox returns the inbox prefix of a role.
func (r Role) Inbox() string { return "_INBOX_service." + string(r) }
