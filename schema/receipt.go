package schema

import "time"

// Receipt records that one trace is stored. The verifier writes it after the insert and before
// the ack, so the exporter knows every session's extent and true digests without a query of
// ClickHouse.
type Receipt struct {
	AgentID   string
	SessionID string    // never empty: a trace without a session has a synthetic one
	Sequence  uint64    // in stream TRACES
	Digest    Digest    // of the record's bytes
	EventTime time.Time // the trace's own time
	Bytes     int       // of the record; 0 in old receipts, which lack it
	End       bool      // the trace ends its session
}
