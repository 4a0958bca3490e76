package reconcile

import (
	"fmt"
	"strings"
)

// Kind is the kind of a difference.
type Kind string

// The kinds of differences. docs/CHECK.md lists them.
const (
	RowMissing       Kind = "row_missing"
	RowChanged       Kind = "row_changed"
	RowForeign       Kind = "row_foreign"
	ColumnsChanged   Kind = "columns_changed"
	LetterMissing    Kind = "dead_letter_missing"
	LetterChanged    Kind = "dead_letter_changed"
	LetterAndRow     Kind = "dead_letter_and_row"
	VerdictMissing   Kind = "verdict_missing"
	VerdictID        Kind = "verdict_id_differs"
	AlertID          Kind = "alert_id_differs"
	PointMissing     Kind = "point_missing"
	PointForeign     Kind = "point_foreign"
	PointOverdue     Kind = "point_overdue"
	ReceiptMissing   Kind = "receipt_missing"
	ReceiptChanged   Kind = "receipt_changed"
	ReceiptForeign   Kind = "receipt_foreign"
	BundleMissing    Kind = "bundle_missing"
	BundleChanged    Kind = "bundle_changed"
	BundleBad        Kind = "bundle_bad"
	BundleDiffers    Kind = "bundle_differs"
	BundleLink       Kind = "bundle_link"
	BundleUnrecorded Kind = "bundle_unrecorded"
	BundleRowMissing Kind = "bundle_row_missing"
	BundleRowForeign Kind = "bundle_row_foreign"
	SealDiffers      Kind = "seal_differs"
	TraceUnsealed    Kind = "trace_unsealed"
	SealedRowMissing Kind = "sealed_row_missing"
	ClaimMissing     Kind = "claim_missing"
	ClaimForeign     Kind = "claim_foreign"
	LedgerBroken     Kind = "ledger_broken"
	LedgerEvent      Kind = "ledger_event_differs"
	LedgerRow        Kind = "ledger_row_differs"
	LogBroken        Kind = "log_broken"
	LogMissing       Kind = "log_missing"
	LogBundleMissing Kind = "log_bundle_missing"
	BundleUnlogged   Kind = "bundle_unlogged"
	ProofMissing     Kind = "proof_missing"
	ProofBad         Kind = "proof_bad"
	LogRolledBack    Kind = "log_rolled_back"
	StampBad         Kind = "stamp_bad"
	StampLate        Kind = "stamp_late"
	StampMissing     Kind = "stamp_missing"
	KeyListBroken    Kind = "key_list_broken"
	KeyUnlisted      Kind = "key_unlisted"
)

const (
	keepEvidence = "keep the database and the broker's files as evidence, find out who could write there; "
	rebuildRow   = keepEvidence + "the stream has what was sent: plumbline replay stores it again"
	useCopy      = "take the file from a copy (another destination, a backup); its SHA-256 must be the recorded one"
)

// remedies holds the remedy for each kind.
var remedies = map[Kind]string{
	RowMissing:       rebuildRow,
	RowChanged:       keepEvidence + "the stream has what was sent",
	RowForeign:       keepEvidence + "nobody published this row: do not use it, and do not seal over it",
	ColumnsChanged:   keepEvidence + "the record itself is whole: trust its bytes, not the columns",
	LetterMissing:    rebuildRow,
	LetterChanged:    keepEvidence + "the stream has what was sent",
	LetterAndRow:     "the row and the letter say different things of one message: look at both (plumbline trace get, plumbline dlq show)",
	VerdictMissing:   keepEvidence + "plumbline replay passes the verdict again",
	VerdictID:        "run plumbline migrate of this version: column verdict_id is computed when it is read, the rows are whole",
	AlertID:          keepEvidence + "join the alert by the verdict in its text, not by its id",
	PointMissing:     keepEvidence + "plumbline replay --drift measures the trace again",
	PointForeign:     keepEvidence + "nobody published the trace of this point: do not use it",
	PointOverdue:     "look at the drift stage: /readyz and its log say why it does not go on; it continues where it stopped",
	ReceiptMissing:   "the exporter cannot know this trace, and no bundle will hold it: plumbline replay receipts it again",
	ReceiptChanged:   keepEvidence + "a receipt is written by the verifier alone: its session may be held",
	ReceiptForeign:   keepEvidence + "a receipt is written by the verifier alone: its session is held",
	BundleMissing:    useCopy,
	BundleChanged:    "keep the file as evidence; " + useCopy,
	BundleBad:        "keep the file as evidence; plumbline bundle verify shows all that is wrong with it; " + useCopy,
	BundleDiffers:    keepEvidence + "the signed bundle is what counts, the row beside it was changed",
	BundleLink:       "a part is missing, was sealed twice or continues another one: look for it among copies",
	BundleUnrecorded: "nobody recorded this file: keep it as evidence, and move it out of the directory",
	BundleRowMissing: keepEvidence + "the bundle itself may be whole: plumbline bundle verify",
	BundleRowForeign: keepEvidence + "the exporter sealed no such bundle: do not use the row",
	SealDiffers:      keepEvidence + "bucket seals and table bundles name different bundles: the ledger's CLAIM tells which is right",
	TraceUnsealed:    "the bundle does not hold this trace: whoever is handed the bundle cannot see it",
	SealedRowMissing: keepEvidence + "the bundle still holds the trace",
	ClaimMissing:     keepEvidence + "the ledger does not vouch for this bundle: compare it with a copy",
	ClaimForeign:     "the ledger names a bundle that is recorded nowhere else: look for it among copies",
	LedgerBroken:     "keep the ledger's directory as evidence; stream LEDGER has the events",
	LedgerEvent:      "keep the ledger's directory as evidence; stream LEDGER has the events",
	LedgerRow:        keepEvidence + "the ledger's files are what counts",
	LogBroken:        "keep the log's directory as evidence; compare checkpoints that others have kept",
	LogMissing:       "put the log's directory back from a backup: the proofs beside bundles are of it",
	LogBundleMissing: useCopy,
	BundleUnlogged:   "the log does not hold this bundle: was it sealed while the log was switched off, or into a log of another name?",
	ProofMissing:     "the log holds the bundle: take the proof from a copy, or seal on without it",
	ProofBad:         "keep the file as evidence; the log holds the bundle or does not (see the other lines)",
	LogRolledBack:    "keep the log's directory as evidence, and put the newest backup of it in its place; compare checkpoints that others have kept",
	StampBad:         "keep the file as evidence; take the stamp from a copy, or have the bundle stamped again",
	StampLate:        "the stamp does not show that the bundle is older than the end of its key: somebody who has the key may have made it; look for the bundle in the transparency log and among copies",
	StampMissing:     "take the stamp from a copy; was the bundle sealed while the authority was switched off?",
	KeyListBroken:    "keep the file as evidence, and put it back from a backup or from whoever keeps a copy of /v1/keys",
	KeyUnlisted:      "the key list was cut short or replaced: keep it as evidence, and put it back from a backup or from whoever keeps a copy of /v1/keys",
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
	if where := d.where(); where != "" {
		return fmt.Sprintf("%s:%s: %s; %s", d.Kind, where, d.What, d.Remedy)
	}
	return fmt.Sprintf("%s: %s; %s", d.Kind, d.What, d.Remedy)
}

// where returns the subject of the difference, each part preceded by a space.
func (d *Difference) where() string {
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
	return b.String()
}
