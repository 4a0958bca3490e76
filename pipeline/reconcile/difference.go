package reconcile

import (
	"fmt"
	"strings"
	"time"
)

// Kind is the kind of a difference.
type Kind string

// The kinds of differences. docs/CHECK.md lists them.
const (
	RowMissing        Kind = "row_missing"
	RowChanged        Kind = "row_changed"
	RowForeign        Kind = "row_foreign"
	ColumnsChanged    Kind = "columns_changed"
	DeadLetterMissing Kind = "dead_letter_missing"
	DeadLetterChanged Kind = "dead_letter_changed"
	DeadLetterAndRow  Kind = "dead_letter_and_row"
	VerdictMissing    Kind = "verdict_missing"
	VerdictID         Kind = "verdict_id_differs"
	AlertID           Kind = "alert_id_differs"
	LoopMissing       Kind = "loop_missing"
	PointMissing      Kind = "point_missing"
	PointForeign      Kind = "point_foreign"
	PointOverdue      Kind = "point_overdue"
	ReceiptMissing    Kind = "receipt_missing"
	ReceiptChanged    Kind = "receipt_changed"
	ReceiptForeign    Kind = "receipt_foreign"
	BundleMissing     Kind = "bundle_missing"
	BundleChanged     Kind = "bundle_changed"
	BundleBad         Kind = "bundle_bad"
	BundleDiffers     Kind = "bundle_differs"
	BundleLink        Kind = "bundle_link"
	BundleUnrecorded  Kind = "bundle_unrecorded"
	BundleRowMissing  Kind = "bundle_row_missing"
	BundleRowForeign  Kind = "bundle_row_foreign"
	SealDiffers       Kind = "seal_differs"
	TraceUnsealed     Kind = "trace_unsealed"
	SealedRowMissing  Kind = "sealed_row_missing"
	ClaimMissing      Kind = "claim_missing"
	ClaimForeign      Kind = "claim_foreign"
	LedgerBroken      Kind = "ledger_broken"
	LedgerEvent       Kind = "ledger_event_differs"
	LedgerRow         Kind = "ledger_row_differs"
	LogBroken         Kind = "log_broken"
	LogMissing        Kind = "log_missing"
	LogBundleMissing  Kind = "log_bundle_missing"
	BundleUnlogged    Kind = "bundle_unlogged"
	ProofMissing      Kind = "proof_missing"
	ProofBad          Kind = "proof_bad"
	LogRolledBack     Kind = "log_rolled_back"
	StampBad          Kind = "stamp_bad"
	StampLate         Kind = "stamp_late"
	StampMissing      Kind = "stamp_missing"
	KeyListBroken     Kind = "key_list_broken"
	KeyUnlisted       Kind = "key_unlisted"
)

const (
	keepEvidence = "keep the database and the broker's files as evidence, and find out who could write there; "
	rebuildRow   = keepEvidence + "the stream has what was sent: plumbline replay stores it again"
	useCopy      = "restore the file from a copy (another destination, a backup); its SHA-256 must be the recorded one"
)

