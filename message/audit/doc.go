// Package audit compares a trace with the records of the messages and tool results that it
// cites. It reports the threats of the message-integrity RFC (section 1, T1 to T6) that it
// finds.
//
// It owns the form of the citation, context.metadata.message_auth, and the rules. It does not
// own the records or their storage (pipeline/messages). It does no I/O.
//
// Invariants: in doubt the decision goes against the trace. The findings depend only on the
// trace, the records and the agent's policy. An agent in mode off is not examined.
package audit
