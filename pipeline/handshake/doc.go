// Package handshake answers the value coherence handshake (AAP section 6) for the
// agents whose cards are registered, and keeps the results of the tasks that follow
// (section 3.2).
//
// It owns the order of the messages, the freshness and replay rules of section
// 9.4 and where they are remembered, the signatures of the answers, and the record
// of each result. It does not own the messages (package schema), the judgement
// (aap/coherence), who may speak for whom, nor HTTP and NATS, which carry it.
//
// Invariants: whatever process a message reaches, and however often, it is
// answered once; a check is judged by the task of the request whose request_id it
// carries; what is answered to a check, and what is receipted of a task, is durable
// in stream COHERENCE before. A message that was refused without an answer leaves
// nothing to repeat: a requester begins again with a new request_id. The result of a
// task alone may be sent again as it is, and has the same receipt.
package handshake
