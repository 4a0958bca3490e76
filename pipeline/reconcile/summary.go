package reconcile

import "time"

// Summary is what was compared, and how much of it does not agree.
type Summary struct {
	StartedAt   time.Time    `json:"started_at"`
	FinishedAt  time.Time    `json:"finished_at"`
	Differences int          `json:"differences"`
	ByKind      map[Kind]int `json:"by_kind"`
	Skipped     []string     `json:"skipped"` // what could not be compared, and why
	Counts      Counts       `json:"counts"`
}

// Counts says how much of each was compared.
type Counts struct {
	Messages    uint64 `json:"messages"`     // of stream TRACES
	Traces      uint64 `json:"traces"`       // rows that a message stands behind
	Copies      uint64 `json:"copies"`       // messages of the same bytes as an earlier one
	DeadLetters uint64 `json:"dead_letters"` // messages that are one
	UnderWay    uint64 `json:"under_way"`    // messages, bundles and events that were being worked on
	Expired     uint64 `json:"expired"`      // messages whose rows retention has removed
	Unstreamed  uint64 `json:"unstreamed"`   // rows whose messages the stream no longer holds, or that came by an earlier stream: their own digest was checked
	Verdicts    uint64 `json:"verdicts"`     // traces that have one
	Points      uint64 `json:"points"`       // traces that have a drift point
	Unmeasured  uint64 `json:"unmeasured"`   // traces that drift has not acknowledged yet
	Alerts      uint64 `json:"alerts"`       // messages of stream ALERTS
	Receipts    uint64 `json:"receipts"`
	Repeated    uint64 `json:"repeated"` // receipts of traces that had one

	Sessions uint64 `json:"sessions"` // with a bundle
	Bundles  uint64 `json:"bundles"`  // rows
	Files    uint64 `json:"files"`    // of bundles
	Verified uint64 `json:"verified"` // of them
	Sealed   uint64 `json:"sealed"`   // traces in bundles that are rows, too

	LedgerEntries uint64 `json:"ledger_entries"` // in files
	LedgerRows    uint64 `json:"ledger_rows"`
	LedgerEvents  uint64 `json:"ledger_events"` // messages of stream LEDGER
	Claims        uint64 `json:"claims"`

	Leaves uint64 `json:"leaves"` // of the transparency log
	Proofs uint64 `json:"proofs"` // beside bundles
	Heads  uint64 `json:"heads"`  // of the log, kept elsewhere
	Stamps uint64 `json:"stamps"` // beside bundles, that hold
	Keys   uint64 `json:"keys"`   // on the key list
}
