package aivs

import (
	"fmt"
	"time"

	"github.com/plumbline/plumbline/schema"
)

// Dialects of bundles that the verifier recognises.
const (
	DialectPlumbline = "plumbline-1"        // our dialect: the draft, with open and seal rows
	DialectSealed    = "aivs-00-sealed"     // the draft, with a content seal row
	DialectDraft     = "aivs-00"            // the draft without extensions
	DialectNewer     = "plumbline-newer"    // our dialect, in a version that this code does not know
	DialectMonotonic = "aivs-monotonic-ids" // the draft's early generator: it numbers the rows of all its sessions in one sequence
	DialectConduit9  = "conduit-9-field"    // the later generator: its row hash also covers inputs and outputs
	DialectUnknown   = "unknown"
)

// Results of checking the signature.
const (
	SignatureValid     = "valid"     // valid by the key in the bundle, over the chain hash of this log
	SignatureInvalid   = "invalid"   // the signature does not verify
	SignatureAbsent    = "absent"    // the bundle is not signed
	SignatureUnchecked = "unchecked" // the verification ended at a fault before it
)

// Parts of a bundle that a valid signature can cover. Report.Covered lists those it does.
const (
	CoversRows    = "rows"    // the fields that a row hash covers, and the order of the rows
	CoversInputs  = "inputs"  // inputs_json of every row
	CoversOutputs = "outputs" // outputs_json of every row
	CoversErrors  = "errors"  // error of every row
	CoversFiles   = "files"   // every file except the log
)

// Fault is one defect of a bundle.
type Fault struct {
	Where   string `json:"where"` // "archive", a file's name, "row N", or "rows 1-N" where the row is not known
	Message string `json:"message"`
}

// Anchor is a file next to the bundle and what it shows about the bundle (package aivs/anchor).
type Anchor struct {
	File string `json:"file"`
	Says string `json:"says"`
}

// Report is the result of a verification. A bundle is intact when it has no fault. That is a
// statement about the file; the verdict recorded in it is the statement about the agent.
type Report struct {
	Intact    bool     `json:"intact"`
	Dialect   string   `json:"dialect"`
	Faults    []Fault  `json:"faults"`
	Skipped   []string `json:"skipped"` // what was not checked, or is not covered
	SHA256    string   `json:"sha256"`  // of the .tar.gz
	TarSHA256 string   `json:"tar_sha256"`
	SessionID string   `json:"session_id"`
	Rows      int64    `json:"rows"`
	ChainHash string   `json:"chain_hash"`
	Signature string   `json:"signature"`
	Covered   []string `json:"covered"`    // what the signature of an intact bundle covers
	PublicKey string   `json:"public_key"` // hexadecimal; empty without a signature
	KeyID     string   `json:"key_id"`
	KeyPinned bool     `json:"key_pinned"` // the key is one of the keys required
	Attested  bool     `json:"attested"`   // a DSSE envelope by the same key covers every file

	PreviousBundleHash string `json:"previous_bundle_hash,omitempty"` // SHA-256 of the previous bundle

	Anchors        []Anchor `json:"anchors,omitempty"` // files next to the bundle that were checked, by other packages than this one
	SignatureBytes []byte   `json:"-"`                 // the 64 bytes of a valid signature, for a time stamp

	ExportedAt time.Time `json:"-"` // from the manifest, with a valid signature; zero where it has no time

	Verdict   *RecordedVerdict `json:"verdict"`    // of an intact bundle of our dialect; null where none is recorded
	Opening   *Opening         `json:"opening"`    // the content of the open row; null in other dialects
	NotProven []string         `json:"not_proven"` // draft section 8.2 and AAP section 10.1
}

// Unreadable returns the report on a bundle that could not be read.
func Unreadable(err error) *Report {
	r := newReport()
	r.fault(archivePlace, "%v", err)
	return r
}

func newReport() *Report {
	return &Report{Dialect: DialectUnknown, Signature: SignatureUnchecked, NotProven: NotProven(),
		Faults: []Fault{}, Skipped: []string{}, Covered: []string{}}
}

// NotProven returns what no verification of a bundle shows (draft section 8.2), and the limits of
// the records themselves (AAP section 10.1).
func NotProven() []string {
	return append([]string{
		"Truthfulness: what the rows say need not have happened, and an action that was never recorded leaves no trace.",
		"Time: every time is the sender's own.",
		"Key: the bundle names the key that signed it; whose key that is must be known from elsewhere.",
	}, schema.Limitations()...)
}

// Fault adds a defect that another package found in the bundle or in a file next to it.
func (r *Report) Fault(where, format string, args ...any) {
	r.fault(where, format, args...)
	r.Intact, r.Covered, r.Verdict = false, []string{}, nil
}

// Skip adds a check that another package could not do.
func (r *Report) Skip(why string) { r.skip(why) }

func (r *Report) fault(where, format string, args ...any) {
	r.Faults = append(r.Faults, Fault{Where: where, Message: fmt.Sprintf(format, args...)})
}

func (r *Report) skip(why string) {
	r.Skipped = append(r.Skipped, why)
}
