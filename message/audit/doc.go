// Package audit holds what a trace did against what was recorded of the messages
// and tool results that it cites, and names the threats of the message-integrity
// RFC (section 1, T1 to T6) that it finds.
//
// It owns the form of the citation, context.metadata.message_auth, and the rules. It
// does not own the records, nor where they come from (pipeline/messages). It does
// no I/O.
//
// Invariants: a doubt is decided against the trace; what is found depends on the
// trace, the records and the agent's policy alone; an agent in mode off is not
// examined.
package audit