// remedies holds the remedy for each kind.
var remedies = map[Kind]string{
	RowMissing:        rebuildRow,
	RowChanged:        keepEvidence + "the stream has what was sent",
	RowForeign:        keepEvidence + "nobody published this row: do not use it, and do not seal over it",
	ColumnsChanged:    keepEvidence + "the record itself is intact: trust its bytes, not the columns",
	DeadLetterMissing: rebuildRow,
	DeadLetterChanged: keepEvidence + "the stream has what was sent",
	DeadLetterAndRow:  "a message has a row or a dead letter, never both: compare them (plumbline trace get, plumbline dlq show)",
	VerdictMissing:    keepEvidence + "plumbline replay judges the trace again",
	VerdictID:         "run plumbline migrate of this version: column verdict_id is computed when it is read, and the rows are intact",
	AlertID:           keepEvidence + "join the alert by the verdict in its text, not by its id",
	LoopMissing:       keepEvidence + "plumbline replay --drift stores the alert again",
	PointMissing:      keepEvidence + "plumbline replay --drift measures the trace again",
	PointForeign:      keepEvidence + "nobody published the trace of this point: do not use it",
	PointOverdue:      "check the drift stage: /readyz and its log give the reason; it continues where it stopped",
	ReceiptMissing:    "the exporter does not know this trace, so no bundle will contain it: plumbline replay writes the receipt",
	ReceiptChanged:    keepEvidence + "only the verifier writes receipts: the session may be held",
	ReceiptForeign:    keepEvidence + "only the verifier writes receipts: the session is held",
	BundleMissing:     useCopy,
	BundleChanged:     "keep the file as evidence; " + useCopy,
	BundleBad:         "keep the file as evidence; plumbline bundle verify shows every fault; " + useCopy,
	BundleDiffers:     keepEvidence + "the signed bundle is authoritative, and its row was changed",
	BundleLink:        "a part is missing, was sealed twice or continues another part: look for it among copies",
	BundleUnrecorded:  "no record names this file: keep it as evidence, and move it out of the directory",
	BundleRowMissing:  keepEvidence + "the bundle itself may be intact: run plumbline bundle verify",
	BundleRowForeign:  keepEvidence + "the exporter sealed no such bundle: do not use the row",
	SealDiffers:       keepEvidence + "bucket seals and table bundles name different bundles: the ledger's CLAIM names the right one",
	TraceUnsealed:     "the bundle does not contain this trace: a recipient of the bundle cannot see it",
	SealedRowMissing:  keepEvidence + "the bundle still contains the trace",
	ClaimMissing:      keepEvidence + "the ledger does not confirm this bundle: compare it with a copy",
	ClaimForeign:      "the ledger names a bundle that is recorded nowhere else: look for it among copies",
	LedgerBroken:      "keep the ledger's directory as evidence; stream LEDGER has the events",
	LedgerEvent:       "keep the ledger's directory as evidence; stream LEDGER has the events",
	LedgerRow:         keepEvidence + "the ledger's files are authoritative",
	LogBroken:         "keep the log's directory as evidence; compare checkpoints that others have kept",
	LogMissing:        "restore the log's directory from a backup: the proofs next to the bundles belong to it",
	LogBundleMissing:  useCopy,
	BundleUnlogged:    "the log does not contain this bundle: was it sealed while the log was off, or into a log of another name?",
	ProofMissing:      "the log contains the bundle: restore the proof from a copy; sealing continues without it",
	ProofBad:          "keep the file as evidence; the other lines say whether the log contains the bundle",
	LogRolledBack:     "keep the log's directory as evidence, and replace it by its newest backup; compare checkpoints that others have kept",
	StampBad:          "keep the file as evidence; restore the stamp from a copy, or have the bundle stamped again",
	StampLate:         "the stamp does not show that the bundle is older than the end of its key: anyone who has the key may have made it; look for the bundle in the transparency log and among copies",
	StampMissing:      "restore the stamp from a copy; was the bundle sealed while the authority was off?",
	KeyListBroken:     "keep the file as evidence, and restore it from a backup or from a copy of /v1/keys",
	KeyUnlisted:       "the key list was cut short or replaced: keep it as evidence, and restore it from a backup or from a copy of /v1/keys",
}

// Kinds returns all kinds with their remedies.
func Kinds() map[Kind]string { return remedies }

// Difference is one disagreement. Members that do not apply are empty.
type Difference struct {
	Kind      Kind   `json:"kind"`
	AgentID   string `json:"agent_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Part      int64  `json:"part,omitempty"` // of the session's bundles
	TraceID   string `json:"trace_id,omitempty"`
	Sequence  uint64 `json:"sequence,omitempty"` // in its stream
	File      string `json:"file,omitempty"`     // below the directory of its kind
	What      string `json:"what"`
	Remedy    string `json:"remedy"`
}

// String returns the difference on one line. Its quotations may come from an attacker.
func (d *Difference) String() string {
	var b strings.Builder
	for _, about := range []struct{ name, value string }{
		{"agent", d.AgentID}, {"session", d.SessionID}, {"trace", d.TraceID}, {"file", d.File},
	} {
		if about.value != "" {
			fmt.Fprintf(&b, " %s %q", about.name, about.value)
		}
	}
	if d.Part > 0 {
		fmt.Fprintf(&b, " part %d", d.Part)
	}
	if d.Sequence > 0 {
		fmt.Fprintf(&b, " sequence %d", d.Sequence)
	}
	where := ""
	if b.Len() > 0 {
		where = ":" + b.String()
	}
	return fmt.Sprintf("%s%s: %s; %s", d.Kind, where, d.What, d.Remedy)
}

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
	Ends        uint64 `json:"ends"`         // requests to end a session
	UnderWay    uint64 `json:"under_way"`    // messages, bundles, events and open sessions of an earlier stream still in progress
	Expired     uint64 `json:"expired"`      // messages whose rows retention has removed
	Unstreamed  uint64 `json:"unstreamed"`   // rows whose messages the stream no longer holds, or that came from an earlier stream: only their own digest was checked
	Verdicts    uint64 `json:"verdicts"`     // traces that have a verdict
	Points      uint64 `json:"points"`       // messages with a drift point, copies included
	Unmeasured  uint64 `json:"unmeasured"`   // messages that drift is not done with yet
	Alerts      uint64 `json:"alerts"`       // messages of stream ALERTS
	Receipts    uint64 `json:"receipts"`
	Repeated    uint64 `json:"repeated"` // receipts of traces that already had one, or of an earlier stream

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
