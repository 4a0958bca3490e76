// Package handshake answers the value coherence handshake (AAP section 6) for the agents whose
// cards are registered, and stores the results of the tasks that follow (section 3.2).
//
// It owns the order of the messages, the freshness and replay rules of section 9.4 and the memory
// for them, the signatures of the answers, and the record of each result. It does not own the
// messages (package schema), the judgement (aap/coherence), the rights of tokens, or HTTP and
// NATS, which transport it.
//
// Invariants: a message is answered once, whatever process it reaches, and however often it is
// sent. A check is judged by the task of the request with the same request_id. The result of a
// check, and a task result before its receipt, are durable in stream COHERENCE before the answer
// is sent. After a refusal without an answer there is nothing to repeat: a requester begins again
// with a new request_id. Only the result of a task may be sent again unchanged, and gets the same
// receipt.
package handshake
