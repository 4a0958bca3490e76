package schema

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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

// beyondLimits says what is wrong with a value that Plumbline does not interpret: nesting
// deeper than MaxDepth (depth levels already surround the value), or a number that no float64
// holds. For most values a quick look at the bytes is enough.
func beyondLimits(v []byte, depth int) string {
	switch jsontext.Value(v).Kind() {
	case '"', 't', 'f', 'n':
		return ""
	}
	deep := depth + bytes.Count(v, []byte{'{'}) + bytes.Count(v, []byte{'['})
	if deep <= MaxDepth && !mayOverflow(v) {
		return ""
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return "" // the end: v was read as a complete value before
		}
		if depth+dec.StackDepth() > MaxDepth {
			return fmt.Sprintf("nested deeper than %d levels", MaxDepth)
		}
		if token.Kind() != '0' {
			continue
		}
		if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
			return fmt.Sprintf("a number is beyond the range of a 64-bit float (%s)", clip(string(dec.StackPointer())))
		}
	}
}

// mayOverflow reports whether v may hold a number beyond float64: an exponent of three digits,
// or very many digits.
func mayOverflow(v []byte) bool {
	for i := 1; i+3 < len(v); i++ {
		if c := v[i] | 0x20; c != 'e' || !digit(v[i-1]) {
			continue
		}
		e := v[i+1:]
		if e[0] == '+' || e[0] == '-' {
			e = e[1:]
		}
		if len(e) >= 3 && digit(e[0]) && digit(e[1]) && digit(e[2]) {
			return true
		}
	}
	return hasManyDigits(v)
}

// safeDigits is the number of digits before the point that a number may have without
// inspection: with an exponent of two digits it stays below 1e300.
const safeDigits = 200

// hasManyDigits reports whether v has a run of more than safeDigits digits. Every such run has
// a digit at a multiple of safeDigits.
func hasManyDigits(v []byte) bool {
	for at := safeDigits; at < len(v); at += safeDigits {
		if !digit(v[at]) {
			continue
		}
		from, to := at, at
		for from > 0 && digit(v[from-1]) {
			from--
		}
		for to < len(v) && digit(v[to]) {
			to++
		}
		if to-from > safeDigits {
			return true
		}
	}
	return false
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
