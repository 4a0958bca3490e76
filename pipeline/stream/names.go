package stream

import "strconv"

// The streams.
const (
	Traces      = "TRACES"
	Receipts    = "RECEIPTS"
	Alerts      = "ALERTS"
	DeadLetters = "DEADLETTER"
	Ledger      = "LEDGER"
	Coherence   = "COHERENCE"
	AgentLedger = "AGENTLEDGER"
)

// The buckets.
const (
	Cards       = "cards"
	Revocations = "revocations"
	Seals       = "seals"
	Leases      = "leases"
	Messages    = "messages"
	Handshakes  = "handshakes"
)

// MessageRecords is the stream behind bucket messages. Each record is read from it once, in
// order, and stored in the database.
const MessageRecords = "KV_" + Messages

// The durable consumers. Drift has one for each partition (DriftConsumer). The exporter has none:
// it reads RECEIPTS from its checkpoint.
const (
	VerifierConsumer   = "verifier"    // on TRACES
	DeadLetterConsumer = "deadletters" // on DEADLETTER
	CoherenceConsumer  = "coherence"   // on COHERENCE
	MessageConsumer    = "messages"    // on MessageRecords
	FindingsConsumer   = "findings"    // on ALERTS
)

// DriftConsumer returns the name of the durable consumer of TRACES for one partition.
func DriftConsumer(partition int) string { return "drift-" + strconv.Itoa(partition) }

const (
	receiptSubject    = "receipts."
	deadLetterSubject = "deadletter."
	ledgerSubject     = "ledger."
	leaseSubject      = "plumbline.lease."
)
