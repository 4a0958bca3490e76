package schema

import "time"

// Receipt says that one trace is stored: the verifier writes it after the
// insert and before the ack, so that the exporter knows every session's extent
// and true digests without asking ClickHouse.
type Receipt struct {
	AgentID   string
	SessionID string    // never empty: the synthetic session's id stands for none
	Sequence  uint64    // in stream TRACES
	Digest    Digest    // of the record's bytes
	EventTime time.Time // the trace's own time
	Bytes     int       // of the record; 0 in receipts of before it was noted
	End       bool      // the trace ends its session
}
