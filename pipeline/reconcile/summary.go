package reconcile

import "time"

// Summary states what was compared, and how much of it disagrees.
type Summary struct {
	StartedAt   time.Time    `json:"started_at"`
	FinishedAt  time.Time    `json:"finished_at"`
	Differences int          `json:"differences"`
	ByKind      map[Kind]int `json:"by_kind"`
	Skipped     []string     `json:"skipped"` // what could not be compared, and why
	Counts      Counts       `json:"counts"`
}

// Counts holds how much of each kind was compared.
type Counts struct {
	Messages    uint64 `json:"messages"`     // of stream TRACES
	Traces      uint64 `json:"traces"`       // rows that have a message
	Copies      uint64 `json:"copies"`       // messages with the same bytes as an earlier one
	DeadLetters uint64 `json:"dead_letters"` // messages that are dead letters
	UnderWay    uint64 `json:"under_way"`    // messages, bundles and events still in progress
	Expired     uint64 `json:"expired"`      // messages whose rows retention has removed
	Unstreamed  uint64 `json:"unstreamed"`   // rows whose messages the stream no longer holds, or that came from an earlier stream: only their own digest was checked
	Verdicts    uint64 `json:"verdicts"`     // traces that have a verdict
	Points      uint64 `json:"points"`       // traces that have a drift point
	Unmeasured  uint64 `json:"unmeasured"`   // traces that drift has not acked yet
	Alerts      uint64 `json:"alerts"`       // messages of stream ALERTS
	Receipts    uint64 `json:"receipts"`
	Repeated    uint64 `json:"repeated"` // receipts of traces that already had one

	Sessions uint64 `json:"sessions"` // with a bundle
	Bundles  uint64 `json:"bundles"`  // bundle rows
	Files    uint64 `json:"files"`    // bundle files
	Verified uint64 `json:"verified"` // bundle files that verify
	Sealed   uint64 `json:"sealed"`   // traces that are in bundles and have rows

	LedgerEntries uint64 `json:"ledger_entries"` // in files
	LedgerRows    uint64 `json:"ledger_rows"`
	LedgerEvents  uint64 `json:"ledger_events"` // messages of stream LEDGER
	Claims        uint64 `json:"claims"`

	Leaves uint64 `json:"leaves"` // of the transparency log
	Proofs uint64 `json:"proofs"` // proof files next to bundles
	Heads  uint64 `json:"heads"`  // heads of the log that are kept elsewhere
	Stamps uint64 `json:"stamps"` // valid time stamps next to bundles
	Keys   uint64 `json:"keys"`   // on the key list
}
