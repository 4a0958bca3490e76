package schema

import (
	"strings"
	"time"
)

// The limits of every record. They bound the cost of judging a record, not its meaning;
// docs/SCHEMA.md repeats them for publishers.
const (
	MaxTraceBytes = 768 << 10 // a trace, from opening to closing brace
	MaxCardBytes  = 256 << 10 // a card
	MaxDepth      = 64        // nested objects and arrays
	MaxIDBytes    = 512       // trace_id, agent_id, card_id, session_id, option_id, names

	MaxCostCents = 1<<53 - 1 // of an execution: every reader of JSON represents it exactly, and bundles accept it

	MaxAlternatives = 256     // of one decision
	MaxFaults       = 100     // listed in one refusal; the rest are counted
	MaxPointerBytes = 1 << 10 // of the place of a fault; a longer pointer is cut to its beginning
)

// EarliestTime and LatestTime bound the time of a trace: ClickHouse's hour
// arithmetic wraps outside them.
var (
	EarliestTime = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	LatestTime   = time.Date(2105, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
)

// PlainName reports whether s may name a tenant or a ClickHouse cluster: 1 to 64 of a-z,
// A-Z, 0-9, _ and -.
func PlainName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	return s != "" && len(s) <= 64 && strings.Trim(s, letters) == ""
}

// syntheticPrefix begins the session id of traces without a session.
const syntheticPrefix = "~utc-"

// SessionID returns the session of a trace: its own, or the synthetic session of its agent and
// UTC day ("~utc-2026-01-31"). Publishers must not use synthetic ids.
func SessionID(t *Trace) string {
	if t.Context.SessionID != "" {
		return t.Context.SessionID
	}
	return syntheticPrefix + t.Timestamp.UTC().Format(time.DateOnly)
}
